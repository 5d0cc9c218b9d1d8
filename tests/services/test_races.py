"""Two at the same moment, on PostgreSQL with real concurrent transactions: one order, nothing lost,
no job in a closed queue.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from scheduler.admission.violations import Rejected
from scheduler.domain.change_sets import Crossed
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.lifecycle import QueueCommand
from scheduler.engine.decisions import QueueFigures
from scheduler.models import Command, Job, Pod, PodGroup, Queue
from scheduler.services.accounts.actors import Actor
from scheduler.services.accounts.users import delete_user, save_user
from scheduler.services.change_sets.apply import apply_change_set
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.cluster.nodes import cordon_node, drain_node, update_node
from scheduler.services.cluster.simulation import lose_node
from scheduler.services.files.apply import apply_documents
from scheduler.services.jobs.submit import submit_job
from scheduler.services.locks import alone_with_pods, lock_tree
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import (
    Saved,
    StaleVersion,
    create_queue,
    create_queues,
    update_queue,
)
from scheduler.services.queues.deletion import delete_queue
from scheduler.services.queues.planned_deletion import close_then_delete
from scheduler.services.queues.states import refresh_states
from scheduler.services.sessions.requests import pause_scheduling
from scheduler.services.sessions.runner import SessionRunner
from scheduler.services.sessions.write_figures import write_figures
from tests.services.queues.builders import assert_states_are_derived, podgroup, queue, states
from tests.worlds import node

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]

OPEN, CLOSE, SUSPEND, RESUME = QueueCommand
PATIENCE = 30.0


class Runner(threading.Thread):
    """Does one thing on a connection of its own, and keeps what came of it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.work = work
        self.outcome = None
        self.error = None
        self.backend = 0
        self.ready = threading.Event()

    def run(self) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                (self.backend,) = cursor.fetchone()
            self.ready.set()
            self.outcome = self.work()
        except Exception as error:  # handed to the test, which knows what to expect
            self.error = error
        finally:
            self.ready.set()
            connection.close()


def crossing(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Runner, Runner]:
    """`first` has done its work but not committed when `second` begins.

    It commits when `second` waits for it, or has ended.
    """
    done = threading.Event()
    go_on = threading.Event()

    def held() -> Any:
        with transaction.atomic():
            try:
                return first()
            finally:
                done.set()
                assert go_on.wait(PATIENCE)

    one = Runner(held)
    two = Runner(second)
    one.start()
    assert done.wait(PATIENCE)
    two.start()
    _until_it_waits(two)
    go_on.set()
    for runner in (one, two):
        runner.join(PATIENCE)
        assert not runner.is_alive()
    return one, two


def _until_it_waits(runner: Runner) -> None:
    assert runner.ready.wait(PATIENCE)
    while runner.is_alive():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'",
                [runner.backend],
            )
            if cursor.fetchone()[0]:
                return
        runner.join(0.01)


def submit(in_queue: str, name: str = "j") -> Job:
    return submit_job(
        {
            "metadata": {"name": name},
            "spec": {"queue": in_queue, "tasks": [{"name": "t", "replicas": 1}]},
        }
    ).job


def finish(name: str) -> None:
    with transaction.atomic():
        PodGroup.objects.filter(name=name).update(phase="Completed")
        refresh_states()


def rules(error: Exception | None) -> list[str]:
    assert isinstance(error, Rejected), error
    return [violation.rule_id for violation in error.violations]


def test_a_submit_at_the_moment_of_a_close_is_refused():
    queue("a")

    _, late = crossing(lambda: command_queue("a", CLOSE), lambda: submit("a"))

    assert rules(late.error) == ["queue_not_open"]
    assert states("a") == {"a": "Closed"}
    assert not PodGroup.objects.exists()


def test_a_close_at_the_moment_of_a_submit_finds_the_job():
    queue("a")

    _, close = crossing(lambda: submit("a"), lambda: command_queue("a", CLOSE))

    assert close.error is None
    assert close.outcome.queues == [{"name": "a", "from": "Open", "to": "Closing"}]
    assert_states_are_derived()


