"""Eight writers at once on PostgreSQL: random commands, submissions, completions and edits.

No invariant is ever broken.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable

import pytest
from django.db import connection, transaction
from django.db.models import Count

from scheduler.admission.violations import Rejected
from scheduler.domain.lifecycle import NotAllowed, QueueCommand
from scheduler.models import Command, PodGroup, Queue
from scheduler.services.jobs.submit import submit_job
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import create_queue, update_queue
from scheduler.services.queues.deletion import delete_queue
from scheduler.services.queues.states import refresh_states
from tests.services.queues.builders import assert_states_are_derived, queue

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]

WRITERS = 8
EXPECTED = (NotAllowed, Rejected, Queue.DoesNotExist)
LEAVES = ["a1", "a2", "b1", "b2", "c", "default"]
QUEUES = [*LEAVES, "a", "b", "x1", "x2"]


class Writer(threading.Thread):
    def __init__(self, number: int, steps: int) -> None:
        super().__init__(daemon=True)
        self.number = number
        self.steps = steps
        self.dice = random.Random(number)
        self.surprises: list[BaseException] = []
        self.counts: Counter[str] = Counter()

    def run(self) -> None:
        try:
            for step in range(self.steps):
                self._step(step)
        except BaseException as surprise:  # told by the test, which would otherwise not see it
            self.surprises.append(surprise)
        finally:
            connection.close()

    def _step(self, step: int) -> None:
        (action,) = self.dice.choices(
            [self._command, self._submit, self._finish, self._edit, self._create, self._delete],
            [40, 30, 20, 4, 3, 3],
        )
        try:
            action(step)
            self.counts[action.__name__] += 1
        except EXPECTED:
            self.counts["refused"] += 1

    def _command(self, step: int) -> None:
        command_queue(self.dice.choice(QUEUES), self.dice.choice(list(QueueCommand)))

    def _submit(self, step: int) -> None:
        name = f"w{self.number}-{step}"
        submit_job(
            {
                "metadata": {"name": name},
                "spec": {
                    "queue": self.dice.choice(LEAVES),
                    "tasks": [{"name": "t", "replicas": 1}],
                },
            }
        )

    def _finish(self, step: int) -> None:
        with transaction.atomic():
            some = (
                PodGroup.objects.exclude(phase="Completed")
                .order_by("?")
                .values_list("pk", flat=True)
                .first()
            )
            PodGroup.objects.filter(pk=some).update(phase="Completed")
            refresh_states()

    def _edit(self, step: int) -> None:
        change = self.dice.choice(
            [{"weight": self.dice.randint(1, 9)}, {"parent": self.dice.choice(["root", "a", "b"])}]
        )
        update_queue(self.dice.choice(["c", "x1", "x2", "b"]), {"spec": change}, merge=True)

    def _create(self, step: int) -> None:
        create_queue(
            {
                "metadata": {"name": self.dice.choice(["x1", "x2"])},
                "spec": {"parent": self.dice.choice(["root", "a", "c"])},
            }
        )

    def _delete(self, step: int) -> None:
        delete_queue(self.dice.choice(["x1", "x2", "b"]), cascade=True)


class Watcher(threading.Thread):
    """Looks at one moment after another, each a snapshot of what was committed, and checks that it
    makes sense.
    """

    def __init__(self, is_over: Callable[[], bool]) -> None:
        super().__init__(daemon=True)
        self.is_over = is_over
        self.looks = 0
        self.surprises = []

    def run(self) -> None:
        try:
            while not self.is_over():
                with transaction.atomic():
                    with connection.cursor() as cursor:
                        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    assert_all_is_well()
                self.looks += 1
        except BaseException as surprise:
            self.surprises.append(surprise)
        finally:
            connection.close()


def assert_all_is_well() -> None:
    assert_states_are_derived()
    live = PodGroup.objects.exclude(phase="Completed")
    assert not live.filter(queue__state="Closed").exists()
    parents = Queue.objects.annotate(number=Count("children")).filter(number__gt=0)
    assert not live.filter(queue__in=parents).exists()
    assert not Queue.objects.filter(parent__state="Closed").exclude(state="Closed").exists()


def run_writers(steps: int) -> Counter[str]:
    for name, parent in (
        ("a", "root"),
        ("b", "root"),
        ("c", "root"),
        ("a1", "a"),
        ("a2", "a"),
        ("b1", "b"),
        ("b2", "b"),
    ):
        queue(name, parent)
    writers = [Writer(number, steps) for number in range(WRITERS)]
    watcher = Watcher(lambda: not any(writer.is_alive() for writer in writers))
    for thread in (*writers, watcher):
        thread.start()
    for thread in (*writers, watcher):
        thread.join()
    assert [writer.surprises for writer in writers] == [[] for _ in writers]
    assert watcher.surprises == []
    assert watcher.looks
    return sum((writer.counts for writer in writers), Counter())


def assert_every_order_has_one_result() -> None:
    results = Counter(Command.objects.values_list("result", flat=True))
    assert set(results) <= {"Done", "NoOp", "Refused"}
    assert not Command.objects.filter(executed_at=None).exists()
    _assert_orders_follow_each_other()


def _assert_orders_follow_each_other() -> None:
    """Each order of a queue began where the one before it ended, as far as only orders change the
    state.
    """
    executed = (
        Command.objects.filter(target_kind="Queue")
        .order_by("target_name", "id")
        .values_list("target_name", "executed_at")
    )
    last: dict[str, object] = {}
    for name, at in executed:
        assert name not in last or last[name] <= at  # type: ignore[operator]
        last[name] = at


@pytest.mark.parametrize(
    "steps", [pytest.param(40, id="short"), pytest.param(500, id="long", marks=pytest.mark.long)]
)
def test_eight_writers_break_nothing(steps: int):
    counts = run_writers(steps)

    assert counts["_command"]
    assert counts["_submit"]
    assert_all_is_well()
    assert_every_order_has_one_result()
    assert Command.objects.count() >= counts["_command"]
