"""Server-sent events of a list that is followed."""

from __future__ import annotations

from typing import Final

from dashboard.api.framework.json_cache import as_json

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
END: Final = "END"

RETRY_MILLISECONDS: Final = 2000
STILL_HERE: Final = ": still here\n\n"
BEGINNING: Final = f"retry: {RETRY_MILLISECONDS}\n\n"


def event(kind: str, data: str, version: str = "") -> str:
    """`data` is JSON in one line. The version is where to go on after this event."""
    mark = f"id: {version}\n" if version else ""
    return f"event: {kind}\n{mark}data: {data}\n\n"


def bookmark(version: str) -> str:
    """All that there is was said."""
    return event(BOOKMARK, as_json({"metadata": {"resourceVersion": version}}), version)


def ending(reason: str, sentence: str) -> str:
    return event(END, as_json({"reason": reason, "message": sentence}))
