"""Who has to go: the first node, in victim order, on which enough pods may go to make room for one more."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Job
from scheduler.engine.statement import Statement

Veto = Callable[[Job, int], bool]
"""(victim's job, victim's class) -> may it go, on the sums as they are now?"""

RELEASING = int(PodStatus.RELEASING)
NOBODY: Rows = np.zeros(0, dtype=np.intp)
_FIRST_PIECE = 16
"""A line is looked at piece by piece, each twice as long as the one before: most often the first victims will do."""
_FIRST_SOURCES = 3
"""So many queues are looked at one by one before all that are left are asked at once whether they can help."""


class Source(NamedTuple):
    """Candidates of one queue, put in order only when their turn comes; `may_lose` tells which classes of them the queue may lose now."""

    queue: int
    kinds: Rows
    may_lose: Callable[[Rows], Mask]
    line: Callable[[], Rows]


class Outlook(NamedTuple):
    """Nodes where all who may go could free enough, and the queues that have candidates there."""

    nodes: Mask
    queues: Mask


class VictimPool:
    """Candidates come in victim order and gather on their nodes; the first node with enough of them is where room is made.

    So the victims are those that come first in the order, among all sets that would do. Sums over a whole piece of the line tell at
    which candidates a node has enough; only there is it tried, with every veto asked anew after each eviction.
    """

    _looks_for_help = True  # whether a candidate must free something that is short

    def __init__(
        self,
        session: Session,
        sources: Iterable[Source],
        veto: Veto,
        outlook: Callable[[], Outlook] | None = None,
        *,
        sparing: bool = False,
    ) -> None:
        self.session, self._veto, self._outlook, self._sparing = session, veto, outlook, sparing
        self._pieces = self._cut(iter(sources))
        self._source: Source | None = None
        self._gathered = NOBODY  # candidates that had their turn, in order
        self._piece = NOBODY  # those whose turn it is
        self._promising: deque[int] = deque()  # positions in the piece at which a node has enough
        self._found_in, self._size = (
            -1,
            0,
        )  # the state in which they were found, and how long the piece was then
        self._prospect: Outlook | None = None
        self._pulled = 0  # sources looked at since the last room was made
        self._verdicts: dict[tuple[int, int], tuple[int, bool]] = {}
        self._last, self._touched = (
            -1,
            0,
        )  # where room was made last, and how many changes of nodes there were then

    def make_room(self, statement: Statement, job: Job, kind: int, action: str) -> int:
        """Evicts on one node until a pod of this class fits there and may be counted in; answers the node, -1 if there is none."""
        self._prospect, self._pulled = None, 0
        if self._last >= 0 and self._try(statement, job, kind, self._last, action):
            return self._settle(self._last)
        if not {*self.session.floor.touched[self._touched :]} <= {self._last}:
            self._look_anew(
                kind
            )  # others made room too, so there may be more of it than was thought
        while (pod := self._next(kind)) >= 0:
            node = int(self.session.nodes[pod])
            if not self._may_go(self._job(pod), pod):
                self._look_anew(kind)
            elif self._try(statement, job, kind, node, action):
                return self._settle(node)
        return -1

    def _settle(self, node: int) -> int:
        self._last, self._touched = node, len(self.session.floor.touched)
        return node

    # The line

    def _next(self, kind: int) -> int:
        """The next candidate on whose node all gathered up to it would make room; -1 if there is none left."""
        while not self._promising:
            self._gather(len(self._piece))
            self._piece = next(self._pieces, NOBODY)
            if not len(self._piece):
                return -1
            self._found_in = -1
            self._look_anew(kind)
        self._gather(self._promising.popleft() + 1 - (self._size - len(self._piece)))
        return int(self._gathered[-1])

    def _gather(self, count: int) -> None:
        """The first of the piece had their turn."""
        self._gathered, self._piece = (
            np.concatenate([self._gathered, self._piece[:count]]),
            self._piece[count:],
        )

    def _look_anew(self, kind: int) -> None:
        """Finds the promising positions from here on, unless nothing has changed since they were found."""
        if self._found_in != self.session.book.state:
            self._promising, self._size = deque(self._enough(kind).tolist()), len(self._piece)
            self._found_in = self.session.book.state

    def _cut(self, sources: Iterator[Source]) -> Iterator[Rows]:
        """The lines of all sources in pieces; in the long run only nodes with a prospect and queues with somebody there are looked at."""
        length = _FIRST_PIECE
        for source in sources:
            if not self._may_help(source):
                continue
            self._source, line = source, self._worth_a_look(source.line())
            while len(line) and self._source is source:
                yield line[:length]
                line, length = line[length:], length * 2

    def _may_help(self, source: Source) -> bool:
        self._pulled += 1
        if self._pulled > _FIRST_SOURCES and self._outlook is not None and self._prospect is None:
            self._prospect = self._outlook()
        return bool(
            self._prospect.queues[source.queue]
            if self._prospect is not None
            else source.may_lose(source.kinds).any()
        )

    def _worth_a_look(self, line: Rows) -> Rows:
        """Those on nodes with a prospect who did not have their turn before, as surplus of their job."""
        if self._prospect is not None:
            line = line[self._prospect.nodes[self.session.nodes[line]]]
        return line[~np.isin(line, self._gathered)] if self._sparing else line

    def _enough(self, kind: int) -> Rows:
        """Positions in the piece at which what is free on the node, who gathered there before and the piece up to it make room."""
        usable = np.flatnonzero(self._is_suitable(self._piece, kind) & self._left(self._piece))
        return usable[self._makes_room(self._piece[usable], self._gathered, kind)]

    def _is_suitable(self, pods: Rows, kind: int) -> Mask:
        """Whose nodes the class may run on."""
        node = self.session.nodes[pods]
        suitable: Mask = (node >= 0) & self.session.board(kind).suitable[node]
        return suitable

    def _makes_room(self, pods: Rows, before: Rows, kind: int) -> Rows:
        """Positions of those who, with all on the same node that stand before them, would free enough there: prefix sums by node."""
        session, dims = self.session, np.flatnonzero(self.session.request[kind] > 0)
        node: Rows = session.nodes[pods].astype(np.intp)
        order = np.argsort(node, kind="stable")
        sums: Amounts = np.cumsum(self._frees(pods[order], dims), axis=1)
        nodes, starts, sizes = np.unique(node[order], return_index=True, return_counts=True)
        earlier = np.concatenate([np.zeros((len(dims), 1), dtype=np.int64), sums], axis=1)[
            :, starts
        ]
        at_hand = session.floor.future(nodes)[dims] + self._at_hand(before, nodes, dims) - earlier
        enough = (
            sums + np.repeat(at_hand, sizes, axis=1) >= session.request[kind][dims, None]
        ).all(axis=0)
        return np.sort(order[enough])

    def _left(self, pods: Rows) -> Mask:
        """Whom nobody took meanwhile, and whose queue may still lose them."""
        left: Mask = self.session.status[pods] != RELEASING
        if self._source is None:
            return left
        kinds, may_go = self._source.kinds, self._source.may_lose(self._source.kinds)
        if not may_go.any():
            self._source = (
                None  # in a statement sums only fall: the rest of this queue is out of the question
            )
        return left & may_go[np.searchsorted(kinds, self.session.kinds[pods])]

    def _frees(self, pods: Rows, dims: Rows) -> Amounts:
        """Resources by pods."""
        freed: Amounts = self.session.request[self.session.kinds[pods]].T[dims]
        return freed

    def _at_hand(self, pods: Rows, nodes: Rows, dims: Rows) -> Amounts:
        """What those of these pods that are still there would free on these nodes, resources by nodes."""
        sums = np.zeros((len(dims), len(nodes)), dtype=np.int64)
        if not len(pods):
            return sums
        pods = pods[self.session.status[pods] != RELEASING]
        pods = pods[np.isin(self.session.nodes[pods], nodes)]
        np.add.at(
            sums.T, np.searchsorted(nodes, self.session.nodes[pods]), self._frees(pods, dims).T
        )
        return sums

    # One node

    def _try(self, statement: Statement, job: Job, kind: int, node: int, action: str) -> bool:
        candidates = self._there(node)
        request = self.session.request
        freed = request[[int(self.session.kinds[pod]) for _, pod in candidates]].sum(axis=0)
        if not covers(self.session.floor.future([node])[:, 0] + freed, request[kind]):
            return False
        mark = statement.mark
        self._evict(statement, candidates, job, kind, node, action)
        if not self._is_settled(job, kind, node):
            statement.discard(mark)
            return False
        if self._sparing:
            self._spare(statement, mark, job, kind, node)
        return True

    def _there(self, node: int) -> list[tuple[Job, int]]:
        """Those gathered on the node who may go and have not gone already, for this or another member."""
        session = self.session
        pods = self._gathered[session.nodes[self._gathered] == node]
        pods = pods[session.status[pods] != RELEASING]
        return [
            (victim, pod) for pod in pods.tolist() if self._may_go(victim := self._job(pod), pod)
        ]

    def _job(self, pod: int) -> Job:
        return self.session.job(int(self.session.snapshot.pods.group[pod]))

    def _may_go(self, victim: Job, pod: int) -> bool:
        """The veto, asked once as long as nothing changes."""
        key, state = (victim.row, int(self.session.kinds[pod])), self.session.book.state
        known = self._verdicts.get(key)
        if known is None or known[0] != state:
            known = self._verdicts[key] = (state, self._veto(victim, key[1]))
        return known[1]

    def _evict(
        self,
        statement: Statement,
        candidates: list[tuple[Job, int]],
        job: Job,
        kind: int,
        node: int,
        action: str,
    ) -> None:
        """In order, as long as it is not enough, whoever may go and whose going helps."""
        for victim, pod in candidates:
            if self._is_settled(job, kind, node):
                break
            if self._may_go(victim, pod) and self._helps(job, kind, node, victim, pod):
                statement.evict(victim, pod, action, job)

    def _spare(self, statement: Statement, mark: int, job: Job, kind: int, node: int) -> None:
        """Where gangs are broken, whoever turns out not to be needed after the last victim stays."""
        for operation in reversed(statement.operations[mark:-1]):
            statement.undo(operation)
            if not self._is_settled(job, kind, node):
                statement.redo(operation)

    def _is_settled(self, job: Job, kind: int, node: int) -> bool:
        return self.fits_there(kind, node) and not self.session.full_levels(job.queue, kind)

    def fits_there(self, kind: int, node: int) -> bool:
        return covers(self.session.floor.future([node])[:, 0], self.session.request[kind])

    def _helps(self, job: Job, kind: int, node: int, victim: Job, pod: int) -> bool:
        """While the node is short, whoever is next has to go, but a gang is only broken for what is short. Where the node has room already,
        it is a level above that has none for the newcomer: then only who counts below it helps."""
        session = self.session
        if not self._looks_for_help:
            return True
        if not self.fits_there(kind, node):
            return not self._sparing or self._frees_what_is_short(kind, node, pod)
        above_victim = session.forest.path_list(victim.queue)
        return any(level in above_victim for level in session.full_levels(job.queue, kind))

    def _frees_what_is_short(self, kind: int, node: int, pod: int) -> bool:
        request, gives = self.session.request[kind], self.session.request[self.session.kinds[pod]]
        short = (request > 0) & (self.session.floor.future([node])[:, 0] < request)
        return bool((short & (gives > 0)).any())


def covers(room: Amounts, request: Amounts) -> bool:
    return bool(((room >= request) | (request <= 0)).all())


def fell_apart(victim: Job, known: set[int]) -> bool:
    """Whether this job has just lost its gang, which changes its place among the victims; told once for each job."""
    if victim.ready >= victim.min_member or victim.row in known:
        return False
    known.add(victim.row)
    return True


class PoolMemory:
    """Attempts that failed fail again until something changes: alike jobs of a queue are not tried twice."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._failed: dict[tuple[object, ...], int] = {}

    def knows(self, key: tuple[object, ...]) -> bool:
        return self._failed.get(key) == self._session.book.state

    def remember(self, key: tuple[object, ...]) -> None:
        self._failed[key] = self._session.book.state
