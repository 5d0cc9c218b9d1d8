"""What undoes a single deed, and when nothing does."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.admission.reading.queue import queue_manifest
from scheduler.domain.change_sets import NODE, POLICY, QUEUE, ChangeItem
from scheduler.domain.queues import QueueSpec, QueueState
from scheduler.domain.reverts import Deed, Inverse, inverse_of


def manifest(**fields: Any) -> dict[str, Any]:
    return queue_manifest(QueueSpec("a", parent="root", **fields))


def update(before: dict[str, Any], after: dict[str, Any]) -> Deed:
    return Deed("UpdateQueue", QUEUE, "a", before, after)


def command(action: str, before: dict[str, str], follows: str = "") -> Deed:
    return Deed(action, QUEUE, "a", before, {}, follows)


def test_what_was_made_is_deleted_and_what_was_deleted_comes_back():
    now = manifest()

    made = inverse_of(Deed("CreateQueue", QUEUE, "a", None, now), now)
    deleted = inverse_of(Deed("DeleteQueue", QUEUE, "a", now, None), None)

    assert made.item == ChangeItem(QUEUE, "a", now, None)
    assert deleted.item == ChangeItem(QUEUE, "a", None, now)


def test_only_the_fields_of_the_deed_go_back():
    deed = update(manifest(weight=1), manifest(weight=5))

    inverse = inverse_of(deed, manifest(weight=5, priority=9))

    wanted = manifest(weight=1, priority=9)
    assert inverse.item == ChangeItem(QUEUE, "a", manifest(weight=5, priority=9), wanted)


def test_a_field_that_others_changed_since_is_left_for_a_person():
    deed = update(manifest(weight=1), manifest(weight=5))

    inverse = inverse_of(deed, manifest(weight=7))

    assert inverse.item == ChangeItem(QUEUE, "a", manifest(weight=5), manifest(weight=1))


@pytest.mark.parametrize(
    ("action", "state", "before"),
    [
        ("SuspendQueue", "Open", QueueState.OPEN),
        ("SuspendQueue", "Closing", QueueState.CLOSED),
        ("CloseQueue", "Open", QueueState.OPEN),
        ("OpenQueue", "Closed", QueueState.CLOSED),
        ("OpenQueue", "Suspended", QueueState.SUSPENDED),
        ("ResumeQueue", "Suspended", QueueState.SUSPENDED),
    ],
)
def test_a_command_goes_back_to_what_was_asked_for(action: str, state: str, before: QueueState):
    left = {"SuspendQueue": QueueState.SUSPENDED, "CloseQueue": QueueState.CLOSED}
    after = left.get(action, QueueState.OPEN)

    inverse = inverse_of(command(action, {"a": state}), manifest(state=after))

    assert inverse.item == ChangeItem(QUEUE, "a", manifest(state=after), manifest(state=before))


def test_a_command_that_others_overtook_begins_with_what_it_left():
    now = manifest(state=QueueState.CLOSED)

    inverse = inverse_of(command("SuspendQueue", {"a": "Open"}), now)

    assert inverse.item is not None
    assert inverse.item.base == manifest(state=QueueState.SUSPENDED)


def test_a_queue_that_was_suspended_from_above_was_asked_to_be_open():
    now = manifest(state=QueueState.SUSPENDED)

    inverse = inverse_of(command("SuspendQueue", {}), now)

    assert inverse.item == ChangeItem(QUEUE, "a", now, manifest(state=QueueState.OPEN))


@pytest.mark.parametrize(
    ("deed", "now", "why"),
    [
        (command("CloseQueue", {"a": "Suspended"}), manifest(), "because of a queue above"),
        (command("CloseQueue", {}), manifest(), "because of a queue above"),
        (command("CloseQueue", {"a": "Open"}, "team"), manifest(), "CloseQueue of team"),
        (command("SuspendQueue", {"a": "Open"}), manifest(), "already as it was"),
        (command("SuspendQueue", {"a": "Open"}), None, "is gone"),
        (update(manifest(weight=1), manifest(weight=5)), manifest(weight=1), "already as it was"),
        (update(manifest(weight=1), manifest(weight=5)), None, "is gone"),
        (Deed("CreateQueue", QUEUE, "a", None, manifest()), None, "gone already"),
        (Deed("DeleteQueue", QUEUE, "a", manifest(), None), manifest(), "again"),
        (Deed("DrainNode", NODE, "n", {}, {}), None, "Uncordon"),
        (Deed("CordonNode", NODE, "n", {}, {}), None, "is gone"),
    ],
)
def test_where_there_is_no_way_back_it_says_why(deed: Deed, now: Any, why: str):
    inverse = inverse_of(deed, now)

    assert inverse.item is None
    assert why in inverse.why_not


def test_nodes_and_the_policy_go_back():
    node = {"spec": {"unschedulable": True, "taints": []}}
    cordon = Deed("CordonNode", NODE, "n", {"unschedulable": False}, {"unschedulable": True})
    replaced = Deed("ReplacePolicy", POLICY, "policy", {"policy": "a\n"}, {"policy": "b\n"})

    back = inverse_of(cordon, node)
    old = inverse_of(replaced, {"policy": "b\n"})
    crossed = inverse_of(replaced, {"policy": "c\n"})

    schedulable = {"spec": {"unschedulable": False, "taints": []}}
    assert back.item == ChangeItem(NODE, "n", node, schedulable)
    assert old.item == ChangeItem(POLICY, "policy", {"policy": "b\n"}, {"policy": "a\n"})
    assert crossed.item == ChangeItem(POLICY, "policy", {"policy": "b\n"}, {"policy": "a\n"})


def test_deeds_that_change_sets_know_nothing_of_are_left_alone():
    assert inverse_of(Deed("SubmitJob", "Job", "a", None, {}), None) == Inverse()
    assert inverse_of(Deed("UpdateQueue", QUEUE, "a", None, None), manifest()) == Inverse()
