"""Who is next: queues as a tournament in the tree, gangs as a line for each queue.

This module keeps the lines. What is compared comes from the plugins, in the order of the policy:
`queue_key` and `job_key` in `scheduler/engine/plugins/`, first of all `shares.py`, `capacity.py`
and `priority.py`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from scheduler.domain.tables import GroupTable, Rows
from scheduler.engine.plugin import Column
from scheduler.engine.state.gang import Gang

if TYPE_CHECKING:
    from scheduler.engine.session import Session

_TOP = -1
_NO_RIVAL: Final = ()
"""The key of a queue that is compared with no other."""


def _none(_: Rows) -> int:
    return 0


class QueueLine:
    """The queues that still have work.

    Two queues are compared by their ancestors just below the deepest common one, then by
    themselves.

    Each parent keeps a heap of its children; a placement changes the keys of one path only, so only
    that path is entered anew and what was there before goes stale.
    """

    def __init__(self, session: Session, queues: Iterable[int]) -> None:
        self._session = session
        self._above = session.queue_tree.parent
        self._is_only_child = session.queue_tree.is_only_child
        self._heaps: dict[int, list[tuple[Any, int, int]]] = {_TOP: []}
        self._stamps: dict[int, int] = {}
        self._inside: set[int] = set()
        for queue in queues:
            self.enter(queue)

    def enter(self, queue: int) -> None:
        """The queue is in the line; called again, its place is found anew, from its shares as they
        are now. A queue that is alone needs no place before others come.
        """
        if len(self._inside) == 1:
            if queue in self._inside:
                return
            self._find_place(*self._inside)
        self._inside.add(queue)
        self._find_place(queue)

    def _find_place(self, queue: int) -> None:
        row = queue
        leaf_key = self._session.queue_key(queue)
        while row != _TOP:
            if not self._is_only_child[row]:
                best = self._best_below(row)
                below_key = leaf_key if best in (-1, queue) else self._session.queue_key(best)
                self._push(row, (self._session.layer_key(row), below_key))
            elif not self._current(self._above[row]):
                self._push(row, _NO_RIVAL)
            row = self._above[row]

    def is_alone(self, queue: int) -> bool:
        """Whether no other queue is in the line."""
        return len(self._inside) == 1 and queue in self._inside

    def leave(self, queue: int) -> None:
        """The queue has no work left, or must not have any."""
        self._inside.discard(queue)
        row = queue
        self._stamps[row] = self._stamps.get(row, 0) + 1
        while self._above[row] != _TOP:
            row = self._above[row]
            best = self._best_below(row)
            if best < 0:
                self._stamps[row] = self._stamps.get(row, 0) + 1
            elif not self._is_only_child[row]:
                self._push(row, (self._session.layer_key(row), self._session.queue_key(best)))

    def best(self) -> int:
        """The queue whose turn it is; -1 when the line is empty."""
        return self._best_below(_TOP)

    def _push(self, row: int, key: Any) -> None:
        stamp = self._stamps[row] = self._stamps.get(row, 0) + 1
        heapq.heappush(self._heaps.setdefault(self._above[row], []), (key, stamp, row))

    def _best_below(self, row: int) -> int:
        """The best leaf below this queue, itself if it is one; -1 if nobody below is in line."""
        while row in self._heaps:
            heap = self._current(row)
            if not heap:
                return -1
            row = heap[0][2]
        return row

    def _current(self, parent: int) -> list[tuple[Any, int, int]]:
        """The heap of this parent, with nothing stale in front."""
        heap = self._heaps.get(parent, [])
        while heap and heap[0][1] != self._stamps[heap[0][2]]:
            heapq.heappop(heap)
        return heap


def in_queue_order(session: Session, queues: Iterable[int]) -> list[int]:
    """All these queues as the line would call them, if nothing changed in between."""
    queues = list(queues)
    if len(queues) == 1:
        return queues
    below: dict[int, set[int]] = {_TOP: set()}
    for queue in queues:
        _hang_up(below, queue, session.queue_tree.parent)
    return _called(session, below, _TOP)


def _hang_up(below: dict[int, set[int]], queue: int, above: list[int]) -> None:
    """Notes the queue under its parent, and so on up to the top."""
    row = queue
    while row != _TOP:
        siblings = below.setdefault(above[row], set())
        if row in siblings:
            return
        siblings.add(row)
        row = above[row]


def _called(session: Session, below: dict[int, set[int]], row: int) -> list[int]:
    """The leaves below in order: child after child; children that plugins rank equal take turns,
    the one with the better leaf first.
    """
    if row not in below:
        return [row]
    ranked: dict[Any, list[int]] = {}
    for child in below[row]:
        ranked.setdefault(session.layer_key(child), []).append(child)
    ordered: list[int] = []
    for rank in sorted(ranked):
        lines = [_called(session, below, child) for child in ranked[rank]]
        ordered.extend(heapq.merge(*lines, key=session.queue_key) if len(lines) > 1 else lines[0])
    return ordered


def is_called_before(session: Session, left: int, right: int) -> bool:
    """Whether the line would call this queue before that one, as things are now."""
    ours, theirs = session.queue_tree.parting(left, right)
    return (session.layer_key(ours), session.queue_key(left)) < (
        session.layer_key(theirs),
        session.queue_key(right),
    )


class VictimOrder:
    """Queues that may lose to one of them: nearest to it in the tree first, then the reverse of the
    order in which they are called.
    """

    def __init__(self, session: Session, own: int, losing: Iterable[int]) -> None:
        self._session = session
        queue_tree = session.queue_tree
        order = in_queue_order(session, losing)
        order.reverse()
        self._distance = {
            queue: -queue_tree.depth(queue_tree.common(own, queue)) for queue in order
        }
        self.queues = sorted(order, key=self._distance.__getitem__)
        self._last = {
            row: place
            for place, queue in enumerate(self.queues)
            for row in queue_tree.path_list(queue)
        }

    def holds_without(self, queue: int) -> bool:
        """Whether the order is still right after this queue lost something: only it and the levels
        above it can have moved, backwards.
        """
        return not any(
            self._is_overtaken(self._last[row])
            for row in self._session.queue_tree.path_list(queue)
            if row in self._last
        )

    def _is_overtaken(self, place: int) -> bool:
        """Whether the queue behind this place would come before it now."""
        if place + 1 >= len(self.queues):
            return False
        queue = self.queues[place]
        follower = self.queues[place + 1]
        return self._distance[queue] == self._distance[follower] and is_called_before(
            self._session, queue, follower
        )


class _Line:
    """Podgroups in order; those before `first` had their turn."""

    __slots__ = ("first", "ordered", "rows")

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.ordered: list[int] = rows.tolist()
        self.first = 0

    @property
    def is_left(self) -> bool:
        return self.first < len(self.ordered)

    def left(self) -> Rows:
        return self.rows[self.first :]

    def head(self, count: int) -> Rows:
        return self.rows[self.first : self.first + count]

    def take(self) -> int:
        self.first += 1
        return self.ordered[self.first - 1]


_NOBODY: Final = _Line(np.zeros(0, dtype=np.intp))


class GangLines:
    """A line of gangs for each queue, by their keys.

    It is made of rows of podgroups. A gang is made of a row when its turn comes: where many wait,
    most are not even tried. `may_be_tried` leaves gangs out. It is asked when they are next.
    """

    def __init__(
        self,
        session: Session,
        rows: Rows,
        may_be_tried: Callable[[Gang], bool] | None = None,
    ) -> None:
        self._session = session
        self._may_be_tried = may_be_tried
        self._lines = _lines_by_queue(session, rows)
        self._again: dict[int, list[tuple[Any, Gang]]] = {}

    @classmethod
    def of(cls, session: Session, gangs: Iterable[Gang]) -> GangLines:
        return cls(session, np.array([gang.row for gang in gangs], dtype=np.intp))

    def queues(self) -> list[int]:
        return sorted(self._lines)

    def pop(self, queue: int, count_settled: Callable[[Rows], int] = _none) -> Gang | None:
        """The next gang of the queue; None when there is none left.

        `count_settled` tells how many at the head of a line need not be tried.
        """
        line = self._lines.get(queue, _NOBODY)
        again = self._again.get(queue)
        while line.is_left or again:
            if again and self._is_next_again(again, line):
                return heapq.heappop(again)[1]
            settled = count_settled(line.head(1) if again else line.left())
            if settled:
                line.first += settled
                continue
            gang = self._session.gang(line.take())
            if self._may_be_tried is None or self._may_be_tried(gang):
                return gang
        return None

    def waiting_for_first_turn(self, queue: int) -> Rows:
        """Those in the line in order, if nobody who had a turn before waits for another one."""
        if self._again.get(queue):
            return _NOBODY.rows
        return self._lines.get(queue, _NOBODY).left()

    def next_row(self, queue: int) -> int:
        """The first of them; -1 if there is none."""
        line = self._lines.get(queue, _NOBODY)
        if not line.is_left or self._again.get(queue):
            return -1
        return line.ordered[line.first]

    def drop_first(self, queue: int, count: int = 1) -> None:
        """So many of them had their turn."""
        self._lines[queue].first += count

    def _is_next_again(self, again: list[tuple[Any, Gang]], line: _Line) -> bool:
        """Whether a gang that had its turn before comes before the first of the line."""
        if not line.is_left:
            return True
        following = self._session.gang(line.ordered[line.first])
        return bool(again[0][0] < self._session.job_key(following))

    def rest(self, queue: int) -> list[Gang]:
        """Those still in the line, in order."""
        line = self._lines.get(queue, _NOBODY)
        gangs = [self._session.gang(row) for row in line.left().tolist()]
        if self._may_be_tried is not None:
            gangs = [gang for gang in gangs if self._may_be_tried(gang)]
        gangs.extend(gang for _, gang in self._again.get(queue, ()))
        return sorted(gangs, key=self._session.job_key)

    def push(self, gang: Gang) -> None:
        """The gang wants another turn, at the place it has now."""
        again = self._again.setdefault(gang.queue, [])
        heapq.heappush(again, (self._session.job_key(gang), gang))


def _lines_by_queue(session: Session, rows: Rows) -> dict[int, _Line]:
    if not len(rows):
        return {}
    groups = session.snapshot.groups
    queues = groups.queue[rows]
    columns = [queues, *session.gang_ranks(rows), groups.created[rows]]
    order = np.lexsort(columns[::-1])
    ordered = rows[order]
    for first, last in _ties([column[order] for column in columns]):
        tied = ordered[first:last].tolist()
        ordered[first:last] = sorted(tied, key=groups.key.__getitem__)
    queues = queues[order]
    bounds = [0, *(np.flatnonzero(queues[1:] != queues[:-1]) + 1).tolist(), len(ordered)]
    return {int(queues[first]): _Line(ordered[first:last]) for first, last in pairwise(bounds)}


def oldest_first(groups: GroupTable, rows: Rows) -> Iterator[int]:
    """These podgroups by age, those of the same moment by name."""
    order = np.argsort(groups.created[rows], kind="stable")
    created = groups.created[rows[order]]
    bounds = [*(np.flatnonzero(created[1:] != created[:-1]) + 1).tolist(), len(rows)]
    ordered = rows[order].tolist()
    first = 0
    for last in bounds:
        yield from sorted(ordered[first:last], key=groups.key.__getitem__)
        first = last


def _ties(columns: list[Column]) -> list[tuple[int, int]]:
    """From where to where the same numbers stand side by side in all columns."""
    same = np.zeros(len(columns[0]) + 1, dtype=np.bool_)
    same[1:-1] = True
    for column in columns:
        same[1:-1] &= column[1:] == column[:-1]
    edges = np.flatnonzero(same[1:] != same[:-1])
    return list(zip(edges[::2].tolist(), (edges[1::2] + 1).tolist(), strict=True))
