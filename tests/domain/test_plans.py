"""The blast radius of a command: what changes, what does not and why, and what to be warned of."""

from __future__ import annotations

import pytest

from scheduler.domain.lifecycle import NotAllowed, QueueCommand, derive
from scheduler.domain.plans import Load, Plan, changes_between, plan
from scheduler.domain.queues import QueueState
from tests.domain.test_lifecycle import CLOSED, OPEN, SUSPENDED, tree


def warned(effect: Plan) -> list[str]:
    return [warning.code for warning in effect.warnings]


def changes(effect: Plan) -> list[tuple[str, QueueState, QueueState]]:
    return [
        (change.name, change.before.state, change.after.state) for change in effect.state_changes
    ]


def test_closing_a_tree_lists_every_queue_and_the_work_in_it():
    loads = {
        "c": Load(running=2, waiting=1, pods_running=8, pods_waiting=3, users=frozenset({"ann"})),
        "d": Load(running=1, pods_running=1, users=frozenset({"bob"})),
        "elsewhere": Load(running=9, users=frozenset({"eve"})),
    }

    effect = plan(tree("p/c", "p/d", "p/e", "elsewhere"), "p", QueueCommand.CLOSE, loads=loads)

    assert changes(effect) == [
        ("p", OPEN, QueueState.CLOSING),
        ("c", OPEN, QueueState.CLOSING),
        ("d", OPEN, QueueState.CLOSING),
        ("e", OPEN, CLOSED),
    ]
    assert effect.load == Load(
        running=3,
        waiting=1,
        pods_running=9,
        pods_waiting=3,
        users=frozenset({"ann", "bob"}),
    )
    assert effect.message == (
        "p is now Closing: it takes no new jobs and is Closed when 3 children are Closed. "
        "c, d become Closing with it. e becomes Closed with it."
    )
    assert effect.warnings == ()


def test_what_wishes_its_own_state_is_said_to_stay():
    effect = plan(tree("p/c", "p/d", p=CLOSED, d=CLOSED), "p", QueueCommand.OPEN, loads={})

    assert changes(effect) == [("p", CLOSED, OPEN), ("c", CLOSED, OPEN)]
    assert effect.message == (
        "p is now Open: it takes jobs and they are scheduled. c becomes Open with it. d "
        "stays as it is, by its own request."
    )


def test_the_last_child_to_close_closes_its_parent():
    effect = plan(tree("p/c", p=CLOSED), "p", QueueCommand.CLOSE, loads={"c": Load(running=1)})

    assert not effect.changed
    assert effect.message == "p is already Closing; its children are not Closed yet."


def test_a_command_that_does_nothing_says_why():
    effect = plan(tree("a", a=CLOSED), "a", QueueCommand.SUSPEND, loads={})

    assert (effect.changed, effect.changes, effect.requested) == (False, (), None)
    assert effect.message == "a is Closed, and a Closed queue ignores a suspend; open it first."


def test_a_refusal_is_raised():
    with pytest.raises(NotAllowed, match="open p first"):
        plan(tree("p/c", p=CLOSED), "c", QueueCommand.OPEN, loads={})


def test_suspending_a_draining_queue_warns_that_the_drain_is_cancelled():
    effect = plan(tree("a", a=CLOSED), "a", QueueCommand.SUSPEND, loads={"a": Load(running=1)})

    assert warned(effect) == ["drain_cancelled"]
    assert changes(effect) == [("a", QueueState.CLOSING, SUSPENDED)]


def test_closing_a_suspended_queue_warns_that_what_waits_may_start():
    effect = plan(
        tree("a", a=SUSPENDED),
        "a",
        QueueCommand.CLOSE,
        loads={"a": Load(waiting=2, pods_waiting=5)},
    )

    assert warned(effect) == ["pending_jobs_start"]
    assert "2 waiting podgroups (5 pods) in a may start" in effect.warnings[0].message


def test_closing_an_empty_suspended_queue_warns_of_nothing():
    assert plan(tree("a", a=SUSPENDED), "a", QueueCommand.CLOSE, loads={}).warnings == ()


def test_closing_above_a_suspended_queue_warns_that_it_holds_what_waits():
    effect = plan(
        tree("p/c/g", p=OPEN, c=SUSPENDED),
        "p",
        QueueCommand.CLOSE,
        loads={"g": Load(waiting=3)},
    )

    assert warned(effect) == ["held_below"]
    assert effect.warnings[0].message == (
        "c is suspended by its own request and holds 3 podgroups that wait: p cannot "
        "finish closing until c is resumed."
    )


def test_closing_below_a_suspended_queue_warns_that_it_can_not_finish():
    effect = plan(tree("p/c", p=SUSPENDED), "c", QueueCommand.CLOSE, loads={"c": Load(waiting=1)})

    assert warned(effect) == ["held_above"]
    assert "resume p" in effect.warnings[0].message


def test_closing_what_is_closed_from_above_makes_it_the_own_wish():
    effect = plan(tree("p/c", p=CLOSED), "c", QueueCommand.CLOSE, loads={})

    assert effect.changed
    assert effect.state_changes == ()
    assert effect.message == (
        "c stays Closed, now by its own request: it remains so when the queues above it "
        "are opened or resumed."
    )


def test_resuming_below_a_closing_queue_lets_it_drain():
    effect = plan(
        tree("p/c", p=CLOSED, c=SUSPENDED),
        "c",
        QueueCommand.RESUME,
        loads={"c": Load(waiting=1)},
    )

    assert effect.message == (
        "c is no longer suspended by its own request and stays Closing; its waiting pods may start."
    )
    assert effect.load.waiting == 1


def test_a_refresh_says_what_became_of_each_queue():
    queues = tree("p/c", p=CLOSED)
    before = derive(queues, {"c": 1})
    after = derive(queues, {})

    sentences = [change.sentence for change in changes_between(before, after, queues, {})]

    assert sentences == [
        "p is now Closed: nothing is left in it and every queue below it is Closed.",
        "c is now Closed: nothing is left in it.",
    ]


def test_many_names_are_cut_short():
    effect = plan(
        tree(*(f"p/c{number}" for number in range(9))),
        "p",
        QueueCommand.SUSPEND,
        loads={},
    )

    assert effect.message.endswith("c0, c1, c2, c3, c4 and 4 more become Suspended with it.")
