"""Victims in other queues for the pods of one gang, which takes back what is its queue's own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial

import numpy as np

from scheduler.domain.codes import StatusCode
from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows
from scheduler.engine.eviction.alike import (
    RoomMemory,
    all_keep_their_minimum,
    gangs_of,
    is_as_large,
    rows_of,
    swap,
)
from scheduler.engine.eviction.candidates import RunningPods
from scheduler.engine.eviction.node_evictions import BrokenGangs, Veto
from scheduler.engine.eviction.victims import FIRST_PIECE, Outlook, Source, VictimPool
from scheduler.engine.ordering import VictimOrder
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.statement import Statement

_ROUNDED_UP = 1 + 1e-9
"""Sums of large amounts as floats may be a little too small; a bound must not be."""


class QueueVetoes:
    """What queues may lose to this one for a pod of one class, on the sums as they are now."""

    def __init__(self, session: Session, queue: int, pod_class: int, *, undershoot: bool) -> None:
        self.session = session
        self.queue = queue
        self.pod_class = pod_class
        self.undershoot = undershoot  # whether a queue may fall below what it deserves
        self._state = -1  # the sums that the answers are about
        self._answers: dict[tuple[int, ...], Mask] = {}

    def may_lose(self, queues: Rows, pod_classes: Rows, count: int = 1) -> Mask:
        """For each queue and the class beside it, so many pods one after the other."""
        session = self.session
        may_go = session.may_take_from(self.queue, self.pod_class, queues, pod_classes, count)
        if self.undershoot:
            return may_go
        return may_go & session.keeps_deserved(queues, pod_classes, self.pod_class, count)

    def may_lose_of(self, queue: int, pod_classes: Rows, count: int = 1) -> Mask:
        """Which of these classes this queue may lose; asked once as long as nothing changes."""
        state = self.session.queue_usage.state
        if self._state != state:
            self._state = state
            self._answers.clear()
        key = (queue, count, *pod_classes.tolist())
        if key not in self._answers:
            queues = np.full(len(pod_classes), queue)
            self._answers[key] = self.may_lose(queues, pod_classes, count)
        return self._answers[key]


class ReclaimSearch:
    """Preferred are victims that leave their queue at or above its deserved.

    `reclaimable` marks queues that have something to lose. `breaking` allows to go below the
    minimum of a gang, `strict` forbids to go below what a queue deserves.
    """

    def __init__(
        self,
        session: Session,
        running: RunningPods,
        reclaimable: Mask,
        gang: Gang,
        room: RoomMemory,
        *,
        breaking: bool,
        strict: bool,
    ) -> None:
        self.session = session
        self.running = running
        self.reclaimable = reclaimable
        self.gang = gang
        self.room = room
        self.breaking = breaking
        self.strict = strict
        # It found idle room where nobody could be reclaimed: that is for allocate to give.
        self.is_left_to_allocate = False
        self._pools: dict[tuple[int, bool], VictimPool] = {}
        self._broken = BrokenGangs()
        self._surplus_lines: dict[int, Rows] = {}
        self._order: VictimOrder | None = None
        self._one_by_one = False  # many at once was tried in vain

    def place(self, statement: Statement, pod: int) -> bool:
        """Without any eviction if there is room; else on the first node where enough may go."""
        pod_class = int(self.session.pod_classes[pod])
        if not self._may_reclaim(pod_class):
            return False
        mark = statement.mark
        node = self._room_now(pod_class)
        if node < 0:
            node = self._make_room(statement, pod_class)
        if node < 0:
            return False
        self._follow_victims(statement.victims_since(mark))
        statement.pipeline(self.gang, pod_class, [pod], [node])
        return True

    def place_alike(self, statement: Statement, pods: list[int]) -> int:
        """Several pods of one class at once, if they and their victims go one for one.

        Answers how many have a place; 0 if the next pod has to be placed on its own.
        """
        pod_class = int(self.session.pod_classes[pods[0]])
        if self._one_by_one or len(pods) < 2 or not self._may_reclaim(pod_class):
            return 0
        if self.room.is_there_for(pod_class):
            return 0
        before = self.room.changes
        if self._swap_with_head_of_line(statement, pod_class, pods):
            self.room.is_as_before(pod_class, before)
            return len(pods)
        pool = self._pool(pod_class, undershoot=False)
        victims = pool.next_alike(pod_class, len(pods))
        if len(victims) == 1:
            return 0
        if not victims or not self._swap(statement, pods[: len(victims)], victims):
            self._one_by_one = True
            return 0
        self.room.is_as_before(pod_class, before)
        pool.settle(len(victims))
        return len(victims)

    def _swap_with_head_of_line(
        self, statement: Statement, pod_class: int, pods: list[int]
    ) -> bool:
        """The same for the whole gang, where only one queue may lose and those whose turn is first
        are all alike: then it is clear who would go, without a pool.
        """
        if len(pods) != self.gang.missing or self.breaking or len(self._losing_queues) != 1:
            return False
        head = self._head_of_line(self._losing_queues[0])
        if len(head) < len(pods) or not self._are_all_alike(pod_class, head):
            return False
        return self._swap(statement, pods, head[: len(pods)].tolist())

    def _head_of_line(self, queue: int) -> Rows:
        """The first piece of what the queue's gangs can spare, without those who went."""
        if queue in self._surplus_lines:
            line = self._surplus_lines[queue]
            left: Rows = line[self.session.status[line] != StatusCode.RELEASING]
            return left[:FIRST_PIECE]
        sparing = self.session.gangs_are_spared
        return self.running.first_of_line(queue, FIRST_PIECE, sparing=sparing)

    def _are_all_alike(self, pod_class: int, head: Rows) -> bool:
        """Whether all of them are of one class, as large as the pod, on nodes that would do."""
        session = self.session
        classes = session.pod_classes[head].tolist()
        if len(set(classes)) > 1 or not is_as_large(session, classes[0], pod_class):
            return False
        nodes = session.nodes[head]
        if not session.node_scores(pod_class).suitable[nodes].all() or (nodes < 0).any():
            return False
        return not self.room.is_over_full(pod_class)

    def _swap(self, statement: Statement, pods: list[int], victims: list[int]) -> bool:
        session = self.session
        pod_class = int(session.pod_classes[pods[0]])
        victim_class = int(session.pod_classes[victims[0]])
        losing = gangs_of(session, victims)
        queue = next(iter(losing)).queue
        if not all_keep_their_minimum(losing):
            return False
        if not session.may_take_one(self.gang.queue, pod_class, queue, victim_class, len(victims)):
            return False
        rows, classes = rows_of(losing, victim_class)

        def agreed() -> bool:
            if len(self._losing_queues) > 1 and not self.order.holds_without(queue):
                return False
            if not session.preemptive(self.gang.queue, pod_class):
                return False
            if session.full_levels(self.gang.queue, pod_class):
                return False
            # The plugin gang is not asked: they keep their minimum.
            agrees = session.agree_to_reclaim(self.gang, pod_class, rows, classes, without="gang")
            return bool(agrees.all())

        return swap(statement, self.gang, pods, victims, "reclaim", agreed)

    def _may_reclaim(self, pod_class: int) -> bool:
        session = self.session
        if not session.snapshot.classes.preempts[pod_class]:
            return False
        if not session.preemptive(self.gang.queue, pod_class):
            return False
        return session.node_scores(pod_class).fits_an_empty_node

    def _room_now(self, pod_class: int) -> int:
        """Room as it is, on a node where it could reclaim, as in Volcano.

        Any other node will do too, but is for allocate to give. -1 if there is none.
        """
        if self.session.full_levels(self.gang.queue, pod_class):
            return -1
        node = self.session.room_for(pod_class)
        if node < 0:
            return -1
        candidates = self._candidate_nodes()
        if candidates[node]:
            return node
        other = self.session.node_scores(pod_class).best_node_among(candidates)
        if other >= 0:
            return other
        self.is_left_to_allocate = True
        return node

    def _candidate_nodes(self) -> Mask:
        """Nodes on which pods run that this queue could ever reclaim."""
        running = self.running
        mask = np.zeros(len(self.session.node_table.names) + 1, dtype=np.bool_)
        may_go = self.reclaimable[running.queue] & (running.queue != self.gang.queue)
        may_go &= self.session.status[running.pods] == StatusCode.RUNNING
        mask[running.node[may_go]] = True
        return mask[:-1]  # the last entry is for pods without a node

    def _make_room(self, statement: Statement, pod_class: int) -> int:
        node = self._pool(pod_class, undershoot=False).make_room(
            statement, self.gang, pod_class, "reclaim"
        )
        if node >= 0 or self.strict:
            return node
        return self._pool(pod_class, undershoot=True).make_room(
            statement, self.gang, pod_class, "reclaim"
        )

    def _follow_victims(self, victims: list[Gang]) -> None:
        """The victims of each pod come in the order of its time.

        Where those of the last pod changed the order, the next one begins anew.
        """
        newly_broken = [victim for victim in victims if self._broken.is_news(victim)]
        if newly_broken:
            self._surplus_lines.clear()
        if newly_broken or not all(self.order.holds_without(victim.queue) for victim in victims):
            self._pools.clear()
            self._order = None

    # Candidates

    @property
    def order(self) -> VictimOrder:
        if self._order is None:
            self._order = VictimOrder(self.session, self.gang.queue, self._losing_queues)
        return self._order

    @cached_property
    def _losing_queues(self) -> list[int]:
        """Queues other than its own that have something to lose."""
        queues = np.flatnonzero(self.reclaimable)
        is_losing = (queues != self.gang.queue) & self.session.has_too_much(queues)
        losing: list[int] = queues[is_losing].tolist()
        return losing

    def _pool(self, pod_class: int, *, undershoot: bool) -> VictimPool:
        key = (pod_class, undershoot)
        if key not in self._pools:
            queue = self.gang.queue
            vetoes = QueueVetoes(self.session, queue, pod_class, undershoot=undershoot)
            self._pools[key] = VictimPool(
                self.session,
                self._sources(vetoes),
                self._veto(vetoes),
                partial(self._outlook, vetoes),
                sparing=self.breaking,
            )
        return self._pools[key]

    def _veto(self, vetoes: QueueVetoes) -> Veto:
        gang = self.gang
        without = "gang" if self.breaking else ""
        asks = self.session.reclaim_vetoes(without=without)

        def may_go(victim: Gang, victim_class: int) -> bool:
            if not vetoes.may_lose_of(victim.queue, np.array([victim_class]))[0]:
                return False
            return all(ask(gang, vetoes.pod_class, victim, victim_class) for ask in asks)

        return may_go

    def _sources(self, vetoes: QueueVetoes) -> Iterator[Source]:
        """Surplus of gangs first; when gangs may be broken, then whole gangs.

        Of those, starving ones and small ones come first.
        """
        lines = [self._surplus_line]
        if self.breaking:
            lines.append(self.running.whole_gangs)
        queues = self.order.queues
        for line in lines:
            for queue in queues:
                classes = self.running.pod_classes_of(queue)
                may_lose = partial(vetoes.may_lose_of, queue)
                yield Source(queue, classes, may_lose, partial(line, queue))

    def _surplus_line(self, queue: int) -> Rows:
        """What the queue's gangs can spare, where that counts.

        It keeps the order in which it was found first, until a gang falls below its minimum.
        """
        if queue not in self._surplus_lines:
            self._surplus_lines[queue] = self._new_surplus_line(queue)
        return self._surplus_lines[queue]

    def _new_surplus_line(self, queue: int) -> Rows:
        if self.breaking:
            return self.running.surplus(queue)
        return self.running.last_first(queue, sparing=self.session.gangs_are_spared)

    # Outlook

    def _outlook(self, vetoes: QueueVetoes) -> Outlook:
        """Where all who may go, were they to go at once, would free enough for a pod.

        A bound, not a promise.
        """
        session = self.session
        running = self.running
        request = session.request[vetoes.pod_class]
        may_go = self._may_go(vetoes)
        future = session.node_table.future()
        nodes = session.node_scores(vetoes.pod_class).suitable.copy()
        for dim in np.flatnonzero(request > 0).tolist():
            freed = running.amounts_by_node(may_go, dim) * _ROUNDED_UP
            nodes &= future[dim] + freed >= request[dim]
        queues = np.zeros(len(session.queue_tree), dtype=np.bool_)
        is_there = nodes[running.node[may_go]]
        queues[running.queue[may_go][is_there]] = True
        return Outlook(nodes, queues)

    def _may_go(self, vetoes: QueueVetoes) -> Mask:
        """Candidates of the losing queues that neither their queue nor their gang keeps."""
        session = self.session
        running = self.running
        of_queue, of_class, pair = running.pairs
        is_losing = np.isin(of_queue, self._losing_queues)
        may_go: Mask = (vetoes.may_lose(of_queue, of_class) & is_losing)[pair]
        may_go &= (running.node >= 0) & (session.status[running.pods] != StatusCode.RELEASING)
        if session.gangs_are_spared and not self.breaking:
            group = session.snapshot.pods.group[running.pods]
            may_go &= session.ready_counts[group] > session.snapshot.groups.min_member[group]
        return may_go
