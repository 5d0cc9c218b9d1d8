"""The model of states.

What each queue is, given the wishes in the tree and the work in the queues.
"""

from __future__ import annotations

import pytest

from scheduler.domain.lifecycle import (
    TAKES_WORK,
    DerivedState,
    QueueCommand,
    command_for,
    command_named,
    derive,
    judge,
    obstacles,
    requested_state_of,
    state_named,
)
from scheduler.domain.queues import QueueSpec, QueueState, QueueTree

OPEN = QueueState.OPEN
CLOSING = QueueState.CLOSING
CLOSED = QueueState.CLOSED
SUSPENDED = QueueState.SUSPENDED
UNKNOWN = QueueState.UNKNOWN


def tree(*paths: str, **wishes: QueueState) -> QueueTree:
    """Queues from paths below root: tree("p/c", p=CLOSED)."""
    queues = {"root": QueueSpec("root", parent="")}
    for path in paths:
        parent = "root"
        for name in path.split("/"):
            queues.setdefault(name, QueueSpec(name, parent=parent, state=wishes.get(name, OPEN)))
            parent = name
    return QueueTree(queues.values())


def states(
    queues: QueueTree,
    unknown: frozenset[str] = frozenset(),
    **live: int,
) -> dict[str, QueueState]:
    return {
        name: standing.state
        for name, standing in derive(queues, live, unknown).items()
        if name != "root"
    }


def test_a_queue_without_wishes_above_it_is_what_it_wishes():
    assert states(tree("a", "b", "c", b=CLOSED, c=SUSPENDED)) == {
        "a": OPEN,
        "b": CLOSED,
        "c": SUSPENDED,
    }


def test_a_closed_wish_with_work_left_is_closing():
    assert states(tree("a", a=CLOSED), a=2) == {"a": CLOSING}


def test_closing_goes_down_the_tree_and_names_the_topmost_queue():
    standings = derive(tree("p/c/g", p=CLOSED, c=CLOSED), {})

    assert standings["c"] == DerivedState(CLOSED)
    assert standings["g"] == DerivedState(CLOSED, closed_by="p")


def test_a_parent_is_closed_only_after_its_children():
    queues = tree("p/c/g", "p/d", p=CLOSED)

    assert states(queues, g=1) == {"p": CLOSING, "c": CLOSING, "g": CLOSING, "d": CLOSED}
    assert states(queues) == {"p": CLOSED, "c": CLOSED, "g": CLOSED, "d": CLOSED}


def test_closed_beats_suspended():
    standings = derive(tree("p/c", "o/s", p=SUSPENDED, c=CLOSED, o=CLOSED, s=SUSPENDED), {})

    assert standings["c"] == DerivedState(CLOSED, held_by="p")
    assert standings["s"] == DerivedState(CLOSED, closed_by="o", held_by="s")


def test_a_suspension_is_inherited_from_the_topmost_queue():
    standings = derive(tree("p/c/g", p=SUSPENDED, c=SUSPENDED), {})

    assert standings["c"] == DerivedState(SUSPENDED, held_by="p")
    assert standings["g"] == DerivedState(SUSPENDED, suspended_by="p", held_by="p")


def test_scheduling_is_held_below_a_suspended_wish_whatever_the_state():
    standings = derive(tree("p/c/g", p=CLOSED, c=SUSPENDED), {"g": 1})

    assert standings["g"] == DerivedState(CLOSING, closed_by="p", held_by="c")
    assert not standings["g"].is_scheduled
    assert standings["p"].is_scheduled


def test_an_unknown_queue_takes_no_work_and_is_not_scheduled():
    standing = derive(tree("a"), {}, {"a"})["a"]

    assert standing.state is UNKNOWN
    assert standing.state not in TAKES_WORK
    assert not standing.is_scheduled


