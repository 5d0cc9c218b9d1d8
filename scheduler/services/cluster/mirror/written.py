"""What one transaction of the mirror changed."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class WrittenRows:
    """By the names that open pages know it by."""

    queues: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    podgroups: set[str] = field(default_factory=set)  # namespace/name
    others: int = 0

    @property
    def anything(self) -> bool:
        return bool(self.queues or self.nodes or self.podgroups or self.others)
