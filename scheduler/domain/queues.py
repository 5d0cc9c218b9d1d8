"""The queue tree: what each queue asks for, and who is above and below whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from scheduler.domain.resources import NOTHING, Resources

ROOT = "root"
DEFAULT = "default"


class QueueState(StrEnum):
    OPEN = "Open"
    CLOSING = "Closing"
    CLOSED = "Closed"
    SUSPENDED = "Suspended"
    UNKNOWN = "Unknown"


class DequeueStrategy(StrEnum):
    FIFO = "fifo"
    TRAVERSE = "traverse"


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """One queue as its owner wishes it. `state` is the wish: Open, Closed or Suspended."""

    name: str
    parent: str = ROOT  # "" for root itself
    weight: int = 1
    capability: Resources = NOTHING
    deserved: Resources = NOTHING
    guarantee: Resources = NOTHING
    reclaimable: bool = True
    priority: int = 0
    dequeue_strategy: DequeueStrategy = DequeueStrategy.TRAVERSE
    state: QueueState = QueueState.OPEN
    type: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)


class QueueTree:
    """All queues by name, with their places in the tree. Takes any input: broken trees are found, not assumed away."""

    def __init__(self, queues: Iterable[QueueSpec]) -> None:
        self.queues: dict[str, QueueSpec] = {queue.name: queue for queue in sorted(queues, key=lambda queue: queue.name)}

    def __contains__(self, name: object) -> bool:
        return name in self.queues

    def __iter__(self) -> Iterator[QueueSpec]:
        return iter(self.queues.values())

    def __getitem__(self, name: str) -> QueueSpec:
        return self.queues[name]

    @cached_property
    def _children(self) -> dict[str, list[QueueSpec]]:
        children: dict[str, list[QueueSpec]] = {}
        for queue in self:
            if queue.name != ROOT:
                children.setdefault(queue.parent or ROOT, []).append(queue)
        return children

    def children(self, name: str) -> list[QueueSpec]:
        """Direct children, by name."""
        return self._children.get(name, [])

    def is_leaf(self, name: str) -> bool:
        return not self.children(name)

    def parent_of(self, name: str) -> str:
        """The parent's name; "" for root. An empty parent means root."""
        return "" if name == ROOT else (self.queues[name].parent or ROOT)

    def ancestors(self, name: str) -> list[str]:
        """From the parent up to root. Stops at a queue that does not exist, and where it meets a queue again (a cycle)."""
        path: list[str] = []
        current = self.parent_of(name)
        while current and current in self.queues and current not in path and current != name:
            path.append(current)
            current = self.parent_of(current)
        return path

    def lies_below_itself(self, name: str) -> bool:
        topmost = [name, *self.ancestors(name)][-1]
        return self.parent_of(topmost) == name

    def depth(self, name: str) -> int:
        """Root has depth 0, its children 1."""
        return len(self.ancestors(name))

    def descendants(self, name: str) -> list[QueueSpec]:
        """Everything below, parents before their children, siblings by name."""
        found: list[QueueSpec] = []
        seen = {name}
        stack = list(reversed(self.children(name)))
        while stack:
            queue = stack.pop()
            if queue.name in seen:
                continue
            seen.add(queue.name)
            found.append(queue)
            stack.extend(reversed(self.children(queue.name)))
        return found

    def cycles(self) -> list[list[str]]:
        """Each ring of parents once, beginning with its first name in order."""
        rings: list[list[str]] = []
        settled: set[str] = set()
        for start in self.queues:
            path: list[str] = []
            current = start
            while current in self.queues and current not in settled and current not in path:
                path.append(current)
                current = self.parent_of(current)
            if current in path:
                ring = path[path.index(current) :]
                first = ring.index(min(ring))
                rings.append(ring[first:] + ring[:first])
            settled.update(path)
        return rings

    def with_queue(self, queue: QueueSpec) -> QueueTree:
        """The same tree with this queue added or replaced."""
        return QueueTree([*(other for other in self if other.name != queue.name), queue])

    def without(self, name: str) -> QueueTree:
        return QueueTree(other for other in self if other.name != name)
