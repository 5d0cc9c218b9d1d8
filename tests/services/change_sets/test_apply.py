"""A change set is judged as a whole, and applied whole or not at all."""

from __future__ import annotations

import pytest

from scheduler.admission.violations import Rejected
from scheduler.domain.access import Forbidden
from scheduler.domain.change_sets import Crossed
from scheduler.domain.jobs.commands import NotPossible
from scheduler.models import AuditEntry, ChangeSet, Node, PodGroup, Queue
from scheduler.services.change_sets.apply import apply_change_set
from scheduler.services.change_sets.drafts import create_change_set, revert
from scheduler.services.change_sets.verdicts import verdict_on
from scheduler.services.queues.create_update import update_queue
from tests.dashboard.work import person, small_cluster
from tests.services.change_sets.builders import edit, exported, gone, machine, policy
from tests.services.queues.builders import assert_states_are_derived, queue, states

pytestmark = pytest.mark.django_db

OTHER_POLICY = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def rules(refusal: Rejected) -> list[str]:
    return [violation.rule_id for violation in refusal.violations]


def deserved(name: str) -> dict[str, str]:
    return Queue.objects.get(name=name).deserved.to_quantities()


def swap_of_two_resources() -> list[dict[str, object]]:
    """Each gives what the other takes: in no order could they be changed one by one."""
    update_queue("research", {"spec": {"deserved": {"cpu": "12", "memory": "12Gi"}}}, merge=True)
    update_queue("vision", {"spec": {"deserved": {"cpu": "8", "memory": "4Gi"}}}, merge=True)
    update_queue("language", {"spec": {"deserved": {"cpu": "4", "memory": "8Gi"}}}, merge=True)
    return [
        edit("vision", deserved={"cpu": "4", "memory": "8Gi"}),
        edit("language", deserved={"cpu": "8", "memory": "4Gi"}),
    ]


def test_a_step_may_break_a_sum_that_the_whole_keeps():
    change_set = create_change_set("swap", swap_of_two_resources())

    apply_change_set(change_set.pk)

    assert deserved("vision") == {"cpu": "4", "memory": "8Gi"}
    assert deserved("language") == {"cpu": "8", "memory": "4Gi"}


def test_a_whole_that_breaks_a_sum_is_refused_and_leaves_nothing():
    before = exported()
    change_set = create_change_set(
        "too much",
        [edit("batch", weight=7), edit("vision", deserved={"cpu": "9"}), machine("n3", "4")],
    )

    with pytest.raises(Rejected) as refused:
        apply_change_set(change_set.pk)

    assert rules(refused.value) == ["children_deserved_exceeds_parent"]
    assert exported() == before
    change_set.refresh_from_db()
    assert change_set.is_draft
    assert rules(verdict_on(change_set.changes)) == rules(refused.value)


def test_queues_policy_and_nodes_change_together_and_go_back_byte_for_byte():
    queue("spare", weight=2, owner="bert", state="Closed")
    before = exported()
    documents = [
        edit("research", deserved={"cpu": "16"}),
        edit("speech", parent="research", weight=3),
        edit("speech-live", parent="speech", state="Suspended"),
        edit("language", parent="root", state="Closed"),
        gone("Queue", "spare"),
        machine("n3", "32"),
        policy(OTHER_POLICY),
    ]
    change_set = create_change_set("all of it", documents)

    applied = apply_change_set(change_set.pk)

    assert applied.message == (
        "Applied “all of it”: 2 queues created, 2 queues changed, 1 queue deleted, 1 node created, "
        "the policy replaced."
    )
    assert states("speech-live")["speech-live"] == "Suspended"
    assert not Queue.objects.filter(name="spare").exists()
    assert_states_are_derived()

    apply_change_set(revert(change_set.pk).pk)

    assert exported() == before
    assert_states_are_derived()


@pytest.mark.parametrize("first", ["Open", "Closed", "Suspended"])
@pytest.mark.parametrize("second", ["Open", "Closed", "Suspended"])
def test_every_requested_state_can_be_reverted(first: str, second: str):
    update_queue("language", {"spec": {"state": first}}, merge=True)
    before = exported()
    change_set = create_change_set(
        "state", [edit("language", state=second), edit("batch", weight=2)]
    )

    apply_change_set(change_set.pk)
    assert Queue.objects.get(name="language").wish == second
    apply_change_set(revert(change_set.pk).pk)

    assert exported() == before


def test_a_child_is_opened_with_the_parent_that_keeps_it_closed():
    update_queue("vision", {"spec": {"state": "Closed"}}, merge=True)
    update_queue("research", {"spec": {"state": "Closed"}}, merge=True)
    documents = [edit("vision", state="Open"), edit("research", state="Open")]

    apply_change_set(create_change_set("open", documents).pk)

    assert states("research", "vision") == {"research": "Open", "vision": "Open"}


def test_who_comes_second_is_told_what_changed_and_nothing_is_applied():
    mine = create_change_set("mine", [edit("vision", weight=5), edit("batch", weight=5)])
    theirs = create_change_set("theirs", [edit("vision", weight=9)])
    apply_change_set(theirs.pk)
    before = exported()

    with pytest.raises(Crossed, match=r"Queue vision was changed: spec\.weight from 1 to 9\."):
        apply_change_set(mine.pk)

    assert exported() == before
    assert [crossing.item.name for crossing in verdict_on(mine.changes).crossings] == ["vision"]


