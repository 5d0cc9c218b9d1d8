"""Creating, changing and deleting queues in the database."""

from __future__ import annotations

import pytest

from scheduler.admission.violations import Rejected
from scheduler.domain.resources import Resources
from scheduler.models import Command, Event, Job, Node, PodGroup, Queue
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.queues.create_update import StaleVersion, create_queue, update_queue
from scheduler.services.queues.deletion import delete_queue
from scheduler.services.queues.warnings import refresh_warnings
from tests.services.queues.builders import assert_states_are_derived, job, podgroup, queue, states

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

ANN = Actor("ann", Door.API)


def rules(error: pytest.ExceptionInfo[Rejected]) -> list[str]:
    return [violation.rule_id for violation in error.value.violations]


def test_a_queue_is_stored_with_its_defaults_and_its_state():
    saved = create_queue({"metadata": {"name": "a"}, "spec": {"guarantee": {"cpu": "2"}}}, by=ANN)

    assert (
        saved.queue.weight,
        saved.queue.parent.name,
        saved.queue.reclaimable,
        saved.queue.state,
    ) == (1, "root", True, "Open")
    assert saved.queue.guarantee == Resources({"cpu": 2000})
    assert saved.queue.updated_by == "ann"
    assert [notice.code for notice in saved.notices] == ["cluster_unknown"]


@pytest.mark.parametrize("state", ["Open", "Closed", "Suspended"])
def test_a_queue_can_be_created_in_any_state_that_can_be_wished(state: str):
    assert queue("a", state=state).state == state


def test_nothing_is_written_when_a_rule_is_broken():
    with pytest.raises(Rejected) as error:
        create_queue({"metadata": {"name": "a"}, "spec": {"parent": "ghost", "weight": -1}})

    assert rules(error) == ["weight_out_of_range", "parent_not_found"]
    assert not Queue.objects.filter(name="a").exists()


def test_a_dry_run_answers_as_the_real_one_and_writes_nothing():
    saved = create_queue({"metadata": {"name": "a"}, "spec": {"state": "Closed"}}, dry_run=True)

    assert saved.queue.state == "Closed"
    assert not Queue.objects.filter(name="a").exists()
    assert not Event.objects.filter(name="a").exists()


def test_below_a_closed_parent_a_new_queue_is_closed_at_once():
    queue("p", state="Closed")

    saved = create_queue({"metadata": {"name": "c"}, "spec": {"parent": "p"}})

    assert (saved.queue.wish, saved.queue.state, saved.queue.closed_by) == ("Open", "Closed", "p")
    assert [notice.code for notice in saved.notices] == ["parent_closed"]


def test_an_imported_unknown_queue_stays_so_through_a_close_of_its_parent():
    queue("p")
    create_queue(
        {"metadata": {"name": "c"}, "spec": {"parent": "p"}, "status": {"state": "Unknown"}},
        imported=True,
    )

    assert states("c") == {"c": "Unknown"}
    update_queue("p", {"spec": {"state": "Closed"}}, merge=True)
    assert states("c") == {"c": "Closed"}
    update_queue("p", {"spec": {"state": "Open"}}, merge=True)
    assert states("c") == {"c": "Unknown"}
    assert_states_are_derived()


def test_an_unknown_queue_is_opened_by_an_edit_that_says_so_and_by_no_other():
    create_queue({"metadata": {"name": "c"}, "status": {"state": "Unknown"}}, imported=True)

    update_queue("c", {"spec": {"weight": 2}}, merge=True)
    assert states("c") == {"c": "Unknown"}
    update_queue("c", {"spec": {"state": "Open"}}, merge=True)
    assert states("c") == {"c": "Open"}


def test_a_change_is_told_and_raises_the_version():
    queue("a")

    saved = update_queue(
        "a",
        {"spec": {"weight": 5, "capability": {"cpu": "4"}}},
        merge=True,
        by=ANN,
    )

    assert saved.changed
    assert saved.message == "Changed weight from 1 to 5, capability from nothing to cpu 4."
    assert (saved.queue.weight, saved.queue.resource_version, saved.queue.updated_by) == (
        5,
        2,
        "ann",
    )
    assert (
        Event.objects.get(name="a", reason="UpdateQueue").message
        == "ann: changed weight from 1 to 5, capability from nothing to cpu 4."
    )


def test_a_patch_leaves_what_it_does_not_name_and_null_removes():
    queue("a", weight=3, capability={"cpu": "4", "memory": "1Gi"}, priority=7)

    saved = update_queue(
        "a",
        {"spec": {"capability": {"memory": None}, "priority": None}},
        merge=True,
    )

    assert (saved.queue.weight, saved.queue.priority, saved.queue.capability.to_quantities()) == (
        3,
        0,
        {"cpu": "4"},
    )


def test_what_is_already_so_changes_nothing():
    queue("a", weight=3)

    saved = update_queue("a", {"spec": {"weight": 3}}, merge=True)

    assert (saved.changed, saved.queue.resource_version) == (False, 1)
    assert saved.message == "a is already as asked; nothing was changed."


def test_two_who_edit_the_same_version_do_not_overwrite_each_other():
    version = queue("a").resource_version
    update_queue("a", {"spec": {"weight": 2}}, merge=True, by=ANN, expected_version=version)

    with pytest.raises(StaleVersion, match="changed by ann"):
        update_queue("a", {"spec": {"weight": 3}}, merge=True, expected_version=version)

    assert Queue.objects.get(name="a").weight == 2


