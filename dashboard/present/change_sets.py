"""Change sets as they are shown: the same figures for pages and the API."""

from __future__ import annotations

from typing import Any

from scheduler.domain.change_sets import ChangeItem, Crossing, FieldEdit


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
