"""Somebody else was faster: what is told to whoever changes something that is no longer as it was read."""

from __future__ import annotations

from typing import Any


class Stale(Exception):
    """The object was changed since the caller read it. `current` is it as it is now, `place` its kind, namespace and name in the record."""

    def __init__(self, what: str, current: Any, version: int, by: str = "", place: tuple[str, str, str] | None = None) -> None:
        self.what, self.current, self.version, self.by = what, current, version, by
        who = f" by {by}" if by else ""
        self.place = place or (type(current).__name__, getattr(current, "namespace", ""), getattr(current, "name", ""))
        super().__init__(f"{what} was changed{who} and is now at version {version}: read it again and repeat the change.")


def check_version(what: str, row: Any, expected: int | None) -> None:
    if expected is not None and row.resource_version != expected:
        raise Stale(what, row, row.resource_version)
