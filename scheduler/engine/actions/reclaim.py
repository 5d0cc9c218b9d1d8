"""Reclaim: across queues, a queue takes back what is its own from those that have more than theirs,
nearest in the tree first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.actions.reclaim_gangs import GangReclamation
from scheduler.engine.arguments import boolean
from scheduler.engine.eviction.candidates import RunningPods
from scheduler.engine.eviction.victims import (
    Outlook,
    PoolMemory,
    Source,
    Veto,
    VictimPool,
    fell_apart,
)
from scheduler.engine.ordering import GangLines, QueueLine, VictimOrder
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.statement import OperationType, Statement

_STATUSES = (PodStatus.RUNNING,)
_ROUNDED_UP = 1 + 1e-9
"""Sums of large amounts as floating point numbers may be a little too small; a bound must not be.
"""


def reclaim(session: Session) -> None:
    """Nothing is evicted unless the whole gang that asks gets its place."""
    starving = session.starving_gangs()
    if not starving or not session.names_victims:
        return
    if boolean(session.policy.configurations.get("reclaim", {}), "wholeGangs", False):
        GangReclamation(session, starving).run()
    else:
        Reclamation(session, starving).run()


class Reclamation:
    """Configuration: `breakGangs` true, `strictDeserved` false, `suspendedVictims` protect."""

    def __init__(self, session: Session, starving: list[Gang]) -> None:
        self.session = session
        settings = session.policy.configurations.get("reclaim", {})
        self.breaks_gangs = boolean(settings, "breakGangs", True)
        self.strict = boolean(settings, "strictDeserved", False)
        self.running = RunningPods(session, _STATUSES, borrowed_first=True)
        self.memory = PoolMemory(session)
        self.gangs = GangLines(session, starving)
        self.queues = QueueLine(session, self.gangs.queues())

    def run(self) -> None:
        while (queue := self.queues.best()) >= 0:
            while not self.session.overused(queue) and (gang := self.gangs.pop(queue)) is not None:
                if not self._reclaim_for(gang) and self.session.is_strict(queue):
                    break
            self.queues.leave(queue)

    def _reclaim_for(self, gang: Gang) -> bool:
        """Pass A takes only what gangs can spare; pass B, if that is not enough, breaks as few
        gangs as it can.
        """
        session = self.session
        pods = session.tasks.unplaced_pods(gang)
        key = (
            gang.queue,
            gang.min_member - gang.ready - gang.waiting,
            *(int(session.pod_classes[pod]) for pod in pods),
        )
        if self.memory.knows(key):
            return False
        done = self._pass(gang, pods, breaking=False) or (
            self.breaks_gangs and self._pass(gang, pods, breaking=True)
        )
        if not done:
            self.memory.remember(key)
        return done

    def _pass(self, gang: Gang, pods: list[int], *, breaking: bool) -> bool:
        with self.session.statement() as statement:
            search = Search(self, gang, breaking)
            for left, pod in zip(range(len(pods) - 1, -1, -1), pods, strict=True):
                if not self.session.job_starving(gang):
                    break
                if not search.place(statement, pod) and self.session.is_out_of_reach(gang, left):
                    return False
            if not self.session.job_pipelined(gang) or (
                search.is_left_to_allocate and not statement.waits_for_room
            ):
                return False
            for operation in statement.operations:
                operation.gang.broken |= (
                    breaking
                    and operation.gang.ready < operation.gang.min_member
                    and operation.gang is not gang
                )
            statement.commit()
        return True

    def losing_queues(self, own: int) -> list[int]:
        """Queues other than this that have something to lose."""
        reclaimable = np.flatnonzero(self._reclaimable)
        losing: list[int] = reclaimable[
            (reclaimable != own) & self.session.has_too_much(reclaimable)
        ].tolist()
        return losing

    def candidate_nodes(self, own: int) -> Mask:
        """Nodes on which pods run that this queue could ever reclaim."""
        running = self.running
        mask = np.zeros(len(self.session.node_table.names) + 1, dtype=np.bool_)
        may_go = (
            self._reclaimable[running.queue]
            & (running.queue != own)
            & (self.session.status[running.pods] == PodStatus.RUNNING)
        )
        mask[running.node[may_go]] = True
        return mask[:-1]  # the last entry is for pods without a node

    @cached_property
    def _reclaimable(self) -> Mask:
        """Queues that run something and do not keep it from others."""
        mask = np.zeros(len(self.session.queue_tree), dtype=np.bool_)
        mask[[queue for queue in self.running.queues.tolist() if self.session.may_lose(queue)]] = (
            True
        )
        return mask


class QueueVetoes:
    """What queues may lose to this one for a pod of one class, on the sums as they are now."""

    def __init__(self, session: Session, queue: int, pod_class: int, *, undershoot: bool) -> None:
        self.session = session
        self.queue = queue
        self.pod_class = pod_class
        self.undershoot = undershoot

    def may_lose(self, queues: Rows, pod_classes: Rows) -> Mask:
        """For each queue and the class beside it."""
        may_go = self.session.may_take_from(self.queue, self.pod_class, queues, pod_classes)
        if self.undershoot:
            return may_go
        return may_go & self.session.keeps_deserved(queues, pod_classes, self.pod_class)

    def may_lose_of(self, queue: int, pod_classes: Rows) -> Mask:
        """Which of these classes this queue may lose."""
        return self.may_lose(np.full(len(pod_classes), queue), pod_classes)


class Search:
    """Victims for the pods of one gang.

    Preferred are those that leave their queue at or above its deserved.
    """

    def __init__(self, reclamation: Reclamation, gang: Gang, breaking: bool) -> None:
        self.reclamation = reclamation
        self.session = reclamation.session
        self.gang = gang
        self.breaking = breaking
        self.running = reclamation.running
        self.is_left_to_allocate = (
            False  # it found idle room where nobody could be reclaimed: nothing of reclaim's
        )
        self._pools: dict[tuple[int, bool], VictimPool] = {}
        self._fallen: set[int] = set()
        self._surplus_of: dict[int, Rows] = {}
        self._order: VictimOrder | None = None

    def place(self, statement: Statement, pod: int) -> bool:
        """Without any eviction if there is room; else on the first node where enough may go."""
        session = self.session
        queue = self.gang.queue
        pod_class = int(self.session.pod_classes[pod])
        mark = statement.mark
        if (
            not session.snapshot.classes.preempts[pod_class]
            or not session.preemptive(queue, pod_class)
            or not session.node_scores(pod_class).fits_an_empty_node
        ):
            return False
        node = -1 if session.full_levels(queue, pod_class) else self._room(pod_class)
        for undershoot in (False,) if self.reclamation.strict else (False, True):
            if node < 0:
                node = self._pool(pod_class, undershoot).make_room(
                    statement, self.gang, pod_class, "reclaim"
                )
        if node < 0:
            return False
        self._look_again(statement, mark)
        statement.pipeline(self.gang, pod_class, [pod], [node])
        return True

    def _room(self, pod_class: int) -> int:
        """Room as it is, on a node where it could reclaim, as in Volcano; any other node will do
        too, but is for allocate to give.
        """
        node = self.session.room_for(pod_class)
        if node < 0:
            return -1
        candidates = self.reclamation.candidate_nodes(self.gang.queue)
        if candidates[node]:
            return node
        other = self.session.node_scores(pod_class).best_node_among(candidates)
        self.is_left_to_allocate |= other < 0
        if other < 0:
            return node
        return other

    def _look_again(self, statement: Statement, mark: int) -> None:
        """Each pod's victims come in the order of its time: where those of the last one changed it,
        the next begins anew.
        """
        victims = [
            operation.gang
            for operation in statement.operations[mark:]
            if operation.type is OperationType.EVICT
        ]
        fallen = [victim for victim in victims if fell_apart(victim, self._fallen)]
        if fallen:
            self._surplus_of.clear()
        if fallen or not all(self.order.holds_without(victim.queue) for victim in victims):
            self._pools.clear()
            self._order = None

    @property
    def order(self) -> VictimOrder:
        if self._order is None:
            self._order = VictimOrder(self.session, self.gang.queue, self._losing)
        return self._order

    @cached_property
    def _losing(self) -> list[int]:
        return self.reclamation.losing_queues(self.gang.queue)

    def _pool(self, pod_class: int, undershoot: bool) -> VictimPool:
        key = (pod_class, undershoot)
        if key not in self._pools:
            vetoes = QueueVetoes(self.session, self.gang.queue, pod_class, undershoot=undershoot)
            sources = self._sources(vetoes)
            outlook = partial(self._outlook, vetoes)
            self._pools[key] = VictimPool(
                self.session, sources, self._veto(pod_class, vetoes), outlook, sparing=self.breaking
            )
        return self._pools[key]

    def _veto(self, pod_class: int, queues: QueueVetoes) -> Veto:
        gang = self.gang
        asks = self.session.reclaim_vetoes(without="gang" if self.breaking else "")

        def may_go(victim: Gang, victim_class: int) -> bool:
            of_queue = queues.may_lose_of(victim.queue, np.array([victim_class]))[0]
            return bool(of_queue) and all(
                ask(gang, pod_class, victim, victim_class) for ask in asks
            )

        return may_go

    def _sources(self, vetoes: QueueVetoes) -> Iterator[Source]:
        """Surplus of gangs first; when gangs may be broken, then whole gangs, starving ones and
        small ones first.
        """
        running = self.running
        queues = self.order.queues
        for line in (self._surplus, running.whole_gangs) if self.breaking else (self._surplus,):
            for queue in queues:
                yield Source(
                    queue,
                    running.pod_classes_of(queue),
                    partial(vetoes.may_lose_of, queue),
                    partial(line, queue),
                )

    def _surplus(self, queue: int) -> Rows:
        """What the queue's gangs can spare, where they count; in the order in which it was found
        first, until a gang falls apart.
        """
        if queue not in self._surplus_of:
            spares = self.session.gangs_are_spared
            line = (
                self.running.surplus(queue)
                if self.breaking
                else self.running.last_first(queue, sparing=spares)
            )
            self._surplus_of[queue] = line
        return self._surplus_of[queue]

    def _outlook(self, vetoes: QueueVetoes) -> Outlook:
        """Where all who may go, were they to go at once, would free enough for a pod; a bound, not
        a promise.
        """
        session = self.session
        running = self.running
        request = self.session.request[vetoes.pod_class]
        chosen = self._may_go(vetoes)
        nodes = session.node_scores(vetoes.pod_class).suitable.copy()
        for dim in np.flatnonzero(request > 0).tolist():
            nodes &= (
                session.node_table.future()[dim]
                + running.amounts_by_node(chosen, dim) * _ROUNDED_UP
                >= request[dim]
            )
        having = np.zeros(len(session.queue_tree), dtype=np.bool_)
        having[running.queue[chosen][nodes[running.node[chosen]]]] = True
        return Outlook(nodes, having)

    def _may_go(self, vetoes: QueueVetoes) -> Mask:
        """Candidates of the losing queues that neither their queue nor, if it is to be spared,
        their gang keeps.
        """
        session = self.session
        running = self.running
        of_queue, of_class, pair = running.pairs
        may_go: Mask = (vetoes.may_lose(of_queue, of_class) & np.isin(of_queue, self._losing))[pair]
        may_go &= (running.node >= 0) & (session.status[running.pods] != PodStatus.RELEASING)
        if session.gangs_are_spared and not self.breaking:
            group = session.snapshot.pods.group[running.pods]
            may_go &= session.ready_counts[group] > session.snapshot.groups.min_member[group]
        return may_go
