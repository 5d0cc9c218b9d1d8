"""Preempt: inside one queue, gangs that starve take the place of lower ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from scheduler.domain.tables import Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.eviction.candidates import RunningPods
from scheduler.engine.eviction.victims import (
    NOBODY,
    RELEASING,
    PoolMemory,
    Source,
    VictimPool,
    fell_apart,
)
from scheduler.engine.ordering import GangLines, QueueLine
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.nodes import fits
from scheduler.engine.statement import OperationType, Statement

_STATUSES = (PodStatus.BOUND, PodStatus.RUNNING)


def preempt(session: Session) -> None:
    """Volcano's meaning: never beyond the queue.

    Between gangs first, then inside each gang that starved, by the priority of pods.
    """
    starving = session.starving_gangs()
    if starving:
        Preemption(session, starving).run()


class Preemption:
    def __init__(self, session: Session, starving: list[Gang]) -> None:
        self.session = session
        self.running = RunningPods(session, _STATUSES)
        self.memory = PoolMemory(session)
        self.gangs = GangLines(session, starving)
        self.queues = QueueLine(session, self.gangs.queues())

    def run(self) -> None:
        while (queue := self.queues.best()) >= 0:
            tried: list[Gang] = []
            while (gang := self.gangs.pop(queue)) is not None:
                tried.append(gang)
                if not self._between_gangs(gang) and self.session.is_strict(queue):
                    break
            for gang in tried:
                self._inside(gang)
            self.queues.leave(queue)

    def _between_gangs(self, gang: Gang) -> bool:
        session = self.session
        pods = session.tasks.unplaced_pods(gang)
        key = (
            gang.queue,
            gang.priority,
            gang.ready,
            gang.min_member - gang.ready - gang.waiting,
            *session.pod_classes[pods].tolist(),
        )
        if self.memory.knows(key):
            return False
        with session.statement() as statement:
            pools: dict[int, PreemptPool] = {}
            fallen: set[int] = set()
            for left, pod in zip(range(len(pods) - 1, -1, -1), pods, strict=True):
                if not session.job_starving(gang):
                    break
                mark = statement.mark
                if not self._place(statement, gang, pod, pools) and session.is_out_of_reach(
                    gang, left
                ):
                    break
                if any(
                    fell_apart(operation.gang, fallen)
                    for operation in statement.operations[mark:]
                    if operation.type is OperationType.EVICT
                ):
                    pools.clear()  # a gang that fell below its minimum has another place in the order
            if session.job_pipelined(gang) and statement.waits_for_room:
                statement.commit()
                return True
        self.memory.remember(key)
        return False

    def _inside(self, gang: Gang) -> None:
        """Pods of the gang itself, as long as each finds a place."""
        session = self.session
        for pod in session.tasks.unplaced_pods(gang) if gang.ready else ():
            with session.statement() as statement:
                if not self._make_room(
                    statement,
                    gang,
                    pod,
                    self._pool(gang, int(session.pod_classes[pod]), self.running.of_gang),
                ):
                    return
                statement.commit()

    def _place(
        self, statement: Statement, gang: Gang, pod: int, pools: dict[int, PreemptPool]
    ) -> bool:
        """Without any eviction if there is room; else on the first node where lower pods make room."""
        session = self.session
        pod_class = int(self.session.pod_classes[pod])
        node = session.room_for(pod_class) if session.allocatable(gang.queue, pod_class) else -1
        if node >= 0:
            statement.pipeline(gang, pod_class, [pod], [node])
            return True
        if pod_class not in pools:
            pools[pod_class] = self._pool(
                gang, pod_class, partial(self._others, pod_class=pod_class)
            )
        return self._make_room(statement, gang, pod, pools[pod_class])

    def _pool(self, gang: Gang, pod_class: int, line: Callable[[Gang], Rows]) -> PreemptPool:
        source = Source(
            gang.queue,
            self.running.pod_classes_of(gang.queue),
            lambda pod_classes: np.ones(len(pod_classes), dtype=np.bool_),
            partial(line, gang),
        )
        return PreemptPool(
            self.session,
            [source],
            lambda victim, victim_class: self.session.may_preempt(
                gang, pod_class, victim, victim_class
            ),
        )

    def _make_room(self, statement: Statement, gang: Gang, pod: int, pool: PreemptPool) -> bool:
        pod_class = int(self.session.pod_classes[pod])
        if (
            not self.session.snapshot.classes.preempts[pod_class]
            or not self.session.node_scores(pod_class).fits_an_empty_node
        ):
            return False
        self.session.preemption_attempts += 1
        node = pool.make_room(statement, gang, pod_class, "preempt")
        if node < 0:
            return False
        statement.pipeline(gang, pod_class, [pod], [node])
        return True

    def _others(self, gang: Gang, pod_class: int) -> Rows:
        """Pods of other gangs in the queue that the plugins priority and gang, where they have a
        say, would not turn down as a whole.

        One that asks for nothing may only displace its like.
        """
        session = self.session
        vetoers = self.session.preempt_vetoers
        pods = self.running.last_first(gang.queue, sparing="gang" in vetoers)
        group = session.snapshot.pods.group[pods]
        worth = group != gang.row
        if "priority" in vetoers:
            worth &= session.snapshot.groups.priority[group] < gang.priority
        if session.tasks.best_effort[pod_class]:
            worth &= session.snapshot.classes.best_effort[session.pod_classes[pods]]
        others: Rows = pods[worth]
        return others


class PreemptPool(VictimPool):
    """Room is made when the pod fits on the node and the queue may have it; on the best node for it
    where enough may go, as in Volcano.
    """

    def make_room(self, statement: Statement, gang: Gang, pod_class: int, action: str) -> int:
        if self._last >= 0 and self._try(statement, gang, pod_class, self._last, action):
            return self._last
        self._gather_all(pod_class)
        self._last = next(
            (
                node
                for node in self._best_first(pod_class)
                if self._try(statement, gang, pod_class, node, action)
            ),
            -1,
        )
        return self._last

    def _gather_all(self, pod_class: int) -> None:
        """Whoever may go when they are first looked for; each gang is asked once for a class."""
        found = np.concatenate([NOBODY, *self._pieces])
        found = found[self._is_suitable(found, pod_class)]
        pairs = (
            self.session.snapshot.pods.group[found].astype(np.int64) * len(self.session.request)
            + self.session.pod_classes[found]
        )
        _, first, pair = np.unique(pairs, return_index=True, return_inverse=True)
        may_go = np.array(
            [self._may_go(self._gang(pod), pod) for pod in found[first].tolist()], dtype=np.bool_
        )
        self._gathered = np.concatenate(
            [self._gathered, found[may_go[pair]] if len(found) else found]
        )

    def _best_first(self, pod_class: int) -> list[int]:
        """Nodes with enough by score; among equals the one whose last victim comes first in the
        order, and before all one with room.
        """
        left = self._gathered[self.session.status[self._gathered] != RELEASING]
        positions = self._makes_room(left, NOBODY, pod_class)
        nodes, first = np.unique(self.session.nodes[left[positions]], return_index=True)
        turns = dict.fromkeys(self._with_room(pod_class), -1)
        turns = {**dict(zip(nodes.tolist(), positions[first].tolist(), strict=True)), **turns}
        scores = dict(
            zip(
                turns,
                self.session.node_scores(pod_class).scores_of(list(turns)).tolist(),
                strict=True,
            )
        )
        return sorted(turns, key=lambda node: (-scores[node], turns[node], node))

    def _with_room(self, pod_class: int) -> list[int]:
        """Nodes where nobody has to go any more."""
        nodes = np.unique(self.session.nodes[self._gathered]).astype(np.intp)
        room: list[int] = nodes[
            fits(self.session.node_table.future(nodes), self.session.request[pod_class])
        ].tolist()
        return room

    def _is_settled(self, gang: Gang, pod_class: int, node: int) -> bool:
        return (
            self.fits_there(pod_class, node) and self.session.allocatable(gang.queue, pod_class) > 0
        )

    _looks_for_help = False