def test_a_change_of_the_state_is_a_command_on_record():
    queue("a")

    saved = update_queue("a", {"spec": {"state": "Suspended"}}, merge=True, by=ANN)

    assert saved.queue.state == "Suspended"
    row = Command.objects.get()
    assert (row.action, row.actor, row.door, row.result) == ("SuspendQueue", "ann", "API", "Done")


def test_suspending_a_closed_queue_by_an_edit_does_nothing_and_says_so():
    queue("a", state="Closed")

    saved = update_queue("a", {"spec": {"state": "Suspended"}}, merge=True)

    assert (saved.changed, saved.queue.wish) == (False, "Closed")
    assert "ignores a suspend" in saved.message
    assert [notice.code for notice in saved.notices] == ["suspend_ignored"]


def test_opening_below_a_closed_parent_by_an_edit_is_refused_by_the_state():
    queue("p", state="Closed")
    queue("c", "p", state="Closed")

    with pytest.raises(Rejected) as error:
        update_queue("c", {"spec": {"state": "Open"}}, merge=True)

    assert (rules(error), error.value.by_state) == (["parent_not_open"], True)


def test_a_moved_queue_takes_the_state_of_its_new_place():
    queue("open")
    queue("shut", state="Closed")
    queue("x", "shut")

    update_queue("x", {"spec": {"parent": "open"}}, merge=True)

    assert states("x") == {"x": "Open"}
    assert_states_are_derived()


def test_a_queue_can_not_be_renamed():
    queue("a")

    with pytest.raises(Rejected) as error:
        update_queue("a", {"metadata": {"name": "b"}}, merge=True)

    assert rules(error) == ["immutable_field_changed"]


def test_editing_a_closing_queue_is_allowed():
    queue("a")
    podgroup("g", "a")
    update_queue("a", {"spec": {"state": "Closed"}}, merge=True)

    saved = update_queue("a", {"spec": {"weight": 9}}, merge=True)

    assert (saved.queue.weight, saved.queue.state) == (9, "Closing")


def test_a_busy_queue_gets_no_children():
    queue("a")
    podgroup("g", "a")

    with pytest.raises(Rejected) as error:
        queue("c", "a")

    assert rules(error) == ["parent_has_allocated_pods"]


# Deleting


def test_when_a_queue_is_deleted_the_records_of_its_work_and_its_name_in_the_events_stay():
    queue("a")
    job("done", "a", "Completed", "Completed")
    podgroup("old", "a", "Completed")
    update_queue("a", {"spec": {"state": "Closed"}}, merge=True)

    deleted = delete_queue("a", by=ANN)

    assert (deleted.queues, deleted.aftermath.jobs, deleted.aftermath.podgroups) == (("a",), 1, 2)
    assert not Queue.objects.filter(name="a").exists()
    assert Job.objects.get().queue.name == "a"
    assert PodGroup.objects.filter(queue__name="a").count() == 2
    assert Event.objects.get(name="a", reason="DeleteQueue").message == "ann deleted a."
    assert Command.objects.filter(target_name="a").exists()


def test_every_blocker_is_listed_and_nothing_goes():
    queue("p")
    queue("c", "p")
    podgroup("g", "c")

    with pytest.raises(Rejected) as error:
        delete_queue("p", cascade=True)

    assert [(violation.queue, violation.rule_id) for violation in error.value.violations] == [
        ("c", "queue_not_closed"),
        ("c", "has_podgroups"),
        ("p", "queue_not_closed"),
    ]
    assert error.value.by_state
    assert Queue.objects.filter(name__in=("p", "c")).count() == 2


def test_a_cascade_deletes_the_whole_subtree():
    for name, parent in (("p", "root"), ("c", "p"), ("g", "c"), ("d", "p")):
        queue(name, parent)
    update_queue("p", {"spec": {"state": "Closed"}}, merge=True)

    assert delete_queue("p", cascade=True).queues == ("d", "g", "c", "p")
    assert set(Queue.objects.values_list("name", flat=True)) == {"root", "default"}


def test_a_job_that_could_come_back_is_never_deleted_with_its_queue():
    queue("a", state="Closed")
    job("odd", "a", "Restarting", "Completed")

    with pytest.raises(Rejected) as error:
        delete_queue("a")

    assert rules(error) == ["has_jobs"]


# Warnings kept with the queue


def test_a_cluster_that_shrinks_is_warned_of_on_the_queue():
    node = Node.objects.create(name="n", allocatable=Resources.parse({"cpu": "8"}))
    queue("a", guarantee={"cpu": "6"})
    assert Queue.objects.get(name="a").warnings == []

    Node.objects.filter(pk=node.pk).update(allocatable=Resources.parse({"cpu": "4"}))
    told = refresh_warnings()

    assert told == ["a"]
    (warning,) = Queue.objects.get(name="a").warnings
    assert warning["code"] == "guarantee_exceeds_cluster"
    assert "guarantee cpu 6 of a is more than the cluster has now (4)" in warning["message"]


def test_a_tree_that_breaks_its_rules_is_a_condition():
    parent = queue("p", deserved={"cpu": "4"})
    child = queue("c", "p", deserved={"cpu": "4"})
    Queue.objects.filter(pk=parent.pk).update(deserved=Resources.parse({"cpu": "2"}))

    refresh_warnings()

    (condition,) = Queue.objects.get(name="p").conditions
    assert (condition["type"], condition["reason"]) == (
        "HierarchyInvalid",
        "children_deserved_exceeds_parent",
    )
    assert child.name in condition["message"]
