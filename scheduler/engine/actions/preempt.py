"""Preempt: inside one queue, gangs that starve take the place of lower ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Floats, Ints, Rows, Scores
from scheduler.domain.workloads import PodStatus
from scheduler.engine.actions.preempt_gangs import preempt_gangs
from scheduler.engine.arguments import boolean
from scheduler.engine.eviction.alike import (
    RoomMemory,
    alike_pods,
    alike_victims,
    all_keep_their_minimum,
    gangs_of,
    is_at_least_as_large,
    rows_of,
    swap,
)
from scheduler.engine.eviction.candidates import RunningPods
from scheduler.engine.eviction.node_evictions import (
    NOBODY,
    RELEASING,
    BrokenGangs,
    NodeEvictions,
    PoolMemory,
    Veto,
)
from scheduler.engine.ordering import GangLines, QueueLine
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.nodes import fits
from scheduler.engine.statement import Statement

_STATUSES = (PodStatus.BOUND, PodStatus.RUNNING)


def preempt(session: Session) -> None:
    """Volcano's meaning: never beyond the queue.

    Between gangs first, then inside each gang that starved, by the priority of pods.
    """
    if boolean(session.policy.configurations.get("preempt", {}), "wholeGangs", False):
        preempt_gangs(session)
        return
    starving = session.starving_gangs()
    if starving:
        Preemption(session, starving).run()


class Preemption:
    def __init__(self, session: Session, starving: list[Gang]) -> None:
        self.session = session
        self.running = RunningPods(session, _STATUSES)
        self.memory = PoolMemory(session)
        self.room = RoomMemory(session)
        self.gangs = GangLines.of(session, starving)
        self.queues = QueueLine(session, self.gangs.queues())

    def run(self) -> None:
        while (queue := self.queues.best()) >= 0:
            for gang in self._preempt_between_gangs(queue):
                self._preempt_inside(gang)
            self.queues.leave(queue)

    def _preempt_between_gangs(self, queue: int) -> list[Gang]:
        """Answers the gangs that were tried."""
        tried: list[Gang] = []
        while (gang := self.gangs.pop(queue)) is not None:
            tried.append(gang)
            if not self._preempt_for(gang) and self.session.is_strict(queue):
                break
        return tried

    def _preempt_for(self, gang: Gang) -> bool:
        """Takes room of lower gangs, if the whole gang gets its place by it."""
        session = self.session
        pods = session.tasks.unplaced_pods(gang)
        still_needed = gang.min_member - gang.ready - gang.waiting
        classes = session.pod_classes[pods].tolist()
        key = (gang.queue, gang.priority, gang.ready, still_needed, *classes)
        if self.memory.knows(key):
            return False
        with session.statement() as statement:
            self._place_pods(gang, pods, statement)
            if session.job_pipelined(gang) and statement.waits_for_room:
                statement.commit()
                return True
        self.memory.remember(key)
        return False

    def _place_pods(self, gang: Gang, pods: list[int], statement: Statement) -> None:
        """Many at once or pod after pod, until the gang starves no more or cannot reach its
        minimum.
        """
        session = self.session
        search = PreemptSearch(self, gang, statement)
        left = pods
        while left and session.job_starving(gang):
            placed = search.place_alike(alike_pods(session, gang, left))
            if placed:
                left = left[placed:]
                continue
            pod, *left = left
            if not search.place(pod) and session.is_out_of_reach(gang, len(left)):
                return

    def _preempt_inside(self, gang: Gang) -> None:
        """Pods of the gang itself take each other's place, as long as each finds one."""
        if not gang.ready:
            return
        for pod in self.session.tasks.unplaced_pods(gang):
            with self.session.statement() as statement:
                search = PreemptSearch(self, gang, statement)
                line = partial(self.running.of_gang, gang)
                if not search.make_room(pod, search.new_pool(pod, line)):
                    return
                statement.commit()


