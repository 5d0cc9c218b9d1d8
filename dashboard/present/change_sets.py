"""Change sets as they are shown: the same figures for pages and the API."""

from __future__ import annotations

from typing import Any

from scheduler.domain.change_sets import ChangeItem, Crossing, FieldEdit
from scheduler.domain.safe_windows import STEPS, WindowState, WindowStep
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


def step_marks(standing: WindowStanding) -> dict[str, str]:
    """Each step of a window: done, now or later; "left out" where it ended without it."""
    if standing.window.state == WindowState.FINISHED.value:
        return dict.fromkeys((step.value for step in STEPS), "done")
    marks = {}
    reached = _place(standing.step)
    for place, step in enumerate(STEPS):
        marks[step.value] = _mark(place, reached)
    return marks


def _place(step: WindowStep) -> int | None:
    if step in STEPS:
        return STEPS.index(step)
    return None


def _mark(place: int, reached: int | None) -> str:
    if reached is None:
        return "left out"
    if place < reached:
        return "done"
    if place == reached:
        return "now"
    return "later"
