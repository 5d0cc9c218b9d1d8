"""Who has to go: the first node, in victim order, on which enough pods may go for one more."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows
from scheduler.engine.eviction.alike import alike_victims
from scheduler.engine.eviction.node_evictions import NOBODY, RELEASING, NodeEvictions, Veto
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.statement import Statement

FIRST_PIECE = 16
"""A line is looked at piece by piece, each twice as long as the one before.

Most often the first victims will do.
"""
_FIRST_SOURCES = 3
"""So many queues are looked at one by one before all that are left are asked at once."""


class Source(NamedTuple):
    """Candidates of one queue, put in order only when their turn comes."""

    queue: int
    pod_classes: Rows
    may_lose: Callable[[Rows], Mask]
    """Which of these classes the queue may lose now."""
    line: Callable[[], Rows]


class Outlook(NamedTuple):
    """Nodes where all who may go could free enough, and the queues that have candidates there."""

    nodes: Mask
    queues: Mask


class VictimPool(NodeEvictions):
    """Candidates come in victim order; the first node with enough of them is where room is made.

    So the victims are those that come first in the order, among all sets that would do. Sums over
    a whole piece of the line tell at which candidates a node has enough. Only there it is tried.
    """

    def __init__(
        self,
        session: Session,
        sources: Iterable[Source],
        veto: Veto,
        outlook: Callable[[], Outlook],
        *,
        sparing: bool = False,
    ) -> None:
        super().__init__(session, veto, sparing=sparing)
        self._pieces = self._cut(iter(sources))
        self._source: Source | None = None
        self._piece = NOBODY  # candidates whose turn it is
        self._promising: deque[int] = deque()  # positions in the piece at which a node has enough
        self._found_in = -1  # the state in which they were found
        self._found_length = 0  # how long the piece was then
        self._ask_outlook = outlook
        self._outlook: Outlook | None = None
        self._sources_seen = 0  # since room was made last
        self._last_node = -1  # where room was made last
        # How many changes of nodes there were then; before that, nothing has been looked at
        self._changes_seen = len(session.node_table.touched)

    def make_room(self, statement: Statement, gang: Gang, pod_class: int, action: str) -> int:
        """Evicts on one node until a pod of this class fits there and may be counted in.

        Answers the node, -1 if there is none.
        """
        self._outlook = None
        self._sources_seen = 0
        last = self._last_node
        if last >= 0 and self.evict_on(statement, gang, pod_class, last, action):
            return self._settle_on(last)
        if not {*self.session.node_table.touched[self._changes_seen :]} <= {last}:
            # Others made room too, so there may be more of it than was thought.
            self._look_anew(pod_class)
        while (pod := self._next_promising(pod_class)) >= 0:
            node = int(self.session.nodes[pod])
            if not self._may_go(pod):
                self._look_anew(pod_class)
            elif self.evict_on(statement, gang, pod_class, node, action):
                return self._settle_on(node)
        return -1

    # Many at once

    def next_alike(self, pod_class: int, count: int) -> list[int]:
        """The next candidates, at most so many, that would go one for each pod of this class.

        All are as large as the pod, and nobody else is gathered on their nodes. Nobody goes yet.
        """
        self._outlook = None
        self._sources_seen = 0
        if self._last_node >= 0 and len(self._still_on(self._gathered, [self._last_node])):
            return []
        if not {*self.session.node_table.touched[self._changes_seen :]} <= {self._last_node}:
            self._look_anew(pod_class)
        if not self._find_promising(pod_class):
            return []
        places = self._next_places(count)
        victims = alike_victims(self.session, pod_class, self._piece[places])
        if self._others_are_there(victims, int(places[-1]) + 1):
            return []
        return victims.tolist()  # type: ignore[no-any-return]

    def _others_are_there(self, victims: Rows, reached: int) -> bool:
        """Whether others are gathered on the nodes of these victims, when the line is gathered up
        to here.
        """
        if not len(self._gathered) and reached == len(victims):
            return False
        gathered = np.concatenate([self._gathered, self._piece[:reached]])
        nodes = self.session.nodes[victims].tolist()
        return len(self._still_on(gathered, nodes)) > len(victims)

    def settle(self, count: int) -> None:
        """So many of the next candidates went."""
        places = self._next_places(count)
        for _ in range(count):
            self._promising.popleft()
        self._gather(int(places[-1]) + 1)
        self._settle_on(int(self.session.nodes[self._gathered[-1]]))

    def _next_places(self, count: int) -> Rows:
        """The next promising positions, counted from where the piece begins now."""
        gathered_of_piece = self._found_length - len(self._piece)
        return np.array(list(islice(self._promising, count)), dtype=np.intp) - gathered_of_piece

    def _still_on(self, pods: Rows, nodes: list[int]) -> Rows:
        """Those of these pods that are on one of these nodes and have not gone."""
        session = self.session
        is_there = np.isin(session.nodes[pods], nodes) & (session.status[pods] != RELEASING)
        there: Rows = pods[is_there]
        return there

    def _settle_on(self, node: int) -> int:
        self._last_node = node
        self._changes_seen = len(self.session.node_table.touched)
        return node

    # The line

    def _next_promising(self, pod_class: int) -> int:
        """The next candidate on whose node all gathered up to it would make room; -1 if none."""
        if not self._find_promising(pod_class):
            return -1
        gathered_of_piece = self._found_length - len(self._piece)
        self._gather(self._promising.popleft() + 1 - gathered_of_piece)
        return int(self._gathered[-1])

    def _find_promising(self, pod_class: int) -> bool:
        """Goes on to the next piece with a promising candidate; False at the end of the line."""
        while not self._promising:
            self._gather(len(self._piece))
            self._piece = next(self._pieces, NOBODY)
            if not len(self._piece):
                return False
            self._found_in = -1
            self._look_anew(pod_class)
        return True

    def _gather(self, count: int) -> None:
        """The first of the piece had their turn."""
        self._gathered = np.concatenate([self._gathered, self._piece[:count]])
        self._piece = self._piece[count:]

    def _look_anew(self, pod_class: int) -> None:
        """Finds the promising positions from here on, unless nothing changed since."""
        state = self.session.queue_usage.state
        if self._found_in != state:
            self._promising = deque(self._promising_positions(pod_class).tolist())
            self._found_length = len(self._piece)
            self._found_in = state

    def _promising_positions(self, pod_class: int) -> Rows:
        """Positions in the piece at which the node has enough.

        What is free there counts, who gathered there before, and the piece up to the position.
        """
        is_usable = self._is_suitable(self._piece, pod_class) & self._is_left(self._piece)
        usable = np.flatnonzero(is_usable)
        found = self._positions_with_room(self._piece[usable], self._gathered, pod_class)
        return usable[found]

    def _is_left(self, pods: Rows) -> Mask:
        """Whom nobody took meanwhile, and whose queue may still lose them."""
        is_left: Mask = self.session.status[pods] != RELEASING
        if self._source is None:
            return is_left
        classes = self._source.pod_classes
        may_go = self._source.may_lose(classes)
        if not may_go.any():
            # In a statement sums only fall: the rest of this queue is out of the question.
            self._source = None
        return is_left & may_go[np.searchsorted(classes, self.session.pod_classes[pods])]

    # The sources

    def _cut(self, sources: Iterator[Source]) -> Iterator[Rows]:
        """The lines of all sources in pieces.

        In the long run only nodes with an outlook, and queues with candidates there, are looked at.
        """
        length = FIRST_PIECE
        for source in sources:
            if not self._may_help(source):
                continue
            self._source = source
            line = self._worth_a_look(source.line())
            while len(line) and self._source is source:
                yield line[:length]
                line = line[length:]
                length *= 2

    def _may_help(self, source: Source) -> bool:
        self._sources_seen += 1
        if self._sources_seen > _FIRST_SOURCES and self._outlook is None:
            self._outlook = self._ask_outlook()
        if self._outlook is not None:
            return bool(self._outlook.queues[source.queue])
        return bool(source.may_lose(source.pod_classes).any())

    def _worth_a_look(self, line: Rows) -> Rows:
        """Those on nodes with an outlook who did not have their turn before, as surplus."""
        if self._outlook is not None:
            line = line[self._outlook.nodes[self.session.nodes[line]]]
        if self._sparing:
            line = line[~np.isin(line, self._gathered)]
        return line