def test_unknown_gives_way_to_closing_and_stays_through_a_suspension():
    unknown = frozenset({"c"})

    assert states(tree("p/c", p=CLOSED), unknown) == {"p": CLOSED, "c": CLOSED}
    assert states(tree("p/c", p=SUSPENDED), unknown) == {"p": SUSPENDED, "c": UNKNOWN}


def test_a_broken_tree_still_has_states():
    queues = QueueTree(
        [
            QueueSpec("a", parent="b", state=CLOSED),
            QueueSpec("b", parent="a"),
            QueueSpec("x", parent="gone"),
        ]
    )

    assert states(queues) == {"a": CLOSED, "b": CLOSED, "x": OPEN}


def verdict(
    queues: QueueTree,
    name: str,
    command: QueueCommand,
    unknown: frozenset[str] = frozenset(),
    **live: int,
):
    return judge(queues, derive(queues, live, unknown), name, command, live=live, unknown=unknown)


@pytest.mark.parametrize(
    ("wish", "command", "new_wish"),
    [
        (OPEN, QueueCommand.OPEN, None),
        (OPEN, QueueCommand.CLOSE, CLOSED),
        (OPEN, QueueCommand.SUSPEND, SUSPENDED),
        (OPEN, QueueCommand.RESUME, None),
        (CLOSED, QueueCommand.OPEN, OPEN),
        (CLOSED, QueueCommand.CLOSE, None),
        (CLOSED, QueueCommand.SUSPEND, None),
        (CLOSED, QueueCommand.RESUME, None),
        (SUSPENDED, QueueCommand.OPEN, OPEN),
        (SUSPENDED, QueueCommand.CLOSE, CLOSED),
        (SUSPENDED, QueueCommand.SUSPEND, None),
        (SUSPENDED, QueueCommand.RESUME, OPEN),
    ],
)
def test_each_command_on_each_wish(
    wish: QueueState,
    command: QueueCommand,
    new_wish: QueueState | None,
):
    judgement = verdict(tree("a", a=wish), "a", command)

    assert judgement.requested is new_wish
    assert bool(judgement.nothing_because) is (new_wish is None)


@pytest.mark.parametrize(
    ("command", "new_wish"),
    [
        (QueueCommand.OPEN, OPEN),
        (QueueCommand.CLOSE, CLOSED),
        (QueueCommand.SUSPEND, SUSPENDED),
        (QueueCommand.RESUME, None),
    ],
)
def test_only_open_close_and_suspend_leave_unknown(
    command: QueueCommand, new_wish: QueueState | None
):
    assert verdict(tree("a"), "a", command, frozenset({"a"})).requested is new_wish


def test_suspending_a_closing_queue_cancels_the_close():
    assert verdict(tree("a", a=CLOSED), "a", QueueCommand.SUSPEND, a=1).requested is SUSPENDED


@pytest.mark.parametrize(
    ("above", "command"),
    [
        (CLOSED, QueueCommand.OPEN),
        (CLOSED, QueueCommand.SUSPEND),
        (SUSPENDED, QueueCommand.OPEN),
        (SUSPENDED, QueueCommand.RESUME),
    ],
)
@pytest.mark.parametrize("wish", [OPEN, SUSPENDED])
def test_the_parent_comes_first(above: QueueState, command: QueueCommand, wish: QueueState):
    refusal = verdict(tree("p/c/g", p=above, g=wish), "g", command).refusal

    assert refusal
    assert refusal.rule_id == "parent_not_open"
    assert refusal.first == "p"
    assert ("open p first" if above is CLOSED else "resume p first") in refusal.message


def test_the_topmost_of_several_comes_first():
    refusal = verdict(tree("p/c/g", p=SUSPENDED, c=CLOSED), "g", QueueCommand.OPEN).refusal

    assert refusal
    assert refusal.message == "g cannot be opened while p above it is suspended: resume p first."


@pytest.mark.parametrize("above", [CLOSED, SUSPENDED])
def test_close_is_allowed_everywhere_and_becomes_the_own_wish(above: QueueState):
    assert verdict(tree("p/c", p=above), "c", QueueCommand.CLOSE).requested is CLOSED


