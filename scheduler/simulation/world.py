"""The cluster between sessions, in simulated time: rows of one snapshot that jobs and pods come
into and leave again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from scheduler.domain.codes import PhaseCode, StatusCode
from scheduler.domain.resources import Resources
from scheduler.domain.tables import IS_SCHEDULED, MAX_MINIMUM, NO_NODE, NO_QUEUE, Rows
from scheduler.domain.workloads import Phase, PodClass, PodGroup, PodStatus
from scheduler.engine.decisions import Outcome
from scheduler.scenarios.clusters import Cluster
from scheduler.simulation.loads import LoadJob

START_DELAY: Final = 1.0
"""Seconds from the decision to bind a pod until it runs."""
GRACE: Final = 2.0
"""Seconds that an evicted pod takes to go; then it waits again, with all its work to do."""
_CHUNK: Final = 256


@dataclass(slots=True)
class Gang:
    """A job in the world: its podgroup's row, its pods' rows, and what happened to it."""

    job: LoadJob
    row: int
    pods: Rows
    started_at: float | None = None
    unfinished: int = 0
    evictions: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one pod: it `ended` or was `evicted` after running for `seconds`, or came
    `back` to wait.
    """

    what: str
    pod: int
    seconds: float = 0.0


class World:
    """`now` is the simulated time.

    Events are (when, number, kind, row, incarnation); those of an earlier incarnation are void.
    """

    def __init__(self, cluster: Cluster, jobs: Iterable[LoadJob], *, endless: bool = False) -> None:
        self.snapshot = _with_resources(cluster, jobs).snapshot()
        self.now = self.snapshot.taken_at
        self.gangs: dict[int, Gang] = {}
        self.finished = 0
        self._endless = endless
        self._events: list[tuple[float, int, str, int, int]] = []
        self._number = 0
        self._free_pods: list[int] = []
        self._free_groups: list[int] = []
        self._classes: dict[object, int] = {}
        self._incarnation: list[int] = [0] * len(self.snapshot.pods)
        self._running_since: dict[int, float] = {}
        self._expect_victims_back()

    def _expect_victims_back(self) -> None:
        """Pods that are being evicted when the run begins come back like later ones."""
        for pod in np.flatnonzero(self.snapshot.pods.status == StatusCode.RELEASING).tolist():
            self._expect_event(self.now + GRACE, "back", pod)

    # Time

    @property
    def next_event(self) -> float | None:
        """When the next event is due; None when nothing will happen any more."""
        while self._events and self._is_void(self._events[0]):
            heapq.heappop(self._events)
        if self._events:
            return self._events[0][0]
        return None

    def _is_void(self, event: tuple[float, int, str, int, int]) -> bool:
        return self._incarnation[event[3]] != event[4]

    def has_waiting_pods(self) -> bool:
        """Pods that are leaving count too: they come back and wait again."""
        status = self.snapshot.pods.status
        return bool(((status == StatusCode.PENDING) | (status == StatusCode.RELEASING)).any())

    def pass_until(self, moment: float) -> Iterator[Change]:
        """Lets everything happen that is due by then."""
        while (due := self.next_event) is not None and due <= moment:
            at, _, kind, pod, _ = heapq.heappop(self._events)
            self.now = max(self.now, at)
            yield self._end_pod(pod) if kind == "end" else self._come_back(pod)
        self.now = max(self.now, moment)
        self.snapshot.taken_at = self.now

    def _expect_event(self, at: float, kind: str, pod: int) -> None:
        self._number += 1
        heapq.heappush(self._events, (at, self._number, kind, pod, self._incarnation[pod]))

    # Jobs come and go

    def arrive(self, job: LoadJob) -> Gang:
        """The job waits from now on."""
        row = self._add_group(job)
        gang = self.gangs[row] = Gang(job, row, self._add_pods(job, row), unfinished=job.tasks)
        return gang

    def _add_group(self, job: LoadJob) -> int:
        """In a free row, where only what differs from a new podgroup must be written."""
        snapshot = self.snapshot
        if not self._free_groups:
            rows = snapshot.add_groups([PodGroup("", "")] * _CHUNK)
            snapshot.remove_groups(rows)
            self._free_groups = rows.tolist()[::-1]
        row = self._free_groups.pop()
        amounts = [job.amount(resource) for resource in snapshot.resources]
        snapshot.change_groups(
            np.array([row]),
            key=job.key,
            queue=snapshot.queue_rows.get(job.queue, NO_QUEUE),
            min_member=job.minimum,
            min_resources=np.minimum(amounts, MAX_MINIMUM),
            has_min_resources=True,
            priority=job.priority,
            phase=int(Phase.PENDING),
            created=job.at,
            expected_seconds=job.seconds,
            starving_since=-1,
            evictions=0,
            alive=True,
        )
        return row

    def _class_of(self, job: LoadJob) -> int:
        """The number of the class of its pods, which the jobs of a load share with many others."""
        traits = (tuple(job.request.items()), job.priority)
        found = self._classes.get(traits)
        if found is None:
            request = Resources({**job.request, "pods": 1})
            found = self.snapshot.classes.number(PodClass(request, job.priority, "worker"))
            self._classes[traits] = found
        return found

    def _add_pods(self, job: LoadJob, group: int) -> Rows:
        snapshot = self.snapshot
        pod_class = self._class_of(job)
        self._make_room(job.tasks)
        rows = np.array([self._free_pods.pop() for _ in range(job.tasks)], dtype=np.intp)
        keys = [f"{job.key}-worker-{number}" for number in range(job.tasks)]
        snapshot.change_pods(
            rows,
            key=keys,
            group=group,
            pod_class=pod_class,
            status=int(PodStatus.PENDING),
            created=job.at,
            **_NO_PLACE,
        )
        return rows

    def _make_room(self, count: int) -> None:
        missing = count - len(self._free_pods)
        if missing <= 0:
            return
        added = max(missing, _CHUNK)
        rows = self.snapshot.add_pods(
            key=[""] * added,
            group=[0] * added,
            pod_class=[0] * added,
            status=[int(PodStatus.GONE)] * added,
            node=[NO_NODE] * added,
        )
        self._incarnation.extend([0] * added)
        self._free_pods = rows.tolist()[::-1] + self._free_pods

    def _remove_gang(self, gang: Gang) -> None:
        self.snapshot.remove_pods(gang.pods)
        self.snapshot.remove_groups(np.array([gang.row]))
        self._free_pods.extend(gang.pods.tolist())
        self._free_groups.append(gang.row)
        del self.gangs[gang.row]

    # Pods

    def carry_out(self, outcome: Outcome) -> list[Change]:
        """Carry out what the session decided: pods start after a moment, victims leave."""
        changes = [self._evict_pod(eviction.row) for eviction in outcome.evictions]
        self._bind_pods(outcome)
        self._keep_reservations(outcome)
        self._remember_outcome(outcome)
        return changes

    def _bind_pods(self, outcome: Outcome) -> None:
        if not outcome.binds:
            return
        snapshot = self.snapshot
        rows = np.array([bind.row for bind in outcome.binds], dtype=np.intp)
        nodes = np.array([snapshot.nodes.rows[bind.node] for bind in outcome.binds], dtype=np.int32)
        borrowed = np.array([bind.borrowed for bind in outcome.binds], dtype=np.bool_)
        snapshot.change_pods(
            rows,
            node=nodes,
            status=int(PodStatus.RUNNING),
            borrowed=borrowed,
            reserved_node=NO_NODE,
            reserved_until=-1,
        )
        for row in rows.tolist():
            self._start_pod(row)

    def _start_pod(self, pod: int) -> None:
        gang = self.gangs.get(int(self.snapshot.pods.group[pod]))
        begins = self.now + START_DELAY
        self._running_since[pod] = begins
        self.snapshot.pods.started[pod] = begins
        self._incarnation[pod] += 1
        if gang is None:
            return  # it stood in the file: nobody knows how long it runs
        if gang.started_at is None and self._has_started(gang):
            gang.started_at = self.now
        if not self._endless:
            self._expect_event(begins + gang.job.seconds, "end", pod)

    def _has_started(self, gang: Gang) -> bool:
        running = self.snapshot.pods.status[gang.pods] == StatusCode.RUNNING
        return int(running.sum()) >= gang.job.minimum

    def _evict_pod(self, pod: int) -> Change:
        self.snapshot.change_pods(np.array([pod]), status=int(PodStatus.RELEASING))
        self._incarnation[pod] += 1
        self._expect_event(self.now + GRACE, "back", pod)
        gang = self.gangs.get(int(self.snapshot.pods.group[pod]))
        if gang is not None:
            gang.evictions += 1
        self.snapshot.pods.started[pod] = np.nan
        since = self._running_since.pop(pod, self.now)
        return Change("evicted", pod, max(0.0, self.now - since))

    def _come_back(self, pod: int) -> Change:
        self._incarnation[pod] += 1
        self.snapshot.change_pods(
            np.array([pod]), status=int(PodStatus.PENDING), created=self.now, **_NO_PLACE
        )
        return Change("back", pod)

    def _end_pod(self, pod: int) -> Change:
        self._incarnation[pod] += 1
        since = self._running_since.pop(pod)
        change = Change("ended", pod, self.now - since)
        self.snapshot.change_pods(np.array([pod]), status=int(PodStatus.SUCCEEDED))
        return change

    def tidy(self, pod: int) -> None:
        """After the end of this pod: a job whose pods have all ended leaves."""
        gang = self.gangs[int(self.snapshot.pods.group[pod])]
        gang.unfinished -= 1
        if not gang.unfinished:
            self.finished += 1
            self._remove_gang(gang)

    def note_running(self, outcome: Outcome) -> None:
        """The phase that a session would give to the podgroups of the pods just bound."""
        groups = self.snapshot.groups
        counts = self.snapshot.aggregates.group_counts
        for row in {int(self.snapshot.pods.group[bind.row]) for bind in outcome.binds}:
            scheduled = int(counts[row, IS_SCHEDULED].sum())
            if scheduled >= max(1, int(groups.min_member[row])):
                groups.phase[row] = PhaseCode.RUNNING

    # What the next session must remember

    def _keep_reservations(self, outcome: Outcome) -> None:
        pods = self.snapshot.pods
        nodes = self.snapshot.nodes
        held = np.flatnonzero(pods.reserved_node >= 0)
        pods.reserved_node[held] = NO_NODE
        pods.reserved_until[held] = -1
        for reservation in outcome.reservations:
            pods.reserved_node[reservation.row] = nodes.rows[reservation.node]
            pods.reserved_until[reservation.row] = reservation.expires

    def _remember_outcome(self, outcome: Outcome) -> None:
        groups = self.snapshot.groups
        for change in outcome.phase_changes:
            groups.phase[change.row] = change.new
        for row, since in outcome.starving.items():
            groups.starving_since[row] = since
        for row in {int(self.snapshot.pods.group[eviction.row]) for eviction in outcome.evictions}:
            groups.evictions[row] += 1


_NO_PLACE: Final[dict[str, Any]] = {
    "node": NO_NODE,
    "borrowed": False,
    "reserved_node": NO_NODE,
    "reserved_until": -1,
}


def _with_resources(cluster: Cluster, jobs: Iterable[LoadJob]) -> Cluster:
    """A resource that jobs ask for and nobody has is a column of the snapshot too: of it there is
    nothing.
    """
    asked = {name for job in jobs for name in job.request}
    if not cluster.nodes or not asked:
        return cluster
    first, *others = cluster.nodes
    allocatable = Resources({**dict.fromkeys(asked, 0), **first.allocatable})
    return replace(cluster, nodes=(replace(first, allocatable=allocatable), *others))
