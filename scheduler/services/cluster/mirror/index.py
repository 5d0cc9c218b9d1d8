"""Names by something that many of them share, so that nobody has to walk through all of them."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value", bound=Hashable)


class Index(Generic[Value]):
    """Keeps no empty sets: what was added and taken out again leaves nothing behind."""

    def __init__(self) -> None:
        self._members: dict[Value, set[str]] = {}

    def add(self, value: Value, name: str) -> None:
        self._members.setdefault(value, set()).add(name)

    def discard(self, value: Value, name: str) -> None:
        members = self._members.get(value)
        if members is None:
            return
        members.discard(name)
        if not members:
            del self._members[value]

    def members(self, value: Value) -> set[str]:
        """A copy: what follows may change the index."""
        return set(self._members.get(value, ()))

    def values(self) -> Collection[Value]:
        return self._members.keys()

    def clear(self) -> None:
        self._members.clear()
