"""Random trees, commands, submissions, completions and deletions through the services: after every
step the database makes sense.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from scheduler.admission.violations import Rejected
from scheduler.domain.lifecycle import NotAllowed, QueueCommand
from scheduler.models import Command, Event, Job, PodGroup, Queue
from scheduler.selectors.queues.listing import PHASES, queue_rows
from scheduler.services.jobs.submit import submit_job
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import create_queue, update_queue
from scheduler.services.queues.deletion import delete_queue
from scheduler.services.queues.states import refresh_states
from tests.services.queues.builders import assert_states_are_derived

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

NAMES = st.sampled_from([f"q{number}" for number in range(6)])
PARENTS = st.sampled_from(["root", *(f"q{number}" for number in range(6))])
WISHES = st.sampled_from(["Open", "Open", "Open", "Closed", "Suspended"])
UNDO = {QueueCommand.CLOSE: QueueCommand.OPEN, QueueCommand.SUSPEND: QueueCommand.RESUME}


def states() -> dict[str, tuple[str, str, str, str]]:
    rows = Queue.objects.values_list("name", "state", "closed_by", "suspended_by", "held_by")
    return {row[0]: row[1:] for row in rows}


class LifeInTheDatabase(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.submitted = 0
        self.orders = 0

    def teardown(self) -> None:
        for model in (PodGroup, Job, Command, Event):
            model.objects.all().delete()
        Queue.objects.exclude(name__in=("root", "default")).update(
            parent=Queue.objects.get(name="root")
        )
        Queue.objects.exclude(name__in=("root", "default")).delete()

    @rule(name=NAMES, parent=PARENTS, wish=WISHES)
    def create(self, name: str, parent: str, wish: str) -> None:
        try:
            saved = create_queue(
                {"metadata": {"name": name}, "spec": {"parent": parent, "state": wish}}
            )
        except Rejected as refusal:
            assert refusal.violations  # noqa: PT017
        else:
            assert saved.queue.wish == wish

    @precondition(lambda _: Queue.objects.count() > 2)
    @rule(data=st.data(), parent=PARENTS)
    def move(self, data: st.DataObject, parent: str) -> None:
        name = self._one(data)
        before = states()
        try:
            update_queue(name, {"spec": {"parent": parent}}, merge=True)
        except Rejected:
            assert states() == before

    @precondition(lambda _: Queue.objects.count() > 2)
    @rule(data=st.data(), command=st.sampled_from(list(QueueCommand)))
    def command(self, data: st.DataObject, command: QueueCommand) -> None:
        name = self._one(data)
        before = states()
        wish = Queue.objects.get(name=name).wish
        changed = self._ordered(name, command)
        undone = (
            changed
            and command in UNDO
            and wish == "Open"
            and data.draw(st.booleans())
            and self._ordered(name, UNDO[command])
        )
        if undone or not changed:
            assert states() == before

    def _ordered(self, name: str, command: QueueCommand) -> bool:
        self.orders += 1
        try:
            return command_queue(name, command).changed
        except NotAllowed:
            return False

    def _one(self, data: st.DataObject) -> str:
        return data.draw(
            st.sampled_from(
                sorted(
                    Queue.objects.exclude(name__in=("root", "default")).values_list(
                        "name", flat=True
                    )
                )
            )
        )

    @rule(name=NAMES)
    def submit(self, name: str) -> None:
        self.submitted += 1
        row = Queue.objects.filter(name=name).first()
        takes = row is not None and row.state in ("Open", "Suspended") and not row.children.exists()
        try:
            submit_job(
                {
                    "metadata": {"name": f"j{self.submitted}"},
                    "spec": {"queue": name, "tasks": [{"name": "t", "replicas": 1}]},
                }
            )
        except Rejected:
            assert not takes
        else:
            assert takes

    @precondition(lambda _: PodGroup.objects.exclude(phase="Completed").exists())
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        open_still = sorted(
            PodGroup.objects.exclude(phase="Completed").values_list("name", flat=True)
        )
        name = data.draw(st.sampled_from(open_still))
        PodGroup.objects.filter(name=name).update(phase="Completed")
        Job.objects.filter(name=name).update(phase="Completed")
        refresh_states()

    @rule(name=NAMES, cascade=st.booleans())
    def delete(self, name: str, cascade: bool) -> None:
        there = set(states())
        try:
            deleted = delete_queue(name, cascade=cascade)
        except (Rejected, Queue.DoesNotExist):
            assert set(states()) == there
        else:
            assert set(states()) == there - set(deleted.queues)

    @invariant()
    def stored_states_are_the_derived_ones(self) -> None:
        assert_states_are_derived()

    @invariant()
    def nothing_is_where_it_may_not_be(self) -> None:
        live = PodGroup.objects.exclude(phase="Completed")
        assert not live.filter(queue__state="Closed").exists()
        assert not live.filter(queue__children__isnull=False).exists()
        assert not live.filter(queue__name="root").exists()
        assert not Queue.objects.filter(parent__state="Closed").exclude(state="Closed").exists()

    @invariant()
    def counts_are_the_rows(self) -> None:
        rows = Counter(PodGroup.objects.values_list("queue__name", "phase"))
        for queue in queue_rows().rows:
            assert queue.own == tuple(rows[queue.name, phase] for phase in PHASES)

    @invariant()
    def every_order_has_one_result(self) -> None:
        assert Command.objects.filter(target_kind="Queue").count() == self.orders
        assert not Command.objects.filter(result="Failed").exists()


@pytest.mark.parametrize(
    ("examples", "steps"),
    [pytest.param(4, 25, id="short"), pytest.param(60, 40, id="long", marks=pytest.mark.long)],
)
def test_the_life_of_queues_in_the_database(examples: int, steps: int):
    unhurried = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )

    run_state_machine_as_test(LifeInTheDatabase, settings=unhurried)