def test_the_last_podgroup_leaving_at_the_moment_of_a_close_leaves_the_queue_closed():
    queue("a")
    podgroup("g", "a", "Running")

    one, two = crossing(lambda: finish("g"), lambda: command_queue("a", CLOSE))

    assert (one.error, two.error) == (None, None)
    assert states("a") == {"a": "Closed"}


def test_a_close_at_the_moment_the_last_podgroup_leaves_leaves_the_queue_closed():
    queue("a")
    podgroup("g", "a", "Running")

    one, two = crossing(lambda: command_queue("a", CLOSE), lambda: finish("g"))

    assert (one.error, two.error) == (None, None)
    assert states("a") == {"a": "Closed"}


def test_a_close_and_a_suspend_that_cross_come_one_after_the_other():
    queue("a")

    _, suspend = crossing(lambda: command_queue("a", CLOSE), lambda: command_queue("a", SUSPEND))

    assert not suspend.outcome.changed
    assert states("a") == {"a": "Closed"}
    assert sorted(Command.objects.values_list("action", "result")) == [
        ("CloseQueue", "Done"),
        ("SuspendQueue", "NoOp"),
    ]


def test_a_suspend_and_a_close_that_cross_come_one_after_the_other():
    queue("a")

    _, close = crossing(lambda: command_queue("a", SUSPEND), lambda: command_queue("a", CLOSE))

    assert close.outcome.queues == [{"name": "a", "from": "Suspended", "to": "Closed"}]


def test_two_who_click_the_same_button_get_one_change():
    queue("a")

    first, second = crossing(lambda: command_queue("a", CLOSE), lambda: command_queue("a", CLOSE))

    assert (first.outcome.changed, second.outcome.changed) == (True, False)
    assert second.outcome.message == "a is already Closed."


def test_the_second_of_two_admins_who_edit_the_same_version_is_told():
    version = queue("a").resource_version

    def edit(weight: int) -> Callable[[], Any]:
        return lambda: update_queue(
            "a",
            {"spec": {"weight": weight}},
            merge=True,
            expected_version=version,
        )

    _, late = crossing(edit(2), edit(3))

    assert isinstance(late.error, StaleVersion)
    assert Queue.objects.get(name="a").weight == 2


def test_two_admins_who_edit_different_fields_lose_nothing():
    queue("a")

    crossing(
        lambda: update_queue("a", {"spec": {"weight": 2}}, merge=True),
        lambda: update_queue("a", {"spec": {"priority": 5}}, merge=True),
    )

    row = Queue.objects.get(name="a")
    assert (row.weight, row.priority, row.resource_version) == (2, 5, 3)


def test_two_admins_who_share_out_the_same_parent_do_not_give_more_than_it_has():
    queue("p", deserved={"cpu": "4"})

    def create(name: str) -> Callable[[], Any]:
        return lambda: create_queue(
            {"metadata": {"name": name}, "spec": {"parent": "p", "deserved": {"cpu": "3"}}}
        )

    _, late = crossing(create("a"), create("b"))

    assert rules(late.error) == ["children_deserved_exceeds_parent"]


def test_of_two_change_sets_that_cross_one_wins_and_the_other_is_told():
    queue("a")
    queue("b")
    one = create_change_set("one", [_edit("a", 5), _edit("b", 5)])
    two = create_change_set("two", [_edit("b", 6), _edit("a", 6)])

    first, late = crossing(lambda: apply_change_set(one.pk), lambda: apply_change_set(two.pk))

    assert first.error is None
    assert isinstance(late.error, Crossed)
    assert "spec.weight from 1 to 5" in str(late.error)
    assert set(Queue.objects.filter(name__in="ab").values_list("weight", flat=True)) == {5}


def test_one_change_set_is_applied_once_by_two_at_the_same_moment():
    queue("a")
    one = create_change_set("one", [_edit("a", 5)])

    _, late = crossing(lambda: apply_change_set(one.pk), lambda: apply_change_set(one.pk))

    assert isinstance(late.error, NotPossible)


