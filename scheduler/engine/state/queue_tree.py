"""The queue tree as a session sees it: row numbers, paths to root, and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.queues import ROOT, QueueSpec, QueueTree
from scheduler.domain.snapshot import Queue, Snapshot
from scheduler.domain.tables import Rows


class SessionQueueTree:
    """Queues by row, root included even if nobody made one.

    `path(row)` leads from a queue up to root; flat, it is the queue alone.
    """

    def __init__(self, queues: Sequence[Queue], *, hierarchical: bool) -> None:
        self.queues = list(queues)
        if hierarchical and not any(queue.name == ROOT for queue in queues):
            self.queues.append(Queue(QueueSpec(ROOT, parent="")))
        self.hierarchical = hierarchical
        self.rows = {queue.name: row for row, queue in enumerate(self.queues)}
        self.names = [queue.name for queue in self.queues]
        self.root = self.rows.get(ROOT, -1) if hierarchical else -1
        self.broken: dict[int, str] = {}
        self.parent = self._parents() if hierarchical else [-1] * len(self.queues)
        self.children: list[list[int]] = [[] for _ in self.queues]
        for row, parent in enumerate(self.parent):
            if parent >= 0:
                self.children[parent].append(row)
        # Of a cluster with so much: `Quotas.nominal`
        self.nominal_shares: tuple[Amounts, Amounts] | None = None
        self._paths = [self._path(row) for row in range(len(self.queues))]
        self._path_rows: list[Rows] = [np.array(path, dtype=np.intp) for path in self._paths]

    @classmethod
    def of(cls, snapshot: Snapshot, *, hierarchical: bool) -> SessionQueueTree:
        """That of the last session, if the queues are still the same: a tree never changes."""
        kept = snapshot.found_of_queues
        if ("tree", hierarchical) not in kept:
            kept["tree", hierarchical] = cls(snapshot.queues, hierarchical=hierarchical)
        found: SessionQueueTree = kept["tree", hierarchical]
        return found

    def __len__(self) -> int:
        return len(self.queues)

    def _parents(self) -> list[int]:
        """Rows of the parents; queues with an unknown parent or in a ring hang below root, and are
        noted as broken.
        """
        tree = QueueTree(queue.spec for queue in self.queues)
        ringed = {name: ring for ring in tree.cycles() for name in ring}
        return [self._parent(queue.name, tree, ringed) for queue in self.queues]

    def _parent(self, name: str, tree: QueueTree, ringed: dict[str, list[str]]) -> int:
        if name == ROOT:
            return -1
        parent = tree.parent_of(name)
        if name in ringed:
            self.broken[self.rows[name]] = f"its parents form a ring: {' > '.join(ringed[name])}"
            return self.root
        if parent not in self.rows:
            self.broken[self.rows[name]] = f"its parent {parent} does not exist"
            return self.root
        return self.rows[parent]

    def _path(self, row: int) -> list[int]:
        path = [row]
        while self.parent[path[-1]] >= 0:
            path.append(self.parent[path[-1]])
        return path

    def path(self, row: int) -> Rows:
        """The queue itself, then each ancestor up to root."""
        return self._path_rows[row]

    def path_list(self, row: int) -> list[int]:
        return self._paths[row]

    def ancestors(self, row: int) -> list[int]:
        """From the parent up to root."""
        return self._paths[row][1:]

    def is_leaf(self, row: int) -> bool:
        return not self.children[row]

    def depth(self, row: int) -> int:
        return len(self._paths[row]) - 1

    def subtree(self, row: int) -> list[int]:
        """The queue and everything below it."""
        found = [row]
        for member in found:
            found.extend(self.children[member])
        return found

    def common(self, left: int, right: int) -> int:
        """The deepest queue above both (or one of them, if it is above the other); -1 in a flat
        set.
        """
        above = set(self._paths[left])
        return next((row for row in self._paths[right] if row in above), -1)

    def crossed(self, queue: int, other: int) -> list[int]:
        """The queues from this one up to just below where it meets the other; all above it if they
        do not meet.
        """
        return self.way_up(queue, self.common(other, queue))

    def way_up(self, queue: int, end: int) -> list[int]:
        """The queues from this one up to just below `end`; up to root if that is not above it."""
        path = self._paths[queue]
        if end in path:
            return list(path[: path.index(end)])
        return list(path)

    def meetings(self, row: int) -> Rows:
        """For each queue the deepest one above it and this one; see `common`."""
        found = np.full(len(self.queues), -1, dtype=np.intp)
        for above in reversed(self._paths[row]):
            found[self._subtrees[above]] = above
        return found

    @cached_property
    def _subtrees(self) -> list[Rows]:
        return [np.array(self.subtree(row), dtype=np.intp) for row in range(len(self.queues))]

    @cached_property
    def leaves(self) -> Mask:
        return np.array([not children for children in self.children], dtype=np.bool_)

    def parting(self, left: int, right: int) -> tuple[int, int]:
        """Where the ways from root to these two queues part: what is above or at each of them just
        below the deepest common queue.
        """
        ways = zip(reversed(self._paths[left]), reversed(self._paths[right]), strict=False)
        return next((pair for pair in ways if pair[0] != pair[1]), (left, right))

    @cached_property
    def is_only_child(self) -> list[bool]:
        """By row, whether no other queue has the same parent."""
        counts = Counter(self.parent)
        return [counts[parent] == 1 for parent in self.parent]

    @cached_property
    def top_down(self) -> list[int]:
        """All rows, parents before their children."""
        return sorted(range(len(self.queues)), key=lambda row: (self.depth(row), row))

    def add_up(self, sums: Amounts) -> None:
        """Adds what each queue has to all queues above it: level by level from the deepest."""
        for rows, parents in self._levels:
            np.add.at(sums, parents, sums[rows])

    def lower_to_parents(self, amounts: Amounts) -> None:
        """Leaves each queue at most what every queue above it has: level by level from root."""
        for rows, parents in reversed(self._levels):
            amounts[rows] = np.minimum(amounts[rows], amounts[parents])

    @cached_property
    def _levels(self) -> list[tuple[Rows, Rows]]:
        """Rows with a parent and those parents, deepest level first."""
        depths = np.array([self.depth(row) for row in range(len(self.queues))], dtype=np.intp)
        parents = np.array(self.parent, dtype=np.intp)
        levels = range(int(depths.max(initial=0)), 0, -1)
        return [
            (rows, parents[rows])
            for depth in levels
            if len(rows := np.flatnonzero(depths == depth))
        ]
