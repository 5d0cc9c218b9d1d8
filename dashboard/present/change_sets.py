"""Change sets as they are shown: the same figures for pages and the API."""

from __future__ import annotations

from typing import Any

from scheduler.domain.change_sets import ChangeItem, Crossing, FieldEdit, SetState
from scheduler.domain.safe_windows import STEPS, WindowState, WindowStep
from scheduler.models import ChangeSet
from scheduler.selectors.change_sets.windows import WindowStanding


def item_json(item: ChangeItem) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "name": item.name,
        "operation": item.operation.value,
        "diff": [edit_json(edit) for edit in item.edits],
        "base": item.base,
        "wanted": item.wanted,
    }


def edit_json(edit: FieldEdit) -> dict[str, Any]:
    return {"field": edit.field, "before": edit.before, "after": edit.after}


def crossing_json(crossing: Crossing) -> dict[str, Any]:
    return {
        "kind": crossing.item.kind,
        "name": crossing.item.name,
        "message": crossing.message,
        "diff": [edit_json(edit) for edit in crossing.edits],
    }


STEP_TITLES = {
    WindowStep.SUSPEND: "Suspend",
    WindowStep.EDIT: "Edit",
    WindowStep.PREVIEW: "Preview",
    WindowStep.APPLY: "Apply",
    WindowStep.RESUME: "Resume",
}


def step_marks(
    standing: WindowStanding, *, is_reverted: bool, is_previewed: bool
) -> dict[str, str]:
    """Each step of a window: done, now or later.

    One that has ended also has steps that were "undone", and others that were "left out".
    """
    if standing.window.state == WindowState.FINISHED.value:
        marks = dict.fromkeys((step.value for step in STEPS), _DONE)
        if is_reverted:
            marks[WindowStep.APPLY.value] = _UNDONE
        return marks
    if standing.window.state == WindowState.ABANDONED.value:
        change_set = standing.window.change_set
        return _marks_when_abandoned(change_set, is_reverted=is_reverted, is_previewed=is_previewed)
    reached = STEPS.index(standing.step)
    return {step.value: _mark(place, reached) for place, step in enumerate(STEPS)}


_DONE = "done"
_UNDONE = "undone"
_LEFT_OUT = "left out"


def _marks_when_abandoned(
    change_set: ChangeSet, *, is_reverted: bool, is_previewed: bool
) -> dict[str, str]:
    """A draft that was kept can be applied afterwards on its own page."""
    marks = dict.fromkeys((step.value for step in STEPS), _LEFT_OUT)
    marks[WindowStep.SUSPEND.value] = _UNDONE
    if change_set.items:
        is_discarded = change_set.state == SetState.DISCARDED.value
        marks[WindowStep.EDIT.value] = _UNDONE if is_reverted or is_discarded else _DONE
    if is_previewed:
        marks[WindowStep.PREVIEW.value] = _DONE
    if change_set.state == SetState.APPLIED.value:
        marks[WindowStep.APPLY.value] = _UNDONE if is_reverted else _DONE
    return marks


def _mark(place: int, reached: int) -> str:
    if place < reached:
        return _DONE
    if place == reached:
        return "now"
    return "later"