class PreemptSearch:
    """Places for the pods of one gang, one after the other."""

    def __init__(self, preemption: Preemption, gang: Gang, statement: Statement) -> None:
        self.session = preemption.session
        self.running = preemption.running
        self.room = preemption.room
        self.gang = gang
        self.statement = statement
        self._pools: dict[int, PreemptPool] = {}
        self._broken = BrokenGangs()
        self._one_by_one = False  # many at once was tried in vain

    def place_alike(self, pods: list[int]) -> int:
        """Several pods of one class at once, if they and their victims go one for one.

        Answers how many have a place; 0 if the next pod has to be placed on its own.
        """
        pod_class = int(self.session.pod_classes[pods[0]])
        if self._one_by_one or len(pods) < 2 or not self._may_evict_for(pod_class):
            return 0
        if self.room.is_there_for(pod_class):
            return 0
        before = self.room.changes
        victims = self._alike_on_best_node(pod_class, len(pods))
        if victims:
            if not self._swap(pods, victims):
                self._one_by_one = True
                return 0
            self.room.is_as_before(pod_class, before)
            self.session.preemption_attempts += len(victims)
            return len(victims)
        pool = self._pool_for(pods[0])
        victims = pool.next_alike(pod_class, len(pods))
        if len(victims) == 1:
            return 0
        if not victims or not self._swap(pods[: len(victims)], victims):
            self._one_by_one = True
            return 0
        self.room.is_as_before(pod_class, before)
        pool.settle(victims)
        self.session.preemption_attempts += len(victims)
        return len(victims)

    def _alike_on_best_node(self, pod_class: int, count: int) -> list[int]:
        """So many on the node that is best, if that is the whole gang, and all who could go are at
        least as large: then it is clear who would go, without a pool. None if it is not.
        """
        if self._pools or count != self.gang.missing or not self._each_makes_room(pod_class):
            return []
        session = self.session
        left = self.running.first_on_best_node(
            self.gang.queue,
            pod_class,
            partial(self._may_each_go, pod_class),
            sparing="gang" in session.preempt_vetoers,
        )
        victims = alike_victims(session, pod_class, left[:count])
        if len(victims) < count:
            return []
        return victims.tolist()  # type: ignore[no-any-return]

    def _each_makes_room(self, pod_class: int) -> bool:
        """Whether whoever goes makes room for a pod of the class, on any node."""
        session = self.session
        if session.tasks.best_effort[pod_class]:
            return False
        if not session.node_scores(pod_class).follow_from_use:
            return False
        classes = self.running.pod_classes_of(self.gang.queue)
        if not is_at_least_as_large(session, classes, pod_class):
            return False
        return not self.room.is_over_full(pod_class)

    def _may_each_go(self, pod_class: int, rows: Rows, victim_classes: Rows) -> Mask:
        """Of which podgroups a pod of the class beside each may go."""
        session = self.session
        agreed = session.may_preempt_each(self.gang, pod_class, rows, victim_classes)
        return agreed & self._are_candidates(rows)

    def _are_candidates(self, groups: Ints | Rows) -> Mask:
        """Other gangs than this one; with the plugin priority only lower ones."""
        is_candidate: Mask = groups != self.gang.row
        if "priority" in self.session.preempt_vetoers:
            is_candidate &= self.session.snapshot.groups.priority[groups] < self.gang.priority
        return is_candidate

    def _has_candidates(self) -> bool:
        """Whether anybody runs in the queue who could ever go for this gang."""
        session = self.session
        if session.has_role_minimums:
            return True  # gangs with roles count as looked at, so they are
        groups = self.running.groups_of(self.gang.queue)
        is_candidate = self._are_candidates(groups)
        if "gang" in session.preempt_vetoers:
            minimum = session.snapshot.groups.min_member[groups]
            is_candidate &= session.ready_counts[groups] > minimum
        return bool(is_candidate.any())

    def _swap(self, pods: list[int], victims: list[int]) -> bool:
        session = self.session
        pod_class = int(session.pod_classes[pods[0]])
        victim_class = int(session.pod_classes[victims[0]])
        losing = gangs_of(session, victims)
        if not all_keep_their_minimum(losing):
            return False
        rows, classes = rows_of(losing, victim_class)

        def agreed() -> bool:
            if not session.allocatable(self.gang.queue, pod_class):
                return False
            # The plugin gang is not asked: they keep their minimum.
            without = ("gang",)
            agrees = session.agree_to_preempt(self.gang, pod_class, rows, classes, without=without)
            return bool(agrees.all())

        return swap(self.statement, self.gang, pods, victims, "preempt", agreed)

    def place(self, pod: int) -> bool:
        """Without any eviction if there is room; else on a node where lower pods make room."""
        mark = self.statement.mark
        placed = self._place_in_free_room(pod) or self._place_by_eviction(pod)
        victims = self.statement.victims_since(mark)
        if any(self._broken.is_news(victim) for victim in victims):
            self._pools.clear()  # it has another place in the order of victims now
        return placed

    def _place_in_free_room(self, pod: int) -> bool:
        session = self.session
        pod_class = int(session.pod_classes[pod])
        if not session.allocatable(self.gang.queue, pod_class):
            return False
        node = session.room_for(pod_class)
        if node < 0:
            return False
        self.statement.pipeline(self.gang, pod_class, [pod], [node])
        return True

    def _place_by_eviction(self, pod: int) -> bool:
        return self.make_room(pod, self._pool_for(pod))

    def _pool_for(self, pod: int) -> PreemptPool:
        pod_class = int(self.session.pod_classes[pod])
        if pod_class not in self._pools:
            line = partial(self._pods_of_others, pod_class)
            self._pools[pod_class] = self.new_pool(pod, line)
        return self._pools[pod_class]

    def new_pool(self, pod: int, line: Callable[[], Rows]) -> PreemptPool:
        pod_class = int(self.session.pod_classes[pod])
        veto = partial(self.session.may_preempt, self.gang, pod_class)
        vetoes = partial(self.session.may_preempt_each, self.gang, pod_class)
        return PreemptPool(self.session, line, veto, vetoes)

    def make_room(self, pod: int, pool: PreemptPool) -> bool:
        session = self.session
        pod_class = int(session.pod_classes[pod])
        if not self._may_evict_for(pod_class):
            return False
        session.preemption_attempts += 1
        node = pool.make_room(self.statement, self.gang, pod_class, "preempt")
        if node < 0:
            return False
        self.statement.pipeline(self.gang, pod_class, [pod], [node])
        return True

    def _may_evict_for(self, pod_class: int) -> bool:
        """The class preempts, and it would fit on some node if that were empty."""
        if not self.session.snapshot.classes.preempts[pod_class]:
            return False
        return self.session.node_scores(pod_class).fits_an_empty_node

    def _pods_of_others(self, pod_class: int) -> Rows:
        """Pods of other gangs of the queue, without those that plugins keep as a whole.

        That is what the plugins priority and gang do. A pod that asks for nothing may only take the
        place of another that asks for nothing.
        """
        session = self.session
        vetoers = session.preempt_vetoers
        if not self._has_candidates():
            return NOBODY
        pods = self.running.last_first(self.gang.queue, sparing="gang" in vetoers)
        is_candidate = self._are_candidates(session.snapshot.pods.group[pods])
        if session.tasks.best_effort[pod_class]:
            is_candidate &= session.snapshot.classes.best_effort[session.pod_classes[pods]]
        others: Rows = pods[is_candidate]
        return others


