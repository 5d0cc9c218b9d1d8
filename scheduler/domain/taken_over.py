"""What is ours of the new work of a cluster, beside another scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

REPLACED_NAME: Final = "volcano"
"""The `schedulerName` of the work that is taken over. Who serves it as well has all of it."""


@dataclass(frozen=True, slots=True)
class TakenOver:
    """New work in these namespaces, and for these queues in any namespace, is ours."""

    namespaces: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.namespaces or self.queues)

    def __or__(self, other: TakenOver) -> TakenOver:
        return TakenOver(
            tuple(sorted({*self.namespaces, *other.namespaces})),
            tuple(sorted({*self.queues, *other.queues})),
        )

    def __sub__(self, other: TakenOver) -> TakenOver:
        return TakenOver(
            tuple(sorted({*self.namespaces} - {*other.namespaces})),
            tuple(sorted({*self.queues} - {*other.queues})),
        )

    def in_words(self) -> str:
        """Such as "the namespace team-a and the queues one, two"; "nothing" for nothing."""
        parts = []
        if self.namespaces:
            parts.append(_listed("namespace", self.namespaces))
        if self.queues:
            parts.append(_listed("queue", self.queues))
        return " and ".join(parts) or "nothing"


def _listed(noun: str, names: tuple[str, ...]) -> str:
    if len(names) > 1:
        noun += "s"
    return f"the {noun} {', '.join(names)}"


NOTHING: Final = TakenOver()