def test_a_suspended_queue_below_a_closing_one_can_be_resumed_so_that_it_drains():
    assert (
        verdict(tree("p/c", p=CLOSED, c=SUSPENDED), "c", QueueCommand.RESUME, c=1).requested is OPEN
    )


def test_a_closed_queue_below_a_suspended_one_ignores_a_resume():
    assert verdict(
        tree("p/c", p=SUSPENDED, c=CLOSED), "c", QueueCommand.RESUME
    ).nothing_because == ("c is Closed, not Suspended, so there is nothing to resume.")


@pytest.mark.parametrize("command", [QueueCommand.CLOSE, QueueCommand.SUSPEND])
def test_root_can_not_be_closed_or_suspended(command: QueueCommand):
    refusal = verdict(tree("a"), "root", command).refusal

    assert refusal
    assert refusal.rule_id == "protected_queue"
    assert "root" in refusal.message


@pytest.mark.parametrize("command", [QueueCommand.OPEN, QueueCommand.RESUME])
def test_root_is_open_already(command: QueueCommand):
    assert (
        verdict(tree("a"), "root", command).nothing_because
        == "root is always Open, so there is nothing to do."
    )


def test_a_queue_that_is_not_there_is_said_so():
    refusal = verdict(tree("a"), "ghost", QueueCommand.OPEN).refusal

    assert refusal
    assert (refusal.rule_id, refusal.message) == ("queue_not_found", "There is no queue ghost.")


def test_each_command_that_would_do_nothing_says_why():
    queues = tree("p/c", p=CLOSED)

    found = obstacles(queues, derive(queues, {}), "p", live={})

    assert found == {
        QueueCommand.OPEN: "",
        QueueCommand.CLOSE: "p is already Closed.",
        QueueCommand.SUSPEND: "p is Closed, and a Closed queue ignores a suspend; open it first.",
        QueueCommand.RESUME: "p is Closed, not Suspended, so there is nothing to resume.",
    }


@pytest.mark.parametrize("text", ["SuspendQueue", "Suspend", "suspend"])
def test_a_command_has_short_forms(text: str):
    assert command_named(text) is QueueCommand.SUSPEND


@pytest.mark.parametrize("text", ["SyncQueue", "", None, 3, ["OpenQueue"]])
def test_what_is_not_a_command_is_none(text: object):
    assert command_named(text) is None


@pytest.mark.parametrize(
    ("before", "wish", "command"),
    [
        (OPEN, CLOSED, QueueCommand.CLOSE),
        (CLOSED, OPEN, QueueCommand.OPEN),
        (SUSPENDED, OPEN, QueueCommand.RESUME),
        (OPEN, SUSPENDED, QueueCommand.SUSPEND),
    ],
)
def test_a_change_of_the_wish_stands_for_a_command(
    before: QueueState,
    wish: QueueState,
    command: QueueCommand,
):
    assert command_for(wish, before) is command


@pytest.mark.parametrize(
    ("state", "annotations", "wish"),
    [
        ("", {}, OPEN),
        ("Open", {}, OPEN),
        ("Closing", {}, CLOSED),
        ("Closed", {}, CLOSED),
        ("Suspended", {}, SUSPENDED),
        ("Unknown", {}, OPEN),
        ("Closed", {"volcano.sh/closed-by-parent": "true"}, OPEN),
        ("Closing", {"volcano.sh/closed-by-parent": "true"}, OPEN),
        ("Closed", {"volcano.sh/closed-by-parent": "false"}, CLOSED),
        ("wrong", {}, None),
    ],
)
def test_an_imported_state_stands_for_a_wish(
    state: str,
    annotations: dict[str, str],
    wish: QueueState | None,
):
    assert requested_state_of(state, annotations) is wish


def test_a_stored_state_that_does_not_exist_is_none():
    assert state_named("unexpected") is None
