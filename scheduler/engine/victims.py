"""Who may have to go: running pods in the order in which they would, and the smallest set on one node that makes room."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.job import Job
from scheduler.engine.session import Session
from scheduler.engine.statement import Statement

Veto = Callable[[Job, int], bool]
"""(victim's job, victim's class) -> may it go, on the sums as they are now?"""


class RunningPods:
    """All pods that could be victims, found once per session: by queue, and in a queue by job."""

    def __init__(self, session: Session, statuses: tuple[PodStatus, ...]) -> None:
        self.session = session
        pods, classes = session.snapshot.pods, session.snapshot.classes
        may_go = np.isin(session.status, [int(status) for status in statuses])
        rows = np.flatnonzero(may_go)
        rows = rows[classes.preemptable[pods.kind[rows]]] if len(rows) else rows
        queue = session.snapshot.groups.queue[pods.group[rows]]
        order = np.argsort(queue, kind="stable")
        self._rows = rows[order]
        self._starts = np.searchsorted(queue[order], np.arange(len(session.forest) + 1))

    def of_queue(self, queue: int) -> Rows:
        rows: Rows = self._rows[self._starts[queue] : self._starts[queue + 1]]
        return rows

    def jobs(self, queue: int, among: Mask | None = None) -> dict[int, list[int]]:
        """Podgroup -> its pods that still run; only podgroups that `among` marks."""
        session = self.session
        members: dict[int, list[int]] = {}
        rows = self.of_queue(queue)
        if among is not None:
            rows = rows[among[session.snapshot.pods.group[rows]]]
        rows = rows[session.status[rows] != PodStatus.RELEASING]
        for pod, group in zip(rows.tolist(), session.snapshot.pods.group[rows].tolist(), strict=True):
            members.setdefault(group, []).append(pod)
        return members

    def with_surplus(self) -> Mask:
        """Podgroups that have more pods in place than their gang needs, as things stand now."""
        session = self.session
        surplus: Mask = session.ready_counts > session.snapshot.groups.min_member
        for job in session.known_jobs():
            surplus[job.row] = job.ready > job.min_member
        return surplus

    def last_first(self, members: dict[int, list[int]]) -> Iterator[tuple[Job, list[int]]]:
        """The jobs of a queue, the one that plugins rank last first; the pods of each, last in task order first.

        Jobs of equal rank are mixed: among them only the pods' own order counts.
        """
        session = self.session
        ranked: dict[tuple[float, ...], list[int]] = {}
        for group in members:
            ranked.setdefault(session.job_rank(session.job(group)), []).append(group)
        for rank in sorted(ranked, reverse=True):
            if len(ranked[rank]) == 1:
                group = ranked[rank][0]
                yield session.job(group), sorted(members[group], key=session.pod_key, reverse=True)
            else:
                pods = [pod for group in ranked[rank] for pod in members[group]]
                for pod in sorted(pods, key=session.pod_key, reverse=True):
                    yield session.job(int(session.snapshot.pods.group[pod])), [pod]


class Remembered:
    """A stream that can be read again from its beginning, and is drawn from its source only as far as somebody read."""

    def __init__(self, source: Iterable[tuple[Job, list[int]]]) -> None:
        self._source, self._kept = iter(source), list[tuple[Job, list[int]]]()

    def __iter__(self) -> Iterator[tuple[Job, list[int]]]:
        for place in count():
            if place == len(self._kept):
                found = next(self._source, None)
                if found is None:
                    return
                self._kept.append(found)
            yield self._kept[place]


class VictimPool:
    """Candidates come in victim order and gather on their nodes; the first node with enough of them is where room is made.

    So the victims are those that come first in the order, among all sets that would do. What a veto turned down when its turn came
    stays out: between attempts sums only fall.
    """

    _looks_for_help = True  # whether a candidate must free something that is short

    def __init__(self, session: Session, stream: Iterable[tuple[Job, list[int]]], veto: Veto, *, sparing: bool = False) -> None:
        self.session, self._stream, self._veto, self._sparing = session, iter(stream), veto, sparing
        self._waiting: list[tuple[Job, int]] = []
        self._gathered: dict[int, list[tuple[Job, int]]] = {}
        self._turns: dict[int, int] = {}  # pod -> its place in the order, where that is asked for
        self._last = -1

    def make_room(self, statement: Statement, job: Job, kind: int, action: str) -> int:
        """Evicts on one node until a pod of this class fits there and may be counted in; answers the node, -1 if there is none."""
        suitable = self.session.board(kind).suitable
        if self._last >= 0 and self._try(statement, job, kind, self._last, action):
            return self._last
        for victim, pod in self._candidates():
            node = int(self.session.nodes[pod])
            if node < 0 or not suitable[node]:
                continue
            self._gathered.setdefault(node, []).append((victim, pod))
            if self._try(statement, job, kind, node, action):
                self._last = node
                return node
        return -1

    def _candidates(self) -> Iterator[tuple[Job, int]]:
        """One by one from where the last call stopped; those that may not go are passed over, a whole job's class at a time."""
        while True:
            while self._waiting:
                yield self._waiting.pop()
            found = next(self._stream, None)
            if found is None:
                return
            victim, pods = found
            kinds = {kind: self._veto(victim, kind) for kind in {int(self.session.kinds[pod]) for pod in pods}}
            self._waiting = [(victim, pod) for pod in reversed(pods) if kinds[int(self.session.kinds[pod])]]

    def _try(self, statement: Statement, job: Job, kind: int, node: int, action: str) -> bool:
        gathered = self._still_there(node)
        request = self.session.request
        available = self.session.floor.future([node])[:, 0] + sum(
            (request[self.session.kinds[pod]] for _, pod in gathered), start=np.int64(0)
        )
        if not covers(available, request[kind]):
            return False
        mark = statement.mark
        taken = self._evict(statement, job, kind, node, action)
        if not self._is_settled(job, kind, node):
            statement.discard(mark)
            return False
        if self._sparing:
            taken -= self._spare(statement, mark, job, kind, node)
        self._gathered[node] = [candidate for candidate in gathered if candidate[1] not in taken]
        return True

    def _still_there(self, node: int) -> list[tuple[Job, int]]:
        """Those gathered on the node, without whom another pool of the same statement took meanwhile."""
        status = self.session.status
        self._gathered[node] = [candidate for candidate in self._gathered.get(node, ()) if status[candidate[1]] != PodStatus.RELEASING]
        return self._gathered[node]

    def _evict(self, statement: Statement, job: Job, kind: int, node: int, action: str) -> set[int]:
        """In order, as long as it is not enough, whoever may go and whose going helps."""
        taken: set[int] = set()
        for victim, pod in self._gathered[node]:
            if self._is_settled(job, kind, node):
                break
            if self._veto(victim, int(self.session.kinds[pod])) and self._helps(job, kind, node, victim, pod):
                statement.evict(victim, pod, action, job)
                taken.add(pod)
        return taken

    def _spare(self, statement: Statement, mark: int, job: Job, kind: int, node: int) -> set[int]:
        """Where gangs are broken, whoever turns out not to be needed after the last victim stays."""
        spared: set[int] = set()
        for operation in reversed(statement.operations[mark:-1]):
            statement.undo(operation)
            if self._is_settled(job, kind, node):
                spared.update(operation.pods)
            else:
                statement.redo(operation)
        return spared

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
        above_victim = set(session.forest.path_list(victim.queue))
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
        return self._failed.get(key) == self._state

    def remember(self, key: tuple[object, ...]) -> None:
        self._failed[key] = self._state

    @property
    def _state(self) -> int:
        return len(self._session.evictions) + len(self._session.binds) + len(self._session.waits)
