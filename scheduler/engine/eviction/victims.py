"""Who has to go: the first node, in victim order, on which enough pods may go to make room for one
more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.statement import Statement

Veto = Callable[[Gang, int], bool]
"""(victim's gang, victim's class) -> may it go, on the sums as they are now?"""

RELEASING = int(PodStatus.RELEASING)
NOBODY: Rows = np.zeros(0, dtype=np.intp)
_FIRST_PIECE = 16
"""A line is looked at piece by piece, each twice as long as the one before: most often the first
victims will do.
"""
_FIRST_SOURCES = 3
"""So many queues are looked at one by one before all that are left are asked at once whether they
can help.
"""


class Source(NamedTuple):
    """Candidates of one queue, put in order only when their turn comes; `may_lose` tells which
    classes of them the queue may lose now.
    """

    queue: int
    pod_classes: Rows
    may_lose: Callable[[Rows], Mask]
    line: Callable[[], Rows]


class Outlook(NamedTuple):
    """Nodes where all who may go could free enough, and the queues that have candidates there."""

    nodes: Mask
    queues: Mask


class VictimPool:
    """Candidates come in victim order and gather on their nodes; the first node with enough of them
    is where room is made.

    So the victims are those that come first in the order, among all sets that would do. Sums over a
    whole piece of the line tell at which candidates a node has enough; only there is it tried, with
    every veto asked anew after each eviction.
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
        self.session = session
        self._veto = veto
        self._outlook = outlook
        self._sparing = sparing
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

    def make_room(self, statement: Statement, gang: Gang, pod_class: int, action: str) -> int:
        """Evicts on one node until a pod of this class fits there and may be counted in; answers
        the node, -1 if there is none.
        """
        self._prospect = None
        self._pulled = 0
        if self._last >= 0 and self._try(statement, gang, pod_class, self._last, action):
            return self._settle(self._last)
        if not {*self.session.node_table.touched[self._touched :]} <= {self._last}:
            self._look_anew(
                pod_class
            )  # others made room too, so there may be more of it than was thought
        while (pod := self._next(pod_class)) >= 0:
            node = int(self.session.nodes[pod])
            if not self._may_go(self._gang(pod), pod):
                self._look_anew(pod_class)
            elif self._try(statement, gang, pod_class, node, action):
                return self._settle(node)
        return -1

    def _settle(self, node: int) -> int:
        self._last = node
        self._touched = len(self.session.node_table.touched)
        return node

    # The line

    def _next(self, pod_class: int) -> int:
        """The next candidate on whose node all gathered up to it would make room; -1 if there is
        none left.
        """
        while not self._promising:
            self._gather(len(self._piece))
            self._piece = next(self._pieces, NOBODY)
            if not len(self._piece):
                return -1
            self._found_in = -1
            self._look_anew(pod_class)
        self._gather(self._promising.popleft() + 1 - (self._size - len(self._piece)))
        return int(self._gathered[-1])

    def _gather(self, count: int) -> None:
        """The first of the piece had their turn."""
        self._gathered = np.concatenate([self._gathered, self._piece[:count]])
        self._piece = self._piece[count:]

    def _look_anew(self, pod_class: int) -> None:
        """Finds the promising positions from here on, unless nothing has changed since they were
        found.
        """
        if self._found_in != self.session.queue_usage.state:
            self._promising = deque(self._enough(pod_class).tolist())
            self._size = len(self._piece)
            self._found_in = self.session.queue_usage.state

    def _cut(self, sources: Iterator[Source]) -> Iterator[Rows]:
        """The lines of all sources in pieces; in the long run only nodes with a prospect and queues
        with somebody there are looked at.
        """
        length = _FIRST_PIECE
        for source in sources:
            if not self._may_help(source):
                continue
            self._source = source
            line = self._worth_a_look(source.line())
            while len(line) and self._source is source:
                yield line[:length]
                line = line[length:]
                length = length * 2

    def _may_help(self, source: Source) -> bool:
        self._pulled += 1
        if self._pulled > _FIRST_SOURCES and self._outlook is not None and self._prospect is None:
            self._prospect = self._outlook()
        return bool(
            self._prospect.queues[source.queue]
            if self._prospect is not None
            else source.may_lose(source.pod_classes).any()
        )

    def _worth_a_look(self, line: Rows) -> Rows:
        """Those on nodes with a prospect who did not have their turn before, as surplus of their
        gang.
        """
        if self._prospect is not None:
            line = line[self._prospect.nodes[self.session.nodes[line]]]
        if not self._sparing:
            return line
        return line[~np.isin(line, self._gathered)]

    def _enough(self, pod_class: int) -> Rows:
        """Positions in the piece at which what is free on the node, who gathered there before and
        the piece up to it make room.
        """
        usable = np.flatnonzero(self._is_suitable(self._piece, pod_class) & self._left(self._piece))
        return usable[self._makes_room(self._piece[usable], self._gathered, pod_class)]

    def _is_suitable(self, pods: Rows, pod_class: int) -> Mask:
        """Whose nodes the class may run on."""
        node = self.session.nodes[pods]
        suitable: Mask = (node >= 0) & self.session.node_scores(pod_class).suitable[node]
        return suitable

    def _makes_room(self, pods: Rows, before: Rows, pod_class: int) -> Rows:
        """Positions of those who, with all on the same node that stand before them, would free
        enough there: prefix sums by node.
        """
        session = self.session
        dims = np.flatnonzero(self.session.request[pod_class] > 0)
        node: Rows = session.nodes[pods].astype(np.intp)
        order = np.argsort(node, kind="stable")
        sums: Amounts = np.cumsum(self._frees(pods[order], dims), axis=1)
        nodes, starts, sizes = np.unique(node[order], return_index=True, return_counts=True)
        earlier = np.concatenate([np.zeros((len(dims), 1), dtype=np.int64), sums], axis=1)[
            :, starts
        ]
        at_hand = (
            session.node_table.future(nodes)[dims] + self._at_hand(before, nodes, dims) - earlier
        )
        enough = (
            sums + np.repeat(at_hand, sizes, axis=1) >= session.request[pod_class][dims, None]
        ).all(axis=0)
        return np.sort(order[enough])

    def _left(self, pods: Rows) -> Mask:
        """Whom nobody took meanwhile, and whose queue may still lose them."""
        left: Mask = self.session.status[pods] != RELEASING
        if self._source is None:
            return left
        pod_classes = self._source.pod_classes
        may_go = self._source.may_lose(self._source.pod_classes)
        if not may_go.any():
            self._source = (
                None  # in a statement sums only fall: the rest of this queue is out of the question
            )
        return left & may_go[np.searchsorted(pod_classes, self.session.pod_classes[pods])]

    def _frees(self, pods: Rows, dims: Rows) -> Amounts:
        """Resources by pods."""
        freed: Amounts = self.session.request[self.session.pod_classes[pods]].T[dims]
        return freed

    def _at_hand(self, pods: Rows, nodes: Rows, dims: Rows) -> Amounts:
        """What those of these pods that are still there would free on these nodes, resources by
        nodes.
        """
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

    def _try(
        self, statement: Statement, gang: Gang, pod_class: int, node: int, action: str
    ) -> bool:
        candidates = self._there(node)
        request = self.session.request
        freed = request[[int(self.session.pod_classes[pod]) for _, pod in candidates]].sum(axis=0)
        if not covers(self.session.node_table.future([node])[:, 0] + freed, request[pod_class]):
            return False
        mark = statement.mark
        self._evict(statement, candidates, gang, pod_class, node, action)
        if not self._is_settled(gang, pod_class, node):
            statement.discard(mark)
            return False
        if self._sparing:
            self._spare(statement, mark, gang, pod_class, node)
        return True

    def _there(self, node: int) -> list[tuple[Gang, int]]:
        """Those gathered on the node who may go and have not gone already, for this or another
        member.
        """
        session = self.session
        pods = self._gathered[session.nodes[self._gathered] == node]
        pods = pods[session.status[pods] != RELEASING]
        return [
            (victim, pod) for pod in pods.tolist() if self._may_go(victim := self._gang(pod), pod)
        ]

    def _gang(self, pod: int) -> Gang:
        return self.session.gang(int(self.session.snapshot.pods.group[pod]))

    def _may_go(self, victim: Gang, pod: int) -> bool:
        """The veto, asked once as long as nothing changes."""
        key = (victim.row, int(self.session.pod_classes[pod]))
        state = self.session.queue_usage.state
        known = self._verdicts.get(key)
        if known is None or known[0] != state:
            known = self._verdicts[key] = (state, self._veto(victim, key[1]))
        return known[1]

    def _evict(
        self,
        statement: Statement,
        candidates: list[tuple[Gang, int]],
        gang: Gang,
        pod_class: int,
        node: int,
        action: str,
    ) -> None:
        """In order, as long as it is not enough, whoever may go and whose going helps."""
        for victim, pod in candidates:
            if self._is_settled(gang, pod_class, node):
                break
            if self._may_go(victim, pod) and self._helps(gang, pod_class, node, victim, pod):
                statement.evict(victim, pod, action, gang)

    def _spare(
        self, statement: Statement, mark: int, gang: Gang, pod_class: int, node: int
    ) -> None:
        """Where gangs are broken, whoever turns out not to be needed after the last victim stays."""
        for operation in reversed(statement.operations[mark:-1]):
            statement.undo(operation)
            if not self._is_settled(gang, pod_class, node):
                statement.redo(operation)

    def _is_settled(self, gang: Gang, pod_class: int, node: int) -> bool:
        return self.fits_there(pod_class, node) and not self.session.full_levels(
            gang.queue, pod_class
        )

    def fits_there(self, pod_class: int, node: int) -> bool:
        return covers(self.session.node_table.future([node])[:, 0], self.session.request[pod_class])

    def _helps(self, gang: Gang, pod_class: int, node: int, victim: Gang, pod: int) -> bool:
        """While the node is short, whoever is next has to go, but a gang is only broken for what is
        short. Where the node has room already, it is a level above that has none for the newcomer:
        then only who counts below it helps.
        """
        session = self.session
        if not self._looks_for_help:
            return True
        if not self.fits_there(pod_class, node):
            return not self._sparing or self._frees_what_is_short(pod_class, node, pod)
        above_victim = session.queue_tree.path_list(victim.queue)
        return any(level in above_victim for level in session.full_levels(gang.queue, pod_class))

    def _frees_what_is_short(self, pod_class: int, node: int, pod: int) -> bool:
        request = self.session.request[pod_class]
        gives = self.session.request[self.session.pod_classes[pod]]
        short = (request > 0) & (self.session.node_table.future([node])[:, 0] < request)
        return bool((short & (gives > 0)).any())


def covers(room: Amounts, request: Amounts) -> bool:
    return bool(((room >= request) | (request <= 0)).all())


def fell_apart(victim: Gang, known: set[int]) -> bool:
    """Whether this gang has just fallen below its minimum, which changes its place among the
    victims; true once for each gang.
    """
    if victim.ready >= victim.min_member or victim.row in known:
        return False
    known.add(victim.row)
    return True


class PoolMemory:
    """Attempts that failed fail again until something changes: alike gangs of a queue are not tried
    twice.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._failed: dict[tuple[object, ...], int] = {}

    def knows(self, key: tuple[object, ...]) -> bool:
        return self._failed.get(key) == self._session.queue_usage.state

    def remember(self, key: tuple[object, ...]) -> None:
        self._failed[key] = self._session.queue_usage.state
