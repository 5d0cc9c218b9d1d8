"""Somebody else was faster: what is told to whoever changes something that is no longer as it was
read.
"""

from __future__ import annotations

from typing import Any

from scheduler.domain.three_way import Merged
from scheduler.models import Queue

Expected = int | frozenset[int] | None
"""The version that the caller has read, or any of several; None where whatever is there will do."""


class Stale(Exception):
    """The object was changed since the caller read it.

    `current` is it as it is now, `place` its kind, namespace and name in the record.
    """

    def __init__(
        self,
        what: str,
        current: Any,
        version: int,
        by: str = "",
        place: tuple[str, str, str] | None = None,
    ) -> None:
        self.what = what
        self.current = current
        self.version = version
        self.by = by
        if by:
            who = f" by {by}"
        else:
            who = ""
        self.place = place or (
            type(current).__name__,
            getattr(current, "namespace", ""),
            getattr(current, "name", ""),
        )
        super().__init__(
            f"{what} was changed{who} and is now at version {version}: "
            "read it again and repeat the change."
        )


class StaleVersion(Exception):
    """Somebody else changed the queue since the caller read it."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        if queue.updated_by:
            who = f" by {queue.updated_by}"
        else:
            who = ""
        super().__init__(
            f"{queue.name} was changed{who} at {queue.updated_at:%H:%M:%S} UTC and is now at "
            f"version {queue.resource_version}: "
            "read it again and repeat the change."
        )


class EditConflict(StaleVersion):
    """Both changed the same field, differently.

    `merged` says which, and what it would be with the caller's changes over theirs.
    """

    def __init__(self, queue: Queue, merged: Merged) -> None:
        super().__init__(queue)
        self.merged = merged


def is_expected(version: int, expected: Expected) -> bool:
    return (
        expected is None
        or version == expected
        or (isinstance(expected, frozenset) and version in expected)
    )


def check_version(what: str, row: Any, expected: Expected) -> None:
    if not is_expected(row.resource_version, expected):
        raise Stale(what, row, row.resource_version)


def check_queue_version(queue: Queue, expected: Expected) -> None:
    if not is_expected(queue.resource_version, expected):
        raise StaleVersion(queue)