def test_a_change_set_and_a_session_do_not_wait_for_each_other_for_ever():
    queue("a")
    submit("a")
    machine = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1"}}}
    change_set = create_change_set("one", [_edit("a", 5), machine])

    _beside_a_session(lambda: apply_change_set(change_set.pk))


def _edit(name: str, weight: int) -> dict[str, Any]:
    return {"kind": "Queue", **_manifest(name, weight=weight)}


def test_a_submit_at_the_moment_of_a_delete_is_refused():
    queue("a")

    def remove() -> None:
        command_queue("a", CLOSE)
        delete_queue("a")

    _, late = crossing(remove, lambda: submit("a"))

    assert rules(late.error) == ["queue_not_found"]
    assert not Job.objects.exists()


def test_a_delete_at_the_moment_of_a_submit_is_refused():
    queue("a")

    def remove() -> None:
        with transaction.atomic():
            command_queue("a", CLOSE)
            delete_queue("a")

    _, late = crossing(lambda: submit("a"), remove)

    assert rules(late.error) == ["queue_not_closed", "has_podgroups"]
    assert Job.objects.count() == 1


def test_a_child_at_the_moment_of_a_submit_is_refused():
    queue("a")

    _, late = crossing(lambda: submit("a"), lambda: queue("c", "a"))

    assert rules(late.error) == ["parent_has_allocated_pods"]


def test_a_submit_at_the_moment_of_a_first_child_is_refused():
    queue("a")

    _, late = crossing(lambda: queue("c", "a"), lambda: submit("a"))

    assert rules(late.error) == ["queue_not_leaf"]


FORBIDDING: dict[str, Callable[[], Any]] = {
    "cordon": lambda: cordon_node("n1"),
    "change of the node": lambda: update_node("n1", {"spec": {"unschedulable": True}}, merge=True),
    "drain": lambda: drain_node("n1"),
    "loss": lambda: lose_node("n1"),
    "suspend": lambda: command_queue("a", SUSPEND),
    "change of the queue": lambda: update_queue("a", {"spec": {"state": "Suspended"}}, merge=True),
    "pause": pause_scheduling,
}


def one_pod_waits() -> None:
    queue("a")
    node("n1", cpu="8")
    submit("a")


def waiting() -> int:
    return Pod.objects.filter(phase="Pending").count()


@pytest.mark.parametrize("forbid", FORBIDDING.values(), ids=FORBIDDING)
def test_nothing_is_placed_after_it_was_forbidden_by_a_session_that_had_begun_before(
    forbid: Callable[[], Any],
):
    one_pod_waits()

    _, session = crossing(forbid, lambda: SessionRunner("slow").run())

    assert session.error is None
    assert waiting() == 1


@pytest.mark.parametrize("forbid", FORBIDDING.values(), ids=FORBIDDING)
def test_who_forbids_it_at_the_moment_it_is_written_sees_what_was_placed(forbid: Callable[[], Any]):
    one_pod_waits()

    _, late = crossing(lambda: SessionRunner("quick").run(), lambda: (forbid(), waiting()))

    assert late.error is None
    assert late.outcome[1] == 0


def test_two_moves_that_would_make_a_ring_together_do_not():
    queue("a")
    queue("b")

    _, late = crossing(
        lambda: update_queue("a", {"spec": {"parent": "b"}}, merge=True),
        lambda: update_queue("b", {"spec": {"parent": "a"}}, merge=True),
    )

    assert rules(late.error) == ["parent_cycle"]


@pytest.mark.parametrize("way", ["switched off", "deleted"])
def test_the_last_two_admins_can_not_take_each_other_the_office_at_the_same_moment(
    django_user_model: Any, way: str
):
    for name in ("ada", "ben"):
        django_user_model.objects.create_superuser(name)
    leave = (
        delete_user
        if way == "deleted"
        else lambda name: save_user({"isActive": False}, username=name)
    )

    _, late = crossing(lambda: leave("ada"), lambda: leave("ben"))

    assert rules(late.error) == ["last_admin"]
    assert django_user_model.objects.get(is_superuser=True, is_active=True).username == "ben"


