"""Running pods that could be victims, found once per action: queue by queue in the order in which
they would go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import STATUSES, Floats, Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

_RELEASING = int(PodStatus.RELEASING)


class RunningPods:
    """Columns over all candidates, those of a queue side by side: `pods`, and of each its `queue`,
    `pod_class` and `node`.

    The lines of a queue are sorted once and kept until the queue changes: gangs that ask one after
    the other find them ready.
    """

    def __init__(
        self, session: Session, statuses: Collection[PodStatus], *, borrowed_first: bool = False
    ) -> None:
        self.session = session
        self._borrows = borrowed_first and bool(session.borrowed)
        pods = session.snapshot.pods
        groups = session.snapshot.groups
        rows = np.flatnonzero(_one_of(statuses)[session.status])
        rows = (
            rows[session.snapshot.classes.preemptable[pods.pod_class[rows]]] if len(rows) else rows
        )
        queue = groups.queue[pods.group[rows]]
        order = np.argsort(
            queue.astype(np.int16) if len(session.queue_tree) < 2**15 else queue, kind="stable"
        )
        order = order[np.searchsorted(queue[order], 0) :]  # without those whose queue is not there
        self.pods = rows[order]
        self.queue = queue[order]
        self.pod_class = pods.pod_class[self.pods]
        self.node = session.nodes[self.pods]
        self._starts = np.searchsorted(self.queue, np.arange(len(session.queue_tree) + 1))
        self._classes_of_queue: dict[int, Rows] = {}
        self._ordered: dict[int, Rows] = {}
        self._lines: dict[tuple[object, ...], tuple[int, Rows]] = {}

    @cached_property
    def queues(self) -> Rows:
        """Those that run anything that could go."""
        return np.flatnonzero(np.diff(self._starts))

    @cached_property
    def pairs(self) -> tuple[Rows, Rows, Rows]:
        """Every queue with every class that runs in it, each pair once; and the pair of each
        candidate.
        """
        classes = len(self.session.request)
        codes, pair = np.unique(
            self.queue.astype(np.int64) * classes + self.pod_class, return_inverse=True
        )
        return codes // classes, codes % classes, pair

    def pod_classes_of(self, queue: int) -> Rows:
        """The classes of its candidates."""
        if queue not in self._classes_of_queue:
            self._classes_of_queue[queue] = np.unique(
                self.pod_class[self._starts[queue] : self._starts[queue + 1]]
            )
        return self._classes_of_queue[queue]

    def of_queue(self, queue: int) -> Rows:
        """Its candidates that have not had to go yet, last in task order first: the one order that
        never changes, sorted once.
        """
        if queue not in self._ordered:
            pods = self.pods[self._starts[queue] : self._starts[queue + 1]]
            entries = sorted(
                zip(self.session.tasks.pod_keys(pods), pods.tolist(), strict=True), reverse=True
            )
            self._ordered[queue] = np.array([pod for _, pod in entries], dtype=np.intp)
        ordered = self._ordered[queue]
        left: Rows = ordered[self.session.status[ordered] != _RELEASING]
        return left

    def of_gang(self, gang: Gang) -> Rows:
        """The candidates of one gang, last in task order first."""
        pods = self.of_queue(gang.queue)
        own: Rows = pods[self.session.snapshot.pods.group[pods] == gang.row]
        return own

    def last_first(self, queue: int, *, sparing: bool) -> Rows:
        """Borrowed pods, then those of the gang that plugins rank last; last in task order first,
        also across gangs of equal rank.

        With `sparing` only pods of gangs that have more of them than their gang needs.
        """
        return self._kept((queue, sparing), queue, lambda: self._last_first(queue, sparing))

    def surplus(self, queue: int) -> Rows:
        """The same, but only as many pods of each gang as it can spare."""
        return self._kept((queue, "surplus"), queue, lambda: self._surplus(queue))

    def whole_gangs(self, queue: int) -> Rows:
        """Gang after gang, starving ones and small ones first."""
        return self._kept((queue, "whole"), queue, lambda: self._whole_gangs(queue))

    def _kept(self, key: tuple[object, ...], queue: int, find: Callable[[], Rows]) -> Rows:
        version = self.session.queue_usage.version[queue]
        found = self._lines.get(key)
        if found is None or found[0] != version:
            found = self._lines[key] = (version, find())
        return found[1]

    def _last_first(self, queue: int, sparing: bool) -> Rows:
        session = self.session
        pods = self.of_queue(queue)
        if sparing:
            group = session.snapshot.pods.group[pods]
            pods = pods[session.ready_counts[group] > session.snapshot.groups.min_member[group]]
        return self._borrowed_first(self._by_gang(pods, session.gang_rank))

    def _by_gang(self, pods: Rows, rank: Callable[[Gang], Any]) -> Rows:
        """The pods of the gang with the highest rank first; where ranks are equal, the order given
        stays.
        """
        rows, gang = np.unique(self.session.snapshot.pods.group[pods], return_inverse=True)
        ranks = [rank(self.session.gang(row)) for row in rows.tolist()]
        numbers = {found: number for number, found in enumerate(sorted(set(ranks), reverse=True))}
        number = np.array([numbers[found] for found in ranks], dtype=np.intp)
        ordered: Rows = pods[np.argsort(number[gang], kind="stable")]
        return ordered

    def _borrowed_first(self, pods: Rows) -> Rows:
        if not self._borrows:
            return pods
        borrowed = self.session.snapshot.pods.borrowed[pods]
        return np.concatenate([pods[borrowed], pods[~borrowed]])

    def _surplus(self, queue: int) -> Rows:
        line = self.last_first(queue, sparing=True)
        gangs = [self.session.gang(row) for row in self.session.snapshot.pods.group[line].tolist()]
        spare = {gang.row: gang.ready - gang.min_member for gang in gangs}
        chosen = []
        for pod, gang in zip(line.tolist(), gangs, strict=True):
            spare[gang.row] -= 1
            if spare[gang.row] >= 0:
                chosen.append(pod)
        return np.array(chosen, dtype=np.intp)

    def _whole_gangs(self, queue: int) -> Rows:
        session = self.session
        pods = self.of_queue(queue)
        gangs = sorted(
            map(session.gang, set(session.snapshot.pods.group[pods].tolist())),
            key=self._goes_last,
            reverse=True,
        )
        places = {gang.row: place for place, gang in enumerate(gangs)}
        return self._by_gang(pods, lambda gang: places[gang.row])

    def _goes_last(self, gang: Gang) -> tuple[object, ...]:
        return (not self.session.job_starving(gang), self.session.dominant_share(gang), gang.key)

    def amounts_by_node(self, chosen: Mask, dim: int) -> Floats:
        """About how much of a resource the chosen candidates hold on each node."""
        request = self.session.request[self.pod_class[chosen], dim]
        amounts: Floats = np.bincount(
            self.node[chosen], weights=request, minlength=len(self.session.node_table.names)
        ).astype(np.float64)
        return amounts


def _one_of(statuses: Collection[PodStatus]) -> Mask:
    mask = np.zeros(STATUSES, dtype=np.bool_)
    mask[[int(status) for status in statuses]] = True
    return mask
