"""The queue tree: what each queue asks for, and who is above and below whom."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from scheduler.domain.resources import NOTHING, Resources, Sum

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
    """One queue as users want it. `state` is the requested one: Open, Closed or Suspended."""

    name: str
    parent: str = ROOT  # "" for root itself
    weight: int = 1
    capability: Resources = NOTHING
    deserved: Resources = NOTHING
    guarantee: Resources = NOTHING
    reclaimable: bool = True
    priority: int = 0
    dequeue_strategy: DequeueStrategy = DequeueStrategy.TRAVERSE
    min_run_seconds: int | None = None  # None: as the queue above, or else the policy, says
    # limits, which count for everything below too; None: none of its own
    max_waiting_jobs: int | None = None
    max_waiting_pods: int | None = None
    max_waiting_jobs_per_user: int | None = None
    max_waiting_pods_per_user: int | None = None
    max_pods_per_job: int | None = None
    max_run_seconds: int | None = None
    state: QueueState = QueueState.OPEN
    type: str = ""
    owner: str = ""  # a team or a person
    description: str = ""
    namespaces: str = ""  # whose work may come here and below, with commas between them
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)


class QueueTree:
    """All queues by name, with their places in the tree.

    Takes any input: broken trees are found, not assumed away.

    A part of a tree may know what the children of a queue have `together` without knowing them all.
    """

    def __init__(
        self, queues: Iterable[QueueSpec], *, together: Mapping[str, Together] | None = None
    ) -> None:
        self._by_name: dict[str, QueueSpec] = {queue.name: queue for queue in queues}
        self._together: dict[str, Together] = dict(together or {})  # as far as somebody has asked

    @cached_property
    def queues(self) -> dict[str, QueueSpec]:
        """All of them in the order of their names."""
        return dict(sorted(self._by_name.items()))

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[QueueSpec]:
        return iter(self.queues.values())

    def __getitem__(self, name: str) -> QueueSpec:
        return self._by_name[name]

    @cached_property
    def _children_by_parent(self) -> dict[str, list[QueueSpec]]:
        children: dict[str, list[QueueSpec]] = {}
        for queue in self:
            if queue.name != ROOT:
                children.setdefault(queue.parent or ROOT, []).append(queue)
        return children

    def children(self, name: str) -> list[QueueSpec]:
        """Direct children, by name."""
        return self._children_by_parent.get(name, [])

    def children_together(self, name: str) -> Together:
        """What the direct children have together.

        It is added up once, and kept up to date when one of them is added, changed or removed.
        """
        if name not in self._together:
            self._together[name] = Together.of(self.children(name))
        return self._together[name]

    def is_leaf(self, name: str) -> bool:
        return not self.children(name)

    def parent_of(self, name: str) -> str:
        """The parent's name; "" for root. An empty parent means root."""
        if name == ROOT:
            return ""
        return self._by_name[name].parent or ROOT

    def ancestors(self, name: str) -> list[str]:
        """From the parent up to root.

        Stops at a queue that does not exist, and where it meets a queue again (a cycle).
        """
        path: dict[str, None] = {}
        current = self.parent_of(name)
        while current and current in self._by_name and current not in path and current != name:
            path[current] = None
            current = self.parent_of(current)
        return list(path)

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

    def height(self, name: str) -> int:
        """How many levels there are below it; 0 for a leaf."""
        levels = {name: 0}
        for queue in self.descendants(name):
            levels[queue.name] = levels[queue.parent or ROOT] + 1
        return max(levels.values())

    def subtree_names(self, name: str) -> list[str]:
        """The queue itself and everything below it, parents before their children."""
        return [name, *(queue.name for queue in self.descendants(name))]

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

    def branch(self, name: str) -> QueueTree:
        """The queue, the way up from it, and everything below it."""
        above = [self[ancestor] for ancestor in self.ancestors(name)]
        return QueueTree([*above, self[name], *self.descendants(name)])

    def realm(self, name: str) -> QueueTree:
        """All queues whose state can depend on this one's.

        That is its branch. If a queue above is to be closed, it is the branch of the topmost one.

        Only a queue that is wanted closed looks at what its children are, so nothing outside can
        notice what happens inside.
        """
        return self.branch(self._topmost_closed(self.ancestors(name)) or name)

    def realms(self, changed: Iterable[str], left: Iterable[str] = ()) -> QueueTree:
        """The realms of some queues, and what children that left can have meant for these.

        Only what is to be closed asks for its children.
        """
        tops = set()
        for name in changed:
            if name in self:
                tops.add(self._topmost_closed(self.ancestors(name)) or name)
        for name in left:
            if name in self:
                tops.add(self._topmost_closed([name, *self.ancestors(name)]))
        found: dict[str, QueueSpec] = {}
        for name in tops - {""}:
            found.update(self.branch(name)._by_name)
        return QueueTree(found.values())

    def _topmost_closed(self, upwards: Iterable[str]) -> str:
        """The last of these queues that is wanted closed; "" where none is."""
        topmost = ""
        for name in upwards:
            if self[name].state is QueueState.CLOSED:
                topmost = name
        return topmost

    def with_queue(self, queue: QueueSpec) -> QueueTree:
        """The same tree with this queue added or replaced.

        What does not change is shared: many queues are added one by one.
        """
        return self._with_exchanged(self._by_name.get(queue.name), queue)

    def without(self, name: str) -> QueueTree:
        return self._with_exchanged(self._by_name.get(name), None)

    def _with_exchanged(self, old: QueueSpec | None, new: QueueSpec | None) -> QueueTree:
        parents = {ROOT}
        for queue in (old, new):
            if queue is not None:
                parents.add(queue.parent or ROOT)
        for parent in parents:
            # from here it is carried on; every tree that follows would have to add it up again
            self.children_together(parent)
        changed = QueueTree((), together=self._together)
        changed._by_name = dict(self._by_name)
        changed.__dict__["_children_by_parent"] = dict(self._children_by_parent)
        if old is not None:
            del changed._by_name[old.name]
            changed._leave_sums(old)
        if new is not None:
            changed._by_name[new.name] = new
            changed._join_sums(new)
        return changed

    def _leave_sums(self, queue: QueueSpec) -> None:
        if queue.name == ROOT:
            return
        parent = queue.parent or ROOT
        self._children_by_parent[parent] = [
            child for child in self._children_by_parent[parent] if child.name != queue.name
        ]
        if parent in self._together:
            self._together[parent] = self._together[parent].minus(queue)

    def _join_sums(self, queue: QueueSpec) -> None:
        if queue.name == ROOT:
            return
        parent = queue.parent or ROOT
        siblings = list(self._children_by_parent.get(parent, ()))
        place = bisect_left(siblings, queue.name, key=lambda sibling: sibling.name)
        siblings.insert(place, queue)
        self._children_by_parent[parent] = siblings
        if parent in self._together:
            self._together[parent] = self._together[parent].plus(queue)


@dataclass(frozen=True, slots=True)
class Together:
    """What some queues have of that which siblings share out among themselves."""

    guarantee: Sum
    deserved: Sum

    @classmethod
    def of(cls, queues: Iterable[QueueSpec]) -> Together:
        some = list(queues)
        return cls(
            guarantee=Sum.of(queue.guarantee for queue in some),
            deserved=Sum.of(queue.deserved for queue in some),
        )

    def plus(self, queue: QueueSpec) -> Together:
        return Together(
            guarantee=self.guarantee.plus(queue.guarantee),
            deserved=self.deserved.plus(queue.deserved),
        )

    def minus(self, queue: QueueSpec) -> Together:
        return Together(
            guarantee=self.guarantee.plus(queue.guarantee, -1),
            deserved=self.deserved.plus(queue.deserved, -1),
        )
