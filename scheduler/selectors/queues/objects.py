"""Queues with everything that their objects show.

Specification, figures, counts of own gangs, of gangs in the subtree, and of jobs.

Two queries whatever the number of queues. Amounts come as the text they are stored as: most repeat,
and each text is read once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from scheduler.domain.queue_fields import (
    AMOUNT_FIELDS,
    LIMIT_FIELDS,
    METADATA_FIELDS,
    PLAIN_FIELDS,
    names_of,
)
from scheduler.models import Queue
from scheduler.models.bulk import fetch_as_planned
from scheduler.models.prepared import Prepared, condition_with_slot, slot
from scheduler.scenarios.policies import min_run_seconds_of, policy_of
from scheduler.selectors.sessions.snapshot_rows import ids_parameter, one_of_ids

PHASES = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
JOB_COUNTS = ("pending", "running", "completed", "failed", "aborted", "unknown")
# Under which of Volcano's six counts of jobs a phase falls.
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

_AMOUNTS = names_of(AMOUNT_FIELDS)
_SPEC = tuple(name for name in names_of(PLAIN_FIELDS) if name not in _AMOUNTS)
_PLAIN = (
    "id",
    "uid",
    "name",
    "parent__name",
    *_SPEC,
    "wish",
    "state",
    "closed_by",
    "suspended_by",
    "held_by",
    "state_since",
    "created_at",
    "resource_version",
    "figures__share",
    "figures__overused",
    "figures__session",
)
_TEXTS = (*_AMOUNTS, *METADATA_FIELDS, "conditions", "warnings")
_FIGURES = (
    "allocated",
    "leaving",
    "promised",
    "asked",
    "lacking",
    "deserved",
    "nominal_share",
    "request",
    "held",
    "real_capability",
    "warnings",
)
_NO_GANGS = (0,) * len(PHASES)
_NO_JOBS = (0,) * len(JOB_COUNTS)


_TREE_WITH_DELETED = Prepared(
    lambda: Queue.with_deleted.order_by().values_list("id", "name", "parent_id")
)


def queue_values(queues: QuerySet[Queue] | None = None) -> QuerySet[Any, dict[str, Any]]:
    """A row of plain values a queue."""
    if queues is None:
        queues = Queue.objects.all()
    texts: dict[str, Any] = {}
    for name in _TEXTS:
        texts[f"text_{name}"] = Cast(name, TextField())
    texts |= {f"now_{name}": Cast(f"figures__{name}", TextField()) for name in _FIGURES}
    found: QuerySet[Any, dict[str, Any]] = queues.annotate(**texts).values(*_PLAIN, *texts)
    return found


def _values_by_ids() -> QuerySet[Any, Any]:
    chosen = condition_with_slot(one_of_ids("scheduler_queue.id"), "ids")
    return queue_values(Queue.objects.filter(chosen)).order_by().values_list(*_value_names())


def _value_names() -> tuple[str, ...]:
    """Of the columns of `queue_values`."""
    texts = [f"text_{name}" for name in _TEXTS]
    return (*_PLAIN, *texts, *(f"now_{name}" for name in _FIGURES))


def _values_by_name() -> QuerySet[Any, Any]:
    chosen = Queue.objects.filter(name=slot("name"))
    return queue_values(chosen).order_by().values_list(*_value_names())


_VALUES_BY_IDS = Prepared(_values_by_ids, keep_plan=True)
_VALUES_BY_NAME = Prepared(_values_by_name, keep_plan=True)


def values_of_queues(ids: Iterable[int]) -> list[dict[str, Any]]:
    """As `queue_values`, of these queues: asked by every list that shows what has just changed."""
    names = _value_names()
    rows = _VALUES_BY_IDS.rows(ids=ids_parameter(ids))
    return [dict(zip(names, row, strict=True)) for row in rows]


def values_of_queue(name: str) -> dict[str, Any] | None:
    """As `queue_values`, of one queue; None where there is none."""
    row = _VALUES_BY_NAME.row(name=name)
    if row is None:
        return None
    return dict(zip(_value_names(), row, strict=True))


class MinRun(NamedTuple):
    """The minimum running time of a queue, and the queue that names it: itself or one above.

    Empty where none does: then it is the policy's.
    """

    seconds: int
    named_by: str


_NO_MIN_RUN = MinRun(0, "")


class LimitNow(NamedTuple):
    """The strictest limit of one kind that applies to a queue, and the queue that names it."""

    field: str
    limit: int
    named_by: str


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Counts by queue id; names and parents too where they were asked for."""

    names: Mapping[int, str]
    parents: Mapping[int, int | None]
    own: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    subtree: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    jobs: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    min_run: Mapping[int, MinRun] = field(default_factory=dict)
    policy_min_run: MinRun = _NO_MIN_RUN
    limits: Mapping[int, tuple[LimitNow, ...]] = field(default_factory=dict)

    def of(self, queue_id: int) -> tuple[tuple[Any, ...], ...]:
        """All that other rows say of a queue: its gangs, those of its subtree, its jobs, and what
        it inherits: the minimum running time, and limits.
        """
        return (
            self.gangs(queue_id),
            self.gangs_below(queue_id),
            self.jobs_of(queue_id),
            self.min_run_of(queue_id),
            self.limits_of(queue_id),
        )

    def all_of(self, queue_ids: Iterable[int]) -> dict[int, Hashable]:
        """The same of many queues at once: most have nothing of their own."""
        usual = self.of(0)
        special: set[int] = set()
        for counts in (self.own, self.subtree, self.jobs, self.min_run, self.limits):
            special.update(counts)
        found: dict[int, Hashable] = dict.fromkeys(queue_ids, usual)
        for queue_id in special & found.keys():
            found[queue_id] = self.of(queue_id)
        return found

    def limits_of(self, queue_id: int) -> tuple[LimitNow, ...]:
        return self.limits.get(queue_id, ())

    def min_run_of(self, queue_id: int) -> MinRun:
        return self.min_run.get(queue_id, self.policy_min_run)

    def gangs(self, queue_id: int) -> tuple[int, ...]:
        return self.own.get(queue_id, _NO_GANGS)

    def gangs_below(self, queue_id: int) -> tuple[int, ...]:
        return self.subtree.get(queue_id, _NO_GANGS)

    def jobs_of(self, queue_id: int) -> tuple[int, ...]:
        return self.jobs.get(queue_id, _NO_JOBS)


