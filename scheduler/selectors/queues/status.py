"""The status of queues, from rows, right at the moment of asking: counts, what is allocated, what of a guarantee is unused, conditions.

Six queries for the whole tree, whatever its size; sums over pods are made by the database, by class of pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.db.models import Count, TextField
from django.db.models.functions import Cast

from scheduler.domain.conditions import queue_conditions
from scheduler.domain.resources import NOTHING, Resources, total
from scheduler.models import Job, Pod, PodClass, PodGroup, Queue, QueueFigures
from scheduler.selectors.queues.facts import ALLOCATED_PHASES
from scheduler.selectors.queues.tree import StoredQueue, amounts_in, stored_queues

_NO_WORK = Resources({"cpu": 0, "memory": 0})  # what an idle queue shows

# What each phase of a job counts as; one on its way to another phase still has pods, and so runs.
_JOBS = {
    "Pending": "pending",
    "Running": "running",
    "Restarting": "running",
    "Aborting": "running",
    "Completing": "running",
    "Terminating": "running",
    "Completed": "completed",
    "Failed": "failed",
    "Aborted": "aborted",
    "Terminated": "aborted",
}


@dataclass(frozen=True, slots=True)
class PhaseCounts:
    pending: int = 0
    inqueue: int = 0
    running: int = 0
    unknown: int = 0
    completed: int = 0

    def __add__(self, other: PhaseCounts) -> PhaseCounts:
        return PhaseCounts(
            self.pending + other.pending,
            self.inqueue + other.inqueue,
            self.running + other.running,
            self.unknown + other.unknown,
            self.completed + other.completed,
        )

    @property
    def live(self) -> int:
        return self.pending + self.inqueue + self.running + self.unknown

    def as_dict(self) -> dict[str, int]:
        return {
            phase: getattr(self, phase)
            for phase in ("pending", "inqueue", "running", "unknown", "completed")
        }


_NONE = PhaseCounts()
_NO_JOBS = dict.fromkeys(("pending", "running", "completed", "failed", "aborted", "unknown"), 0)


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """One queue. `own` counts its own podgroups, `subtree` those below it too; `allocated` is summed up the tree."""

    name: str
    state: str
    closed_by: str
    suspended_by: str
    held_by: str
    own: PhaseCounts
    subtree: PhaseCounts
    jobs: Mapping[str, int]
    allocated: Resources
    reservation: Resources
    conditions: list[dict[str, Any]]
    warnings: list[dict[str, Any]]
    figures: Mapping[str, Any] = field(default_factory=dict)

    def as_manifest(self) -> dict[str, Any]:
        """The `status` of a Queue object as the API writes it. Figures of a session are left out until one has looked at the queue."""
        return {
            "state": self.state,
            "closedBy": self.closed_by,
            "suspendedBy": self.suspended_by,
            **self.own.as_dict(),
            "subtree": self.subtree.as_dict(),
            "jobs": dict(self.jobs),
            "allocated": self.allocated.to_quantities(),
            **self.figures,
            "reservation": self.reservation.to_quantities(),
            "conditions": self.conditions,
            "warnings": self.warnings,
        }


def queue_statuses(names: Iterable[str] | None = None) -> dict[str, QueueStatus]:
    """By name, in the order of the names; all queues if none are named."""
    queues = stored_queues()
    gathered = _Gathered(queues)
    wanted = queues.keys() if names is None else set(names)
    return {name: gathered.status(queue) for name, queue in queues.items() if name in wanted}


def queue_status(name: str) -> QueueStatus:
    """Raises `Queue.DoesNotExist`."""
    found = queue_statuses([name])
    if not found:
        raise Queue.DoesNotExist(f"There is no queue {name}.")
    return found[name]


class _Gathered:
    """Everything that is counted, by queue, own and rolled up."""

    def __init__(self, queues: Mapping[str, StoredQueue]) -> None:
        self.own, unowned = _phase_counts()
        self.jobs = _job_counts(unowned)
        self.subtree = dict(self.own)
        self.allocated = _allocated()
        self.figures = _session_figures()
        for pk, parent in _children_first(queues):
            if parent is not None and pk in self.subtree:
                self.subtree[parent] = self.subtree.get(parent, _NONE) + self.subtree[pk]
            if parent is not None and pk in self.allocated:
                self.allocated[parent] = self.allocated.get(parent, NOTHING) + self.allocated[pk]

    def status(self, queue: StoredQueue) -> QueueStatus:
        allocated = self.allocated.get(queue.pk)
        shown = _NO_WORK if allocated is None else _NO_WORK + allocated
        subtree = self.subtree.get(queue.pk, _NONE)
        return QueueStatus(
            name=queue.name,
            state=queue.standing.state.value,
            closed_by=queue.standing.closed_by,
            suspended_by=queue.standing.suspended_by,
            held_by=queue.standing.held_by,
            own=self.own.get(queue.pk, _NONE),
            subtree=subtree,
            jobs={**_NO_JOBS, **self.jobs.get(queue.pk, {})},
            allocated=shown,
            reservation=Resources(
                {
                    name: max(0, amount - shown.amount(name))
                    for name, amount in queue.spec.guarantee.items()
                }
            ),
            conditions=_conditions(queue, subtree.live),
            warnings=queue.warnings,
            figures=self.figures.get(queue.pk, {}),
        )


def _children_first(queues: Mapping[str, StoredQueue]) -> list[tuple[int, int | None]]:
    """Queues with their parents, the deepest first. A ring of parents is cut where it is met again."""
    parents = {queue.pk: queue.parent_pk for queue in queues.values()}
    depths: dict[int, int] = {}
    for pk in parents:
        path: list[int] = []
        current: int | None = pk
        while (
            current is not None
            and current in parents
            and current not in depths
            and current not in path
        ):
            path.append(current)
            current = parents[current]
        depth = depths.get(current, -1) if current is not None else -1
        for step in reversed(path):
            depth += 1
            depths[step] = depth
    return [(pk, parents[pk]) for pk in sorted(parents, key=lambda pk: -depths[pk])]


def _phase_counts() -> tuple[dict[int, PhaseCounts], dict[int, int]]:
    """Podgroups by queue and phase, and how many of each queue have no job."""
    counts: dict[int, dict[str, int]] = {}
    unowned: dict[int, int] = {}
    rows = (
        PodGroup.objects.values_list("queue_id", "phase")
        .annotate(number=Count("id"), with_job=Count("job_id"))
        .order_by()
    )
    for queue, phase, number, with_job in rows:
        counts.setdefault(queue, {})[phase.lower()] = number
        unowned[queue] = unowned.get(queue, 0) + number - with_job
    return {queue: PhaseCounts(**phases) for queue, phases in counts.items()}, unowned


def _job_counts(unowned: Mapping[int, int]) -> dict[int, dict[str, int]]:
    """Jobs by queue; work that came without a job has no phase of its own and counts as unknown."""
    counts: dict[int, dict[str, int]] = {
        queue: {"unknown": number} for queue, number in unowned.items()
    }
    for queue, phase, number in (
        Job.objects.values_list("queue_id", "phase").annotate(number=Count("id")).order_by()
    ):
        own = counts.setdefault(queue, {})
        own[_JOBS[phase]] = own.get(_JOBS[phase], 0) + number
    return counts


def _allocated() -> dict[int, Resources]:
    """What the pods that have a place ask for, by their own queue; each is also one of `pods`."""
    placed = Pod.objects.filter(phase__in=ALLOCATED_PHASES)
    rows = list(
        placed.values_list("podgroup__queue_id", "pod_class_id")
        .annotate(number=Count("id"))
        .order_by()
    )
    requests = dict(
        PodClass.objects.filter(pk__in={pod_class for _, pod_class, _ in rows}).values_list(
            "pk", "requests"
        )
    )
    parts: dict[int, list[Resources]] = {}
    for queue, pod_class, number in rows:
        parts.setdefault(queue, []).append(
            requests[pod_class] * number + Resources({"pods": number})
        )
    return {queue: total(amounts) for queue, amounts in parts.items()}


def _session_figures() -> dict[int, dict[str, Any]]:
    """What the last session found, as the API writes it."""
    texts = {
        f"{name}_text": Cast(name, TextField())
        for name in ("deserved", "nominal_share", "request", "held", "real_capability")
    }
    rows = QueueFigures.objects.annotate(**texts).values_list(
        "queue_id", "share", "overused", *texts
    )
    return {
        queue: {
            "deserved": _quantities(deserved),
            "nominalShare": _quantities(nominal),
            "request": _quantities(request),
            "held": _quantities(held),
            "realCapability": None if limit in (None, "null") else _quantities(limit),
            "share": share,
            "overused": overused,
        }
        for queue, share, overused, deserved, nominal, request, held, limit in rows
    }


@lru_cache(maxsize=16_384)
def _quantities(text: str) -> Mapping[str, str]:
    return amounts_in(text).to_quantities()


def _conditions(queue: StoredQueue, live: int) -> list[dict[str, Any]]:
    since = queue.state_since.isoformat() if queue.state_since else ""
    return queue_conditions(queue.name, queue.standing, queue.conditions, live, since)