class PreemptPool(NodeEvictions):
    """Room is made on the best node for the pod where enough may go, as in Volcano."""

    _every_victim_helps = True  # all are of one queue

    def __init__(
        self,
        session: Session,
        line: Callable[[], Rows],
        veto: Veto,
        vetoes: Callable[[Rows, Rows], Mask],
    ) -> None:
        super().__init__(session, veto)
        self._line: Callable[[], Rows] | None = line  # not looked at yet
        self._may_each_go = vetoes
        self._last_node = -1  # where room was made last

    def make_room(self, statement: Statement, gang: Gang, pod_class: int, action: str) -> int:
        """Evicts on one node until a pod of this class fits; answers the node, -1 if none."""
        last = self._last_node
        if last >= 0 and self.evict_on(statement, gang, pod_class, last, action):
            return last
        self._gather_line(pod_class)
        self._last_node = -1
        for node in self._best_nodes_first(pod_class):
            if self.evict_on(statement, gang, pod_class, node, action):
                self._last_node = node
                break
        return self._last_node

    def next_alike(self, pod_class: int, count: int) -> list[int]:
        """The next candidates on one node, at most so many, that would go one for each pod of this
        class. Nobody goes yet.
        """
        left = self._left_on(self._last_node)
        if not len(left):
            self._gather_line(pod_class)
            left = self._left_on(self._best_node(pod_class))
        return alike_victims(self.session, pod_class, left[:count]).tolist()  # type: ignore[no-any-return]

    def settle(self, victims: list[int]) -> None:
        """These candidates went."""
        self._last_node = int(self.session.nodes[victims[0]])

    def _left_on(self, node: int) -> Rows:
        """Those gathered on the node who have not gone already."""
        if node < 0:
            return NOBODY
        pods = self._gathered[self.session.nodes[self._gathered] == node]
        left: Rows = pods[self.session.status[pods] != RELEASING]
        return left

    def _gather_line(self, pod_class: int) -> None:
        """Whoever may go when they are first looked for."""
        if self._line is None:
            return
        pods = self._line()
        self._line = None
        pods = pods[self._is_suitable(pods, pod_class)]
        group = self.session.snapshot.pods.group[pods]
        classes = self.session.pod_classes[pods]
        may_go = np.zeros(len(pods), dtype=np.bool_)
        for victim_class in np.flatnonzero(np.bincount(classes)).tolist():
            is_of_class = classes == victim_class
            may_go[is_of_class] = self._gangs_that_may_lose(group[is_of_class], victim_class)
        self._gathered = pods[may_go]

    def _gangs_that_may_lose(self, group: Rows, victim_class: int) -> Mask:
        """For each entry whether its gang may lose a pod of the class; each gang is asked once."""
        counts = np.bincount(group)
        rows = np.flatnonzero(counts)
        verdicts = np.zeros(len(counts), dtype=np.bool_)
        verdicts[rows] = self._may_each_go(rows, np.full(len(rows), victim_class))
        may_lose: Mask = verdicts[group]
        return may_lose

    def _best_node(self, pod_class: int) -> int:
        """The first of the best nodes; -1 if there is none."""
        nodes, scores, turns = self._nodes_with_enough(pod_class)
        if not len(nodes):
            return -1
        best = np.flatnonzero(scores == scores.max())
        return int(nodes[best[turns[best].argmin()]])

    def _best_nodes_first(self, pod_class: int) -> Iterator[int]:
        """Nodes with enough, by score.

        Among equals one with room comes first, then the one whose last victim comes first.
        """
        nodes, scores, turns = self._nodes_with_enough(pod_class)
        order = np.lexsort((nodes, turns, -scores))
        return iter(nodes[order].tolist())

    def _nodes_with_enough(self, pod_class: int) -> tuple[Rows, Scores, Floats]:
        """By number, with the score of each, and when it has its turn among equals."""
        session = self.session
        left = self._gathered[session.status[self._gathered] != RELEASING]
        positions = self._positions_with_room(left, NOBODY, pod_class)
        turns = np.full(len(session.node_table.names), np.inf)
        # Written from the last to the first, so that the first on a node stays.
        turns[session.nodes[left[positions[::-1]]]] = positions[::-1]
        turns[self._nodes_with_room(pod_class)] = -1
        nodes = np.flatnonzero(turns < np.inf)
        scores = session.node_scores(pod_class).scores_of(nodes)
        return nodes, scores, turns[nodes]

    def _nodes_with_room(self, pod_class: int) -> list[int]:
        """Nodes of candidates where nobody has to go any more."""
        is_there = np.zeros(len(self.session.node_table.names), dtype=np.bool_)
        is_there[self.session.nodes[self._gathered]] = True
        nodes = np.flatnonzero(is_there)
        room = self.session.node_table.future(nodes)
        found: list[int] = nodes[fits(room, self.session.request[pod_class])].tolist()
        return found

    def _is_settled(self, gang: Gang, pod_class: int, node: int) -> bool:
        """The pod fits on the node, and the queue may have it."""
        if not self._fits_on(pod_class, node):
            return False
        return self.session.allocatable(gang.queue, pod_class) > 0