_OWN_LIMITS = " UNION ALL ".join(
    f"SELECT id, {place} AS place, {field.name} AS most, name AS named_by FROM limiting "
    f"WHERE {field.name} IS NOT NULL"
    for place, field in enumerate(LIMIT_FIELDS)
)
_KINDS = ("queue", "gang", "job", "min run", "limit", "policy")

Found = dict[str, list[tuple[Any, ...]]]

# Queues that name any limit, found by one look at all queues.
_LIMITING = (
    f"SELECT id, name, {', '.join(field.name for field in LIMIT_FIELDS)} FROM scheduler_queue "
    "WHERE deleted_at IS NULL AND "
    f"({' OR '.join(f'{field.name} IS NOT NULL' for field in LIMIT_FIELDS)})"
)
# The queues, the gangs, the jobs and what is inherited in one question: asking five times takes
# longer than what is asked.
_COUNTED = """
WITH RECURSIVE gangs AS (
  SELECT
    queue_id, CASE WHEN job_id IS NULL THEN 1 ELSE 0 END AS has_no_job, phase, count(*) AS number
  FROM scheduler_podgroup GROUP BY 1, 2, 3
), with_gangs AS (
  SELECT id, parent_id FROM scheduler_queue
  WHERE deleted_at IS NULL AND id IN (SELECT queue_id FROM gangs)
  UNION
  SELECT above.id, above.parent_id FROM scheduler_queue above
  JOIN with_gangs ON above.id = with_gangs.parent_id
), min_run AS (
  SELECT id, min_run_seconds AS seconds, name AS named_by FROM scheduler_queue
  WHERE deleted_at IS NULL AND min_run_seconds IS NOT NULL
  UNION
  SELECT below.id, min_run.seconds, min_run.named_by FROM scheduler_queue below
  JOIN min_run ON below.parent_id = min_run.id
  WHERE below.deleted_at IS NULL AND below.min_run_seconds IS NULL
), limiting AS (
  {limiting}
), own_limits AS (
  {own_limits}
), limited AS (
  SELECT id, place, most, named_by FROM own_limits
  UNION
  SELECT below.id, limited.place, limited.most, limited.named_by FROM scheduler_queue below
  JOIN limited ON below.parent_id = limited.id
  WHERE below.deleted_at IS NULL
)
{queues}
UNION ALL
SELECT 'gang', queue_id, has_no_job, phase, number FROM gangs
UNION ALL
SELECT 'job', queue_id, 0, phase, count(*) FROM scheduler_job GROUP BY 2, 4
UNION ALL
SELECT 'min run', id, seconds, named_by, 0 FROM min_run
UNION ALL
SELECT 'limit', id, most, named_by, place FROM limited
UNION ALL
SELECT 'policy', 0, 0, policy.text, 0 FROM scheduler_clusterstate state
JOIN scheduler_policyversion policy ON policy.id = state.policy_id
"""
_OF_THE_TREE = _COUNTED.format(
    limiting=_LIMITING,
    own_limits=_OWN_LIMITS,
    queues="SELECT 'queue', id, parent_id, name, 0 FROM scheduler_queue WHERE deleted_at IS NULL",
)
_OF_THOSE_WITH_GANGS = _COUNTED.format(
    limiting=_LIMITING,
    own_limits=_OWN_LIMITS,
    queues="SELECT 'queue', id, parent_id, '', 0 FROM with_gangs",
)


def queue_counts() -> QueueCounts:
    """Without names: only queues that have gangs, or have some below them, are looked at."""
    return _counts(_OF_THOSE_WITH_GANGS)


def tree_counts() -> QueueCounts:
    """The same with the name and the parent of every queue."""
    return _counts(_OF_THE_TREE)


