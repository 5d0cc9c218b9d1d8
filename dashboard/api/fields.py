"""`fields=metadata.name,status.state`: only these parts of each object."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from dashboard.api.errors import bad_parameter

Wanted = dict[str, Any]


def read_fields(request: Request) -> Wanted | None:
    """The wanted parts as a tree; None for all of them."""
    text = request.query_params.get("fields", "")
    if not text.strip():
        return None
    if len(text) > 2000:
        raise bad_parameter("fields", "fields is longer than 2,000 characters.")
    tree: Wanted = {}
    for path in text.split(","):
        level = tree
        for part in path.strip().split("."):
            level = level.setdefault(part, {})
    return tree


def chosen(value: Any, wanted: Wanted | None) -> Any:
    """The parts that are wanted; a list has them of each item. An empty tree stands for everything below."""
    if not wanted:
        return value
    if isinstance(value, list):
        return [chosen(item, wanted) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: chosen(value[key], below) for key, below in wanted.items() if key in value}
