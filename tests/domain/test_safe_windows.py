"""How far a window is, what others did to it, and the way back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.admission.reading.queue import queue_manifest
from scheduler.domain.change_sets import QUEUE, ChangeItem, SetState, state_in
from scheduler.domain.lifecycle import QueueCommand
from scheduler.domain.queues import QueueSpec, QueueState, QueueTree
from scheduler.domain.safe_windows import (
    Before,
    WindowState,
    WindowStep,
    after_the_window,
    and_resumed,
    incidents_in,
    next_step,
    resumption,
    states_as_json,
    states_from_json,
    way_back,
)

OPEN = Before(QueueState.OPEN, QueueState.OPEN)
BEFORE = {"team": OPEN, "a": OPEN, "b": OPEN}


def tree(**parents_and_states: tuple[str, QueueState]) -> QueueTree:
    specs = [QueueSpec("root")]
    for name, (parent, state) in parents_and_states.items():
        specs.append(QueueSpec(name, parent=parent, state=state))
    return QueueTree(specs)


def held(**more: tuple[str, QueueState]) -> QueueTree:
    usual = {
        "team": ("root", QueueState.SUSPENDED),
        "a": ("team", QueueState.OPEN),
        "b": ("team", QueueState.OPEN),
    }
    return tree(**usual | more)


def codes(found: QueueTree, own: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
    return [(each.code, each.queue) for each in incidents_in("team", BEFORE, found, own)]


@pytest.mark.parametrize(
    ("before", "command"),
    [
        (QueueState.OPEN, QueueCommand.RESUME),
        (QueueState.CLOSED, QueueCommand.CLOSE),
        (QueueState.SUSPENDED, None),
    ],
)
def test_a_queue_gets_back_what_was_asked_for_it(before: QueueState, command: QueueCommand | None):
    assert way_back(before) is command


@pytest.mark.parametrize(
    ("facts", "step"),
    [
        ({}, WindowStep.EDIT),
        ({"has_items": True}, WindowStep.PREVIEW),
        ({"has_items": True, "is_previewed": True}, WindowStep.APPLY),
        ({"has_items": True, "is_held": False}, WindowStep.SUSPEND),
        ({"has_items": True, "set_state": SetState.APPLIED}, WindowStep.RESUME),
        ({"has_items": True, "set_state": SetState.DISCARDED}, WindowStep.EDIT),
        ({"state": WindowState.FINISHED}, WindowStep.NOTHING),
    ],
)
def test_what_comes_next_follows_from_what_is_the_case(facts: dict[str, object], step: WindowStep):
    usual = {
        "state": WindowState.OPEN,
        "set_state": SetState.DRAFT,
        "is_held": True,
        "has_items": False,
        "is_previewed": False,
    }

    assert next_step(**usual | facts) is step


def test_a_window_that_nobody_touched_has_no_incidents():
    assert codes(held()) == []


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (tree(), [("queue_gone", "team")]),
        (held(team=("root", QueueState.OPEN)), [("not_suspended", "team")]),
        (held(a=("root", QueueState.OPEN)), [("moved_away", "a")]),
        (held(c=("team", QueueState.OPEN)), [("child_came", "c")]),
        (held(b=("team", QueueState.CLOSED)), [("other_request", "b")]),
        (held().without("a"), [("child_gone", "a")]),
    ],
)
def test_what_others_did_is_said(found: QueueTree, told: list[tuple[str, str]]):
    assert codes(found) == told


def test_what_its_own_set_did_is_no_incident():
    found = held(c=("team", QueueState.OPEN), b=("team", QueueState.CLOSED)).without("a")

    assert codes(found, frozenset({"a", "b", "c"})) == []


def test_states_are_kept_as_json():
    assert states_from_json(states_as_json(BEFORE)) == BEFORE


def manifest(state: QueueState, weight: int = 1) -> dict[str, object]:
    return queue_manifest(QueueSpec("team", parent="root", state=state, weight=weight))


def test_a_preview_resumes_the_queue_on_top_of_what_the_set_wants():
    now = manifest(QueueState.SUSPENDED)
    edit = ChangeItem(QUEUE, "team", now, manifest(QueueState.SUSPENDED, weight=3))
    other = replace(edit, name="a")
    resumed = resumption("team", now, QueueState.OPEN)
    assert resumed is not None

    both = and_resumed((edit, other), resumed)

    assert both == (replace(edit, wanted=manifest(QueueState.OPEN, weight=3)), other)
    assert and_resumed((other,), resumed) == (other, resumed)
    gone = replace(edit, wanted=None)
    assert and_resumed((gone,), resumed) == (gone,)


def test_nothing_is_resumed_that_is_not_suspended_or_was_so_before():
    assert resumption("team", None, QueueState.OPEN) is None
    assert resumption("team", manifest(QueueState.OPEN), QueueState.OPEN) is None
    assert resumption("team", manifest(QueueState.SUSPENDED), QueueState.SUSPENDED) is None


def test_after_the_window_its_set_speaks_of_the_queue_as_it_was_given_back():
    now = manifest(QueueState.SUSPENDED)
    edit = ChangeItem(QUEUE, "team", now, manifest(QueueState.SUSPENDED, weight=3))
    closes = replace(edit, wanted=manifest(QueueState.CLOSED))

    (after,) = after_the_window((edit,), "team", QueueState.OPEN)

    assert after.base is not None
    assert state_in(after.base) == "Open"
    assert after.wanted == manifest(QueueState.OPEN, weight=3)
    assert after_the_window((closes,), "team", QueueState.OPEN) == (closes,)
    assert after_the_window((edit,), "other", QueueState.OPEN) == (edit,)