def test_a_queue_that_is_gone_or_came_meanwhile_is_a_conflict():
    made = create_change_set("make", [edit("speech", parent="research")])
    also = create_change_set("also", [edit("speech", parent="research", weight=4)])
    apply_change_set(made.pk)

    with pytest.raises(Crossed, match="There is a Queue speech by now"):
        apply_change_set(also.pk)

    changed = create_change_set("change", [edit("speech", weight=8)])
    apply_change_set(revert(made.pk).pk)

    with pytest.raises(Crossed, match="Queue speech is gone"):
        apply_change_set(changed.pk)


def test_an_applied_set_is_not_applied_again():
    change_set = create_change_set("once", [edit("batch", weight=5)])
    apply_change_set(change_set.pk)

    with pytest.raises(NotPossible, match=r"“once” has already been applied$"):
        apply_change_set(change_set.pk)


def test_a_dry_run_changes_nothing():
    before = exported()
    change_set = create_change_set("dry", [edit("batch", weight=5), machine("n3", "4")])

    apply_change_set(change_set.pk, dry_run=True)

    assert exported() == before
    assert ChangeSet.objects.get(pk=change_set.pk).is_draft


def test_whoever_may_not_change_one_of_the_queues_may_not_apply():
    change_set = create_change_set(
        "hers", [edit("vision", weight=5), edit("language", weight=5)], by=person("ruth")
    )
    apply_change_set(change_set.pk, by=person("ruth"))
    both = create_change_set("both", [edit("vision", weight=6), edit("research", weight=5)])

    with pytest.raises(Forbidden):
        apply_change_set(both.pk, by=person("ruth"))

    assert verdict_on(both.changes, by=person("ruth")).forbidden
    assert Queue.objects.get(name="vision").weight == 5


def test_nodes_and_policy_are_for_admins_of_the_cluster():
    for document in (machine("n3", "4"), policy(OTHER_POLICY)):
        change_set = create_change_set("cluster", [document])
        with pytest.raises(Forbidden):
            apply_change_set(change_set.pk, by=person("ruth"))


def test_a_node_with_pods_is_not_taken_away():
    change_set = create_change_set("less", [gone("Node", "n1"), edit("batch", weight=4)])

    with pytest.raises(Rejected) as refused:
        apply_change_set(change_set.pk)

    assert rules(refused.value) == ["node_has_pods"]
    assert refused.value.violations[0].field == "Node/n1 metadata.name"
    assert Node.objects.filter(name="n1").exists()
    assert rules(verdict_on(change_set.changes)) == ["node_has_pods"]


def test_a_guarantee_may_count_on_nodes_of_the_same_set():
    documents = [
        edit("batch", guarantee={"resource": {"cpu": "40"}}, deserved={"cpu": "40"}),
        machine("n3", "32"),
    ]
    change_set = create_change_set("larger", documents)

    assert verdict_on(change_set.changes).may_be_applied
    apply_change_set(change_set.pk)

    assert Queue.objects.get(name="batch").guarantee.to_quantities() == {"cpu": "40"}


def test_a_queue_with_work_is_not_deleted():
    change_set = create_change_set("less", [gone("Queue", "batch")])

    with pytest.raises(Rejected) as refused:
        apply_change_set(change_set.pk)

    assert "has_podgroups" in rules(refused.value)
    assert states("batch") == {"batch": "Open"}


def test_a_parent_goes_only_with_its_children():
    alone = create_change_set("alone", [gone("Queue", "research")])
    with pytest.raises(Rejected) as refused:
        apply_change_set(alone.pk)
    assert "has_children" in rules(refused.value)


def test_two_queues_that_would_lie_below_each_other_are_refused():
    change_set = create_change_set(
        "ring", [edit("batch", parent="default"), edit("default", parent="batch")]
    )

    with pytest.raises(Rejected) as refused:
        apply_change_set(change_set.pk)

    assert "parent_cycle" in rules(refused.value)


def test_two_queues_do_not_hide_the_work_of_their_new_parent_from_each_other():
    PodGroup.objects.filter(queue__name="batch").update(phase="Completed")  # its pods end later
    documents = [edit("x", parent="batch"), edit("y", parent="batch")]

    with pytest.raises(Rejected) as refused:
        apply_change_set(create_change_set("busy", documents).pk)

    assert rules(refused.value).count("parent_has_allocated_pods") == 2


def test_every_entry_of_the_audit_log_names_the_set():
    change_set = create_change_set("Friday", [edit("batch", weight=5), machine("n3", "4")])

    apply_change_set(change_set.pk, by=person("admin"))

    reason = f"change set {change_set.pk}: Friday"
    entries = AuditEntry.objects.filter(reason=reason).values_list("action", "name")
    assert set(entries) == {("UpdateQueue", "batch"), ("CreateNode", "n3")}
    deed = AuditEntry.objects.get(action="ApplyChangeSet")
    assert (deed.kind, deed.name) == ("ChangeSet", str(change_set.pk))
