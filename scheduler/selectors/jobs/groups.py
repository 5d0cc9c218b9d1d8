"""How many jobs of a list have which state, queue, user and so on; and the same as groups.

The number of queries does not depend on the number of jobs. Counts of all jobs are read from
indexes alone. Counts of a filtered list are made in one walk over what it matches.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, Min, Q, QuerySet, Sum, TextField
from django.db.models.functions import Cast

from scheduler.domain.job_groups import FACETS, JobField, JobGroup, shape_word
from scheduler.domain.resources import NOTHING, Resources
from scheduler.domain.shown_phases import JOB_SPEAKS, STOPPING, shown_phase
from scheduler.models import Job, PodGroup, Queue
from scheduler.models.workload import JOB_PHASES
from scheduler.selectors.jobs.listing import WAITING

Facets = Mapping[JobField, Counter[str]]
_UNJUDGED: Final = "AwaitingEvaluation"
_COLUMNS: Final = (
    "queue_id",
    "owner",
    "namespace",
    "priority",
    "phase",
    "job__phase",
    "reason_code",
)
_GROUPED_BY: Final[Mapping[JobField, tuple[str, ...]]] = {
    JobField.STATE: ("phase", "job__phase"),
    JobField.QUEUE: ("queue_id",),
    JobField.USER: ("owner",),
    JobField.REASON: ("phase", "reason_code"),
    JobField.NAMESPACE: ("namespace",),
    JobField.PRIORITY: ("priority",),
    JobField.SHAPE: ("min_member",),
}


def state_word(gang: str, job: str | None) -> str:
    """As the query box calls it."""
    phase = shown_phase(gang, job)
    if phase in STOPPING:
        return "stopping"
    return phase.lower()


def facets_of_all(readable: Collection[int] | None) -> Facets:
    """The counts of all jobs that may be seen. `readable` is as in `jobs_matching`."""
    gangs = PodGroup.objects.order_by()
    jobs = Job.objects.order_by()
    if readable is not None:
        gangs = gangs.filter(queue__in=sorted(readable))
        jobs = jobs.filter(queue__in=sorted(readable))
    return {
        JobField.STATE: _all_states(gangs, jobs),
        JobField.QUEUE: _with_queue_names(_counted(gangs, "queue_id")),
        JobField.USER: _counted(gangs, "owner"),
        JobField.REASON: _all_reasons(gangs),
        JobField.NAMESPACE: _counted(gangs, "namespace"),
        JobField.PRIORITY: _counted(gangs, "priority"),
    }


def _counted(rows: QuerySet[Any], column: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for value, number in rows.values_list(column).annotate(number=Count("pk")):
        counts[str(value)] = number
    return counts


def _all_states(gangs: QuerySet[PodGroup], jobs: QuerySet[Job]) -> Counter[str]:
    """A join of all jobs with all gangs would take ten times as long.

    So those that have ended are counted by their job, and the few others by their gang.
    """
    counts: Counter[str] = Counter()
    speaking = jobs.filter(phase__in=JOB_SPEAKS, podgroup__isnull=False)
    for phase, number in speaking.values_list("phase").annotate(number=Count("pk")):
        counts[state_word("", phase)] += number
    silent = [phase for phase in JOB_PHASES if phase not in JOB_SPEAKS]
    for rows in (gangs.filter(job__phase__in=silent), gangs.filter(job=None)):
        for phase, number in rows.values_list("phase").annotate(number=Count("pk")):
            counts[state_word(phase, None)] += number
    return counts


def _all_reasons(gangs: QuerySet[PodGroup]) -> Counter[str]:
    counts = _counted(gangs.filter(phase__in=WAITING), "reason_code")
    counts[_UNJUDGED] += counts.pop("", 0)
    return +counts


def facets_of(found: QuerySet[PodGroup]) -> Facets:
    """The counts of the jobs that a filter finds."""
    counts: dict[JobField, Counter[str]] = {facet: Counter() for facet in FACETS}
    combined = Counter(found.order_by().values_list(*_COLUMNS).iterator())
    for values, number in combined.items():
        queue, owner, namespace, priority, phase, job_phase, reason = values
        counts[JobField.QUEUE][str(queue)] += number
        counts[JobField.USER][owner] += number
        counts[JobField.NAMESPACE][namespace] += number
        counts[JobField.PRIORITY][str(priority)] += number
        counts[JobField.STATE][state_word(phase, job_phase)] += number
        if phase in WAITING:
            counts[JobField.REASON][reason or _UNJUDGED] += number
    return {**counts, JobField.QUEUE: _with_queue_names(counts[JobField.QUEUE])}


def _with_queue_names(counts: Counter[str]) -> Counter[str]:
    """Two queues may have had one name, one after the other."""
    names = _queue_names()
    named: Counter[str] = Counter()
    for key, number in counts.items():
        named[names[int(key)]] += number
    return named


def _queue_names() -> dict[int, str]:
    return dict(Queue.with_deleted.order_by().values_list("pk", "name"))


@dataclass(slots=True)
class _Sum:
    jobs: int = 0
    waiting: int = 0
    pods: int = 0
    request: Resources = field(default_factory=lambda: NOTHING)
    oldest: datetime | None = None


def job_groups(found: QuerySet[PodGroup], by: JobField) -> tuple[JobGroup, ...]:
    """The largest group first.

    Amounts come as the text that they are stored as: most repeat, so there are few to add up.
    """
    waits = Q(phase__in=WAITING)
    rows = (
        found.order_by()
        .values_list(*_GROUPED_BY[by], Cast("min_resources", TextField()))
        .annotate(
            jobs=Count("pk"),
            waiting=Count("pk", filter=waits),
            needed=Sum("min_member"),
            oldest=Min("created_at", filter=waits),
        )
    )
    value_of = _value_reader(by)
    sums: dict[str, _Sum] = {}
    for *key, text, jobs, waiting, pods, oldest in rows:
        amounts = _amounts(text)
        total = sums.setdefault(value_of(key, amounts), _Sum())
        total.jobs += jobs
        total.waiting += waiting
        total.pods += pods
        total.request += Resources({name: amount * jobs for name, amount in amounts.items()})
        total.oldest = min(filter(None, (total.oldest, oldest)), default=None)
    return tuple(_in_order(sums))


def _amounts(text: str | None) -> Resources:
    if not text or text == "null":
        return NOTHING
    return Resources(json.loads(text))


def _value_reader(by: JobField) -> Callable[[list[Any], Resources], str]:
    if by is JobField.QUEUE:
        names = _queue_names()
        return lambda key, _: names[key[0]]
    if by is JobField.STATE:
        return lambda key, _: state_word(key[0], key[1])
    if by is JobField.REASON:
        return lambda key, _: _reason(key[0], key[1])
    if by is JobField.SHAPE:
        return lambda key, amounts: shape_word(key[0], amounts)
    return lambda key, _: str(key[0])


def _reason(phase: str, code: str) -> str:
    """Empty for a job that does not wait."""
    if phase not in WAITING:
        return ""
    return code or _UNJUDGED


def _in_order(sums: Mapping[str, _Sum]) -> Iterable[JobGroup]:
    for value in sorted(sums, key=lambda value: (-sums[value].jobs, value)):
        total = sums[value]
        yield JobGroup(value, total.jobs, total.waiting, total.pods, total.request, total.oldest)