def test_a_session_writes_the_figures_of_root_while_somebody_has_the_tree_and_waits_for_the_pods():
    root = Queue.objects.get(name="root").pk

    @transaction.atomic
    def take_both() -> None:
        lock_tree()
        alone_with_pods()

    _beside_a_session(
        take_both, then=lambda: write_figures({"root": QueueFigures("root")}, {"root": root}, 1)
    )


def test_two_lists_of_the_same_queues_at_the_same_moment_make_each_of_them_once():
    manifests = [_manifest(f"q{number}") for number in range(20)]

    one, two = crossing(
        lambda: create_queues(manifests),
        lambda: create_queues([*reversed(manifests), _manifest("q20")]),
    )

    assert all(isinstance(made, Saved) for made in one.outcome)
    assert [rules(refused) for refused in two.outcome[:-1]] == [["already_exists"]] * 20
    assert isinstance(two.outcome[-1], Saved)
    assert Queue.objects.filter(name__startswith="q").count() == 21


def test_two_files_that_change_the_same_queues_in_another_order_do_not_block_each_other():
    names = [queue(f"q{number}").name for number in range(20)]

    def applied(order: list[str], weight: int) -> Callable[[], Any]:
        return lambda: apply_documents(
            [
                {"kind": "Queue", **_manifest(name, weight=weight, state="Suspended")}
                for name in order
            ]
        )

    one, two = crossing(applied(names, 2), applied(names[::-1], 3))

    assert (one.error, two.error) == (None, None)
    assert set(Queue.objects.filter(name__in=names).values_list("weight", "state")) == {
        (3, "Suspended")
    }
    assert_states_are_derived()


@pytest.mark.parametrize(
    "documents",
    [("Queue", "Job"), ("Job", "Command"), ("Queue", "Command"), ("Queue", "Node")],
    ids=" and ".join,
)
def test_a_file_of_several_kinds_and_a_session_do_not_wait_for_each_other_for_ever(
    documents: tuple[str, ...],
):
    """A session has the pods before it has the states; so has the file, whatever it begins with."""
    queue("a")
    submit("a")

    _beside_a_session(lambda: apply_documents([_DOCUMENTS[kind] for kind in documents]))


def test_closing_and_deleting_waits_for_a_session_and_not_both_for_each_other(
    django_user_model: Any,
):
    queue("a")
    boss = Actor("boss", user=django_user_model.objects.create_superuser("boss"))

    _beside_a_session(lambda: close_then_delete("a", by=boss))

    assert not Queue.objects.filter(name="a").exists()


def _beside_a_session(work: Callable[[], Any], then: Callable[[], Any] = refresh_states) -> None:
    """The session has the pods when the work begins, and goes on, to the states or what is said,
    when the work waits.
    """
    has_pods = threading.Event()
    go_on = threading.Event()

    def session() -> None:
        with transaction.atomic():
            alone_with_pods()
            has_pods.set()
            assert go_on.wait(PATIENCE)
            then()

    one = Runner(session)
    two = Runner(work)
    one.start()
    assert has_pods.wait(PATIENCE)
    two.start()
    _until_it_waits(two)
    go_on.set()
    for runner in (one, two):
        runner.join(PATIENCE)
        assert (runner.is_alive(), runner.error) == (False, None)


def _manifest(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


_DOCUMENTS: dict[str, dict[str, Any]] = {
    "Queue": {"kind": "Queue", **_manifest("b")},
    "Job": {
        "kind": "Job",
        "metadata": {"name": "k"},
        "spec": {"queue": "a", "tasks": [{"name": "t", "replicas": 1}]},
    },
    "Command": {"kind": "Command", "action": "Suspend", "target": {"kind": "Job", "name": "j"}},
    "Node": {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1"}}},
}
