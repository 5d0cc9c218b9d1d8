"""`fields=metadata.name,status.state`: only these parts of each object."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from dashboard.api.framework.errors import bad_parameter

Wanted = dict[str, Any]
_LONGEST = 2000


def wanted_fields(request: Request) -> Wanted | None:
    """The parts that were asked for, as a tree; None for all of them."""
    text = request.query_params.get("fields", "")
    if not text.strip():
        return None
    if len(text) > _LONGEST:
        raise bad_parameter("fields", "fields is longer than 2,000 characters.")
    tree: Wanted = {}
    for path in text.split(","):
        level = tree
        for part in path.strip().split("."):
            level = level.setdefault(part, {})
    return tree


def select_fields(value: Any, wanted: Wanted | None) -> Any:
    """The wanted parts of an object, or of each item of a list.

    An empty tree, like None, stands for everything.
    """
    if not wanted:
        return value
    if isinstance(value, list):
        return [select_fields(item, wanted) for item in value]
    if not isinstance(value, dict):
        return value
    selected: dict[str, Any] = {}
    for key, below in wanted.items():
        if key in value:
            selected[key] = select_fields(value[key], below)
    return selected
