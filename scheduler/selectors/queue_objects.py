"""Queues with everything that their objects show: specification, figures, counts of own gangs, of the subtree's, and of jobs.

Five queries whatever the number of queues. Amounts come as the text they are stored as: most repeat, and each text is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import BooleanField, Count, ExpressionWrapper, Q, QuerySet, TextField
from django.db.models.functions import Cast

from scheduler.models import Job, PodGroup, Queue

PHASES = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
JOB_COUNTS = ("pending", "running", "completed", "failed", "aborted", "unknown")
# Under which of the six counts of the contract a job's phase falls.
_COUNTED_AS = {
    "Pending": 0,
    "Running": 1,
    "Restarting": 1,
    "Aborting": 1,
    "Completing": 1,
    "Terminating": 1,
    "Completed": 2,
    "Failed": 3,
    "Aborted": 4,
    "Terminated": 4,
}
_UNKNOWN = 5

_PLAIN = (
    "id", "uid", "name", "parent_id", "weight", "reclaimable", "priority", "dequeue_strategy", "type", "wish", "state", "closed_by",
    "suspended_by", "held_by", "created_at", "resource_version", "figures__share", "figures__overused", "figures__session",
)  # fmt: skip
_TEXTS = ("capability", "deserved", "guarantee", "labels", "annotations", "conditions", "warnings")
_FIGURES = ("allocated", "deserved", "nominal_share", "request", "real_capability", "warnings")
_NO_GANGS = (0,) * len(PHASES)
_NO_JOBS = (0,) * len(JOB_COUNTS)


def queue_values(queues: QuerySet[Queue] | None = None) -> QuerySet[Any, dict[str, Any]]:
    """A row of plain values a queue."""
    texts: dict[str, Any] = {f"text_{name}": Cast(name, TextField()) for name in _TEXTS}
    texts |= {f"now_{name}": Cast(f"figures__{name}", TextField()) for name in _FIGURES}
    found: QuerySet[Any, dict[str, Any]] = (Queue.objects.all() if queues is None else queues).annotate(**texts).values(*_PLAIN, *texts)
    return found


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """What surrounds the rows: names, children, and counts by queue id."""

    names: Mapping[int, str]
    parents: Mapping[int, int | None]
    own: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    subtree: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    jobs: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    waiting: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    def gangs(self, queue_id: int) -> tuple[int, ...]:
        return self.own.get(queue_id, _NO_GANGS)

    def gangs_below(self, queue_id: int) -> tuple[int, ...]:
        return self.subtree.get(queue_id, _NO_GANGS)

    def jobs_of(self, queue_id: int) -> tuple[int, ...]:
        return self.jobs.get(queue_id, _NO_JOBS)


def queue_counts() -> QueueCounts:
    rows = list(Queue.objects.order_by().values_list("id", "name", "parent_id"))
    parents = {row[0]: row[2] for row in rows}
    own, orphans = _gangs()
    return QueueCounts({row[0]: row[1] for row in rows}, parents, own, _rolled_up(own, parents), _jobs(orphans))


def _gangs() -> tuple[dict[int, tuple[int, ...]], dict[int, int]]:
    """Counts by phase of each queue, and how many of its gangs have no job of ours."""
    counts: dict[int, list[int]] = {}
    orphans: dict[int, int] = {}
    has_no_job = ExpressionWrapper(Q(job__isnull=True), BooleanField())
    rows = PodGroup.objects.order_by().values_list("queue_id", "phase", has_no_job).annotate(number=Count("id"))
    for queue_id, phase, is_orphan, number in rows:
        counts.setdefault(queue_id, [0] * len(PHASES))[PHASES.index(phase)] += number
        if is_orphan:
            orphans[queue_id] = orphans.get(queue_id, 0) + number
    return {queue_id: tuple(numbers) for queue_id, numbers in counts.items()}, orphans


def _jobs(orphans: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    counts: dict[int, list[int]] = {}
    for queue_id, phase, number in Job.objects.order_by().values_list("queue_id", "phase").annotate(number=Count("id")):
        counts.setdefault(queue_id, [0] * len(JOB_COUNTS))[_COUNTED_AS[phase]] += number
    for queue_id, number in orphans.items():
        counts.setdefault(queue_id, [0] * len(JOB_COUNTS))[_UNKNOWN] += number
    return {queue_id: tuple(numbers) for queue_id, numbers in counts.items()}


def _rolled_up(own: Mapping[int, tuple[int, ...]], parents: Mapping[int, int | None]) -> dict[int, tuple[int, ...]]:
    """Each queue's counts added to itself and to all above it; only queues that have any cost anything."""
    sums: dict[int, list[int]] = {}
    for queue_id, numbers in own.items():
        current: int | None = queue_id
        seen: set[int] = set()
        while current is not None and current not in seen:
            seen.add(current)
            total = sums.setdefault(current, [0] * len(PHASES))
            for index, number in enumerate(numbers):
                total[index] += number
            current = parents.get(current)
    return {queue_id: tuple(numbers) for queue_id, numbers in sums.items()}


def subtree_ids(name: str, counts: QueueCounts) -> list[int]:
    """The queue and everything below it, parents first."""
    start = next((queue_id for queue_id, found in counts.names.items() if found == name), None)
    if start is None:
        return []
    children: dict[int | None, list[int]] = {}
    for queue_id, parent in sorted(counts.parents.items(), key=lambda pair: counts.names[pair[0]]):
        children.setdefault(parent, []).append(queue_id)
    found: list[int] = []
    stack = [start]
    while stack:
        queue_id = stack.pop()
        if queue_id not in found:
            found.append(queue_id)
            stack.extend(reversed(children.get(queue_id, [])))
    return found


def subtree_names(name: str) -> list[str]:
    rows = list(Queue.objects.order_by("name").values_list("id", "name", "parent_id"))
    counts = QueueCounts({row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows})
    return [counts.names[queue_id] for queue_id in subtree_ids(name, counts)]


def children_of(rows: Iterable[Mapping[str, Any]], parent_id: int) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["parent_id"] == parent_id]
