"""Running pods that could be victims, found once per action: queue by queue in the order in which they would go."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import STATUSES, Rows, Times
from scheduler.domain.workloads import PodStatus
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Job

_RELEASING = int(PodStatus.RELEASING)


class RunningPods:
    """Columns over all candidates, those of a queue side by side: `pods`, and of each its `queue`, `kind` and `node`.

    The lines of a queue are sorted once and kept until the queue changes: gangs that ask one after the other find them ready.
    """

    def __init__(
        self, session: Session, statuses: Collection[PodStatus], *, borrowed_first: bool = False
    ) -> None:
        self.session, self._borrows = session, borrowed_first and bool(session.borrowed)
        pods, groups = session.snapshot.pods, session.snapshot.groups
        rows = np.flatnonzero(_one_of(statuses)[session.status])
        rows = rows[session.snapshot.classes.preemptable[pods.kind[rows]]] if len(rows) else rows
        queue = groups.queue[pods.group[rows]]
        order = np.argsort(
            queue.astype(np.int16) if len(session.forest) < 2**15 else queue, kind="stable"
        )
        order = order[np.searchsorted(queue[order], 0) :]  # without those whose queue is not there
        self.pods, self.queue = rows[order], queue[order]
        self.kind, self.node = pods.kind[self.pods], session.nodes[self.pods]
        self._starts = np.searchsorted(self.queue, np.arange(len(session.forest) + 1))
        self._kinds: dict[int, Rows] = {}
        self._ordered: dict[int, Rows] = {}
        self._lines: dict[tuple[object, ...], tuple[int, Rows]] = {}

    @cached_property
    def queues(self) -> Rows:
        """Those that run anything that could go."""
        return np.flatnonzero(np.diff(self._starts))

    @cached_property
    def pairs(self) -> tuple[Rows, Rows, Rows]:
        """Every queue with every class that runs in it, each pair once; and the pair of each candidate."""
        classes = len(self.session.request)
        codes, pair = np.unique(
            self.queue.astype(np.int64) * classes + self.kind, return_inverse=True
        )
        return codes // classes, codes % classes, pair

    def kinds_of(self, queue: int) -> Rows:
        """The classes of its candidates."""
        if queue not in self._kinds:
            self._kinds[queue] = np.unique(self.kind[self._starts[queue] : self._starts[queue + 1]])
        return self._kinds[queue]

    def of_queue(self, queue: int) -> Rows:
        """Its candidates that have not had to go yet, last in task order first: the one order that never changes, sorted once."""
        if queue not in self._ordered:
            pods = self.pods[self._starts[queue] : self._starts[queue + 1]]
            entries = sorted(
                zip(self.session.pod_keys(pods), pods.tolist(), strict=True), reverse=True
            )
            self._ordered[queue] = np.array([pod for _, pod in entries], dtype=np.intp)
        ordered = self._ordered[queue]
        left: Rows = ordered[self.session.status[ordered] != _RELEASING]
        return left

    def of_job(self, job: Job) -> Rows:
        """The candidates of one job, last in task order first."""
        pods = self.of_queue(job.queue)
        own: Rows = pods[self.session.snapshot.pods.group[pods] == job.row]
        return own

    def last_first(self, queue: int, *, sparing: bool) -> Rows:
        """Borrowed pods, then those of the job that plugins rank last; last in task order first, also across jobs of equal rank.

        With `sparing` only pods of jobs that have more of them than their gang needs.
        """
        return self._kept((queue, sparing), queue, lambda: self._last_first(queue, sparing))

    def surplus(self, queue: int) -> Rows:
        """The same, but only as many pods of each job as it can spare."""
        return self._kept((queue, "surplus"), queue, lambda: self._surplus(queue))

    def whole_jobs(self, queue: int) -> Rows:
        """Job after job, starving ones and small ones first."""
        return self._kept((queue, "whole"), queue, lambda: self._whole_jobs(queue))

    def _kept(self, key: tuple[object, ...], queue: int, find: Callable[[], Rows]) -> Rows:
        version, found = self.session.book.version[queue], self._lines.get(key)
        if found is None or found[0] != version:
            found = self._lines[key] = (version, find())
        return found[1]

    def _last_first(self, queue: int, sparing: bool) -> Rows:
        session, pods = self.session, self.of_queue(queue)
        if sparing:
            group = session.snapshot.pods.group[pods]
            pods = pods[session.ready_counts[group] > session.snapshot.groups.min_member[group]]
        return self._borrowed_first(self._by_job(pods, session.job_rank))

    def _by_job(self, pods: Rows, rank: Callable[[Job], Any]) -> Rows:
        """The pods of the job with the highest rank first; where ranks are equal, the order given stays."""
        rows, job = np.unique(self.session.snapshot.pods.group[pods], return_inverse=True)
        ranks = [rank(self.session.job(row)) for row in rows.tolist()]
        numbers = {found: number for number, found in enumerate(sorted(set(ranks), reverse=True))}
        number = np.array([numbers[found] for found in ranks], dtype=np.intp)
        ordered: Rows = pods[np.argsort(number[job], kind="stable")]
        return ordered

    def _borrowed_first(self, pods: Rows) -> Rows:
        if not self._borrows:
            return pods
        borrowed = self.session.snapshot.pods.borrowed[pods]
        return np.concatenate([pods[borrowed], pods[~borrowed]])

    def _surplus(self, queue: int) -> Rows:
        line = self.last_first(queue, sparing=True)
        jobs = [self.session.job(row) for row in self.session.snapshot.pods.group[line].tolist()]
        spare = {job.row: job.ready - job.min_member for job in jobs}
        chosen = []
        for pod, job in zip(line.tolist(), jobs, strict=True):
            spare[job.row] -= 1
            if spare[job.row] >= 0:
                chosen.append(pod)
        return np.array(chosen, dtype=np.intp)

    def _whole_jobs(self, queue: int) -> Rows:
        session, pods = self.session, self.of_queue(queue)
        jobs = sorted(
            map(session.job, set(session.snapshot.pods.group[pods].tolist())),
            key=self._goes_last,
            reverse=True,
        )
        places = {job.row: place for place, job in enumerate(jobs)}
        return self._by_job(pods, lambda job: places[job.row])

    def _goes_last(self, job: Job) -> tuple[object, ...]:
        return (not self.session.job_starving(job), self.session.size(job), job.key)

    def amounts_by_node(self, chosen: Mask, dim: int) -> Times:
        """About how much of a resource the chosen candidates hold on each node."""
        request = self.session.request[self.kind[chosen], dim]
        amounts: Times = np.bincount(
            self.node[chosen], weights=request, minlength=len(self.session.floor.names)
        ).astype(np.float64)
        return amounts


def _one_of(statuses: Collection[PodStatus]) -> Mask:
    mask = np.zeros(STATUSES, dtype=np.bool_)
    mask[[int(status) for status in statuses]] = True
    return mask
