"""Reclaim: across queues, a queue takes back what is its own from those that have too much.

The nearest queues in the tree lose first.
"""

from __future__ import annotations

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.workloads import PodStatus
from scheduler.engine.actions.reclaim_gangs import reclaim_gangs
from scheduler.engine.arguments import boolean
from scheduler.engine.eviction.alike import RoomMemory, alike_pods
from scheduler.engine.eviction.candidates import RunningPods
from scheduler.engine.eviction.node_evictions import PoolMemory
from scheduler.engine.eviction.reclaim_search import ReclaimSearch
from scheduler.engine.ordering import GangLines, QueueLine
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.statement import Statement

_STATUSES = (PodStatus.RUNNING,)


def reclaim(session: Session) -> None:
    """Nothing is evicted unless the whole gang that asks gets its place."""
    if not session.names_victims:
        return
    if boolean(session.policy.configurations.get("reclaim", {}), "wholeGangs", False):
        reclaim_gangs(session)
        return
    starving = session.starving_gangs()
    if starving:
        Reclamation(session, starving).run()


class Reclamation:
    """Configuration: `breakGangs` true, `strictDeserved` false, `suspendedVictims` protect."""

    def __init__(self, session: Session, starving: list[Gang]) -> None:
        self.session = session
        settings = session.policy.configurations.get("reclaim", {})
        self.breaks_gangs = boolean(settings, "breakGangs", True)
        self.strict = boolean(settings, "strictDeserved", False)
        self.running = RunningPods(session, _STATUSES, borrowed_first=True)
        self.reclaimable = self._reclaimable_queues()
        self.memory = PoolMemory(session)
        self.room = RoomMemory(session)
        self.gangs = GangLines.of(session, starving)
        self.queues = QueueLine(session, self.gangs.queues())

    def _reclaimable_queues(self) -> Mask:
        """Queues that run something and do not keep it from others."""
        mask = np.zeros(len(self.session.queue_tree), dtype=np.bool_)
        for queue in self.running.queues.tolist():
            mask[queue] = self.session.may_lose(queue)
        return mask

    def run(self) -> None:
        while (queue := self.queues.best()) >= 0:
            self._reclaim_for_queue(queue)
            self.queues.leave(queue)

    def _reclaim_for_queue(self, queue: int) -> None:
        while not self.session.overused(queue):
            gang = self.gangs.pop(queue)
            if gang is None:
                return
            if not self._reclaim_for(gang) and self.session.is_strict(queue):
                return

    def _reclaim_for(self, gang: Gang) -> bool:
        """Pass A takes only what gangs can spare.

        Pass B, if that is not enough, breaks as few gangs as it can.
        """
        pods = self.session.tasks.unplaced_pods(gang)
        still_needed = gang.min_member - gang.ready - gang.waiting
        key = (gang.queue, still_needed, *self.session.pod_classes[pods].tolist())
        if self.memory.knows(key):
            return False
        done = self._try_pass(gang, pods, breaking=False)
        if not done and self.breaks_gangs:
            done = self._try_pass(gang, pods, breaking=True)
        if not done:
            self.memory.remember(key)
        return done

    def _try_pass(self, gang: Gang, pods: list[int], *, breaking: bool) -> bool:
        with self.session.statement() as statement:
            search = ReclaimSearch(
                session=self.session,
                running=self.running,
                reclaimable=self.reclaimable,
                gang=gang,
                room=self.room,
                breaking=breaking,
                strict=self.strict,
            )
            if not self._place_pods(gang, pods, statement, search):
                return False
            if search.is_left_to_allocate and not statement.waits_for_room:
                return False
            if breaking:
                _mark_broken(statement, gang)
            statement.commit()
        return True

    def _place_pods(
        self, gang: Gang, pods: list[int], statement: Statement, search: ReclaimSearch
    ) -> bool:
        """Many at once or pod after pod; answers whether the gang may wait for the room."""
        session = self.session
        left = pods
        while left and session.job_starving(gang):
            placed = search.place_alike(statement, alike_pods(session, gang, left))
            if placed:
                left = left[placed:]
                continue
            pod, *left = left
            if not search.place(statement, pod) and session.is_out_of_reach(gang, len(left)):
                return False
        return session.job_pipelined(gang)


def _mark_broken(statement: Statement, gang: Gang) -> None:
    """Victims that lost their minimum give up the rest in this session."""
    for operation in statement.operations:
        victim = operation.gang
        if victim is not gang and victim.ready < victim.min_member:
            victim.broken = True