def _counts(sql: str) -> QueueCounts:
    found: Found = {}
    for kind, *row in fetch_as_planned(sql):
        found.setdefault(kind, []).append(tuple(row))
    return counts_from(found)


def counts_from(rows: Found) -> QueueCounts:
    """From rows as the statement has them, by their first column."""
    found = {kind: rows.get(kind, []) for kind in _KINDS}
    names = {}
    parents = {}
    for queue_id, parent, name, _ in found["queue"]:
        names[queue_id] = name
        parents[queue_id] = parent
    own = _gangs(found["gang"])
    return QueueCounts(
        names,
        parents,
        own,
        subtree=_rolled_up(own, parents),
        jobs=_jobs(found["job"], found["gang"]),
        min_run={queue_id: MinRun(*named) for queue_id, *named, _ in found["min run"]},
        policy_min_run=_of_policy(found["policy"]),
        limits=_strictest(found["limit"]),
    )


def _of_policy(rows: list[tuple[Any, ...]]) -> MinRun:
    """What holds where no queue names a time. An installation may never have written a policy."""
    text: str | None = None
    if rows:
        _, _, text, _ = rows[0]
    return MinRun(min_run_seconds_of(policy_of(text)), "")


def _strictest(rows: list[tuple[Any, ...]]) -> dict[int, tuple[LimitNow, ...]]:
    """Of each kind the lowest, in the order of the table of fields."""
    lowest: dict[int, dict[int, tuple[int, str]]] = {}
    for queue_id, most, named_by, place in sorted(rows):
        lowest.setdefault(queue_id, {}).setdefault(place, (most, named_by))
    limits = {}
    for queue_id, by_place in lowest.items():
        limits[queue_id] = tuple(
            LimitNow(LIMIT_FIELDS[place].key, *by_place[place]) for place in sorted(by_place)
        )
    return limits


def _gangs(rows: list[tuple[Any, ...]]) -> dict[int, tuple[int, ...]]:
    """Counts by phase of each queue."""
    counts: dict[int, list[int]] = {}
    for queue_id, _, phase, number in rows:
        of_queue = counts.setdefault(queue_id, [0] * len(PHASES))
        of_queue[PHASES.index(phase)] += number
    gangs: dict[int, tuple[int, ...]] = {}
    for queue_id, numbers in counts.items():
        gangs[queue_id] = tuple(numbers)
    return gangs


def _jobs(rows: list[tuple[Any, ...]], gangs: list[tuple[Any, ...]]) -> dict[int, tuple[int, ...]]:
    """Volcano's six counts of jobs; a gang that has no job of ours counts as unknown."""
    counts: dict[int, list[int]] = {}
    for queue_id, _, phase, number in rows:
        of_queue = counts.setdefault(queue_id, [0] * len(JOB_COUNTS))
        of_queue[_COUNTED_AS[phase]] += number
    for queue_id, is_orphan, _, number in gangs:
        if is_orphan:
            of_queue = counts.setdefault(queue_id, [0] * len(JOB_COUNTS))
            of_queue[_UNKNOWN] += number
    jobs: dict[int, tuple[int, ...]] = {}
    for queue_id, numbers in counts.items():
        jobs[queue_id] = tuple(numbers)
    return jobs


def _rolled_up(
    own: Mapping[int, tuple[int, ...]], parents: Mapping[int, int | None]
) -> dict[int, tuple[int, ...]]:
    """Each queue's counts added to itself and to all above it.

    Only queues that have any cost anything.
    """
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
    rolled_up: dict[int, tuple[int, ...]] = {}
    for queue_id, total in sums.items():
        rolled_up[queue_id] = tuple(total)
    return rolled_up


def subtree_ids(name: str, counts: QueueCounts) -> list[int]:
    """The queue and everything below it, parents first."""
    names = counts.names
    children: dict[int | None, list[int]] = {}
    for queue_id in sorted(counts.parents, key=names.__getitem__):
        children.setdefault(counts.parents[queue_id], []).append(queue_id)
    found: list[int] = []
    stack = [queue_id for queue_id in names if names[queue_id] == name]
    while stack:
        queue_id = stack.pop()
        if queue_id not in found:
            found.append(queue_id)
            stack.extend(reversed(children.get(queue_id, [])))
    return found


def names_in_records(name: str) -> list[str]:
    """The queue and everything below it, deleted queues included.

    Records of them are found by these names.

    A name that no queue has is looked for all the same: its records may have outlived it.
    """
    rows = _TREE_WITH_DELETED.rows()
    children: dict[int | None, list[int]] = {}
    for queue_id, _, parent in rows:
        children.setdefault(parent, []).append(queue_id)
    found = set()
    for queue_id, known, _ in rows:
        if known == name:
            found.add(queue_id)
    waiting = list(found)
    while waiting:
        below = []
        for child in children.get(waiting.pop(), []):
            if child not in found:
                below.append(child)
        found.update(below)
        waiting.extend(below)
    names = {name}
    for queue_id, known, _ in rows:
        if queue_id in found:
            names.add(known)
    return sorted(names)
