"""Jobs as pages show them: gangs with their job, if they have one.

Every list is a page of a fixed number of rows, found by key, in a fixed number of queries, whatever
the table holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from scheduler.domain.filters import Comparison, Condition
from scheduler.domain.job_groups import read_shape
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.resources import NOTHING, Resources
from scheduler.domain.shown_phases import STOPPING, shown_phase
from scheduler.models import ExpectedStart, Job, Pod, PodGroup, Queue
from scheduler.models.workload import LIVE_PHASES
from scheduler.selectors.jobs.start_times import starts_of_waiting

WAITING = ("Pending", "Inqueue")
REASON_CODES = tuple(code.value for code in ReasonCode)
PAGE = 50
COUNTED_AT_MOST = 1000
ENDS_AT_MOST = 4000  # pages of a list whose ends are told at once


@dataclass(frozen=True, slots=True)
class JobRow:
    """One line of the table.

    `members` counts pods by phase; `request` is what all its pods ask for together.
    """

    pk: int
    namespace: str
    name: str
    queue: str
    place: str  # of the queue, as `Access` knows it
    owner: str
    phase: str
    is_job: bool
    min_member: int
    priority: int
    priority_class: str
    reason_code: str
    reason_message: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    members: Mapping[str, int] = field(default_factory=dict)
    request: Resources = NOTHING
    expected: ExpectedStart | None = None  # of one that waits, if anybody has looked ahead

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_waiting(self) -> bool:
        return self.phase in WAITING


@dataclass(frozen=True, slots=True)
class JobPage:
    """`older` and `newer` are the keys to turn pages with, None at the ends."""

    rows: tuple[JobRow, ...]
    older: int | None
    newer: int | None


# Which rows


def jobs_matching(
    conditions: Iterable[Condition], readable: Collection[int] | None
) -> QuerySet[PodGroup]:
    """The jobs that meet all conditions.

    `readable` are the rows of the queues that the reader may see (`Access.readable`), None for all.

    By number and not by a join: so the index on queue and phase is used. And not by name, which may
    have been another queue's.
    """
    found = PodGroup.objects.all()
    if readable is not None:
        found = found.filter(queue__in=sorted(readable))
    for condition in conditions:
        matching = _FIELDS[condition.field.partition(":")[0]](condition)
        if condition.negated:
            found = found.exclude(matching)
        else:
            found = found.filter(matching)
    return found


def _queue_ids(names: Collection[str]) -> list[int]:
    """Those of deleted queues too: their jobs are found by the name."""
    return list(Queue.with_deleted.filter(name__in=names).order_by().values_list("pk", flat=True))


_FEW = 1000


def _few_keys(rows: QuerySet[Any]) -> list[int] | None:
    """Their numbers, None if they are many.

    What is few must be found by its index: a database that guesses wrong walks the whole list.
    """
    numbers = list(rows.order_by().values_list("pk", flat=True)[: _FEW + 1])
    if len(numbers) <= _FEW:
        return numbers
    return None


def _gang_is(*phases: str) -> Q:
    few = _few_keys(PodGroup.objects.filter(phase__in=phases))
    if few is None:
        return Q(phase__in=phases)
    return Q(pk__in=few)


def _job_is(*phases: str) -> Q:
    """Many are met soon when walking the list from its end, which beats sorting them all."""
    few = _few_keys(Job.objects.filter(phase__in=phases))
    if few is not None:
        return Q(job__in=few)
    return Q(Exists(Job.objects.filter(pk=OuterRef("job_id"), phase__in=phases)))


def _gang_shows(phase: str) -> Q:
    """As lists show it: while a job stops or starts again, they show that."""
    return _gang_is(phase) & ~_job_is("Restarting", *STOPPING)


_STATES: Mapping[str, Callable[[], Q]] = {
    "waiting": lambda: _gang_is(*WAITING),
    "pending": lambda: _gang_shows("Pending"),
    "inqueue": lambda: _gang_shows("Inqueue"),
    "running": lambda: _gang_shows("Running"),
    "unknown": lambda: _gang_shows("Unknown"),
    "restarting": lambda: _job_is("Restarting"),
    "aborted": lambda: _job_is("Aborted"),
    "stopping": lambda: _job_is(*STOPPING),
    "completed": lambda: Q(phase="Completed") & (_job_is("Completed") | Q(job=None)),
    "failed": lambda: _job_is("Failed"),
    "terminated": lambda: _job_is("Terminated"),
    "finished": lambda: Q(phase="Completed"),
    "live": lambda: _gang_is(*LIVE_PHASES),
}


def _any_of(parts: Iterable[Q]) -> Q:
    whole = Q(pk__in=[])
    for part in parts:
        whole |= part
    return whole


def _by_state(condition: Condition) -> Q:
    return _any_of(_STATES[state]() for state in condition.values)


def _by_queue(condition: Condition) -> Q:
    return Q(queue__in=_queue_ids(_queues_named(condition.values)))


def _queues_named(patterns: Sequence[str]) -> set[str]:
    """A plain name is itself, `name/*` everything from it down, and `*` inside a name anything.

    A path counts by its last part.
    """
    names: set[str] = set()
    if not any("*" in pattern for pattern in patterns):
        for pattern in patterns:
            names.add(pattern.rpartition("/")[2])
        return names
    from scheduler.selectors.queues.facts import queue_tree

    tree = queue_tree()
    for pattern in patterns:
        names |= _queues_like(pattern, tree)
    return names


def _queues_like(pattern: str, tree: Any) -> set[str]:
    above, slash, last = pattern.rpartition("/")
    if slash and last == "*":
        top = above.rpartition("/")[2]
        if top in tree:
            return set(tree.subtree_names(top))
        return set()
    names: set[str] = set()
    for queue in tree:
        if _is_like(last, queue.name):
            names.add(queue.name)
    return names


def _is_like(pattern: str, name: str) -> bool:
    from fnmatch import fnmatchcase

    return fnmatchcase(name, pattern.replace("[", "[[]"))


def _text_lookup(column: str) -> Callable[[Condition], Q]:
    def lookup(condition: Condition) -> Q:
        return _any_of(_matches_pattern(column, value) for value in condition.values)

    return lookup


def _matches_pattern(column: str, value: str) -> Q:
    if "*" not in value:
        return Q(**{column: value})
    start, _, rest = value.partition("*")
    if rest:
        return Q(**{f"{column}__glob": value})
    return Q(**{f"{column}__startswith": start})


def _matches_anywhere(condition: Condition) -> Q:
    namespace, slash, name = condition.values[0].partition("/")
    if slash:
        return Q(namespace=namespace, name__contains=name)
    return Q(name__contains=condition.values[0])


_LOOKUPS = {
    Comparison.AT_LEAST: "gte",
    Comparison.AT_MOST: "lte",
    Comparison.MORE: "gt",
    Comparison.LESS: "lt",
    Comparison.EQUAL: "exact",
}
_TURNED_ROUND = {"gte": "lte", "lte": "gte", "gt": "lt", "lt": "gt", "exact": "exact"}


def _number_lookup(column: str) -> Callable[[Condition], Q]:
    return lambda condition: Q(**{f"{column}__{_LOOKUPS[condition.comparison]}": condition.number})


def _by_resource(condition: Condition) -> Q:
    """What the gang needs to start.

    Asking for less than something includes those that ask for none of it.
    """
    resource = condition.field.partition(":")[2]
    lookup = _LOOKUPS[condition.comparison]
    matching = Q(**{f"min_resources__{resource}__{lookup}": condition.number})
    takes_nothing = {
        "lt": condition.number > 0,
        "lte": condition.number >= 0,
        "exact": condition.number == 0,
    }
    if takes_nothing.get(lookup):
        return matching | Q(**{f"min_resources__{resource}__isnull": True})
    return matching


def _by_age(condition: Condition) -> Q:
    lookup = _TURNED_ROUND[_LOOKUPS[condition.comparison]]  # older is earlier
    return Q(**{f"created_at__{lookup}": timezone.now() - timedelta(seconds=condition.number)})


def _by_wait(condition: Condition) -> Q:
    return _gang_is(*WAITING) & _by_age(condition)


def _by_reason(condition: Condition) -> Q:
    codes = set(condition.values)
    if "AwaitingEvaluation" in codes:
        codes.add("")
    return _gang_is(*WAITING) & Q(reason_code__in=codes)


def _by_shape(condition: Condition) -> Q:
    return _any_of(_of_shape(*read_shape(word)) for word in condition.values)


def _of_shape(pods: int, request: Resources) -> Q:
    if request:
        return Q(min_member=pods, min_resources=request)
    return Q(min_member=pods) & (Q(min_resources__isnull=True) | Q(min_resources=NOTHING))


_FIELDS: Mapping[str, Callable[[Condition], Q]] = {
    "state": _by_state,
    "queue": _by_queue,
    "user": _text_lookup("owner"),
    "reason": _by_reason,
    "namespace": _text_lookup("namespace"),
    "name": _text_lookup("name"),
    "class": _text_lookup("priority_class"),
    "shape": _by_shape,
    "text": _matches_anywhere,
    "priority": _number_lookup("priority"),
    "members": _number_lookup("min_member"),
    "resource": _by_resource,
    "age": _by_age,
    "wait": _by_wait,
}


# The rows


def job_page(
    found: QuerySet[PodGroup],
    *,
    before: int | None = None,
    after: int | None = None,
    oldest_first: bool = False,
) -> JobPage:
    """The page that follows the row `before` in the list, or comes before the row `after` in it."""
    turning_back = after is not None
    mark = before
    if turning_back:
        mark = after
    # no join of queues: a database may begin with them and sort all jobs
    rows = found.select_related("job").prefetch_related("queue")
    if oldest_first == turning_back:
        groups = _groups_below(rows, mark)
    else:
        groups = _groups_above(rows, mark)
    more = len(groups) > PAGE
    groups = groups[:PAGE]
    has_newer = mark is not None
    has_older = more
    if turning_back:
        groups.reverse()
        has_newer = more
        has_older = True
    older = None
    newer = None
    if groups and has_older:
        older = groups[-1].pk
    if groups and has_newer:
        newer = groups[0].pk
    return JobPage(job_rows(groups), older, newer)


@dataclass(frozen=True, slots=True)
class PageEnds:
    """How many rows a list has, and the key of the last row of each full page."""

    rows: int
    keys: tuple[int, ...]


def last_of_each_page(found: QuerySet[PodGroup], *, oldest_first: bool = False) -> PageEnds:
    """Of the first `ENDS_AT_MOST` pages. With them any page is found by key, however far down."""
    order = "-pk"
    if oldest_first:
        order = "pk"
    keys = found.order_by(order).values_list("pk", flat=True)[: ENDS_AT_MOST * PAGE]
    numbers = list(keys)
    return PageEnds(len(numbers), tuple(numbers[PAGE - 1 :: PAGE]))


def _groups_below(rows: QuerySet[PodGroup], mark: int | None) -> list[PodGroup]:
    """A page and one more, by falling keys."""
    if mark is not None:
        rows = rows.filter(pk__lt=mark)
    return list(rows.order_by("-pk")[: PAGE + 1])


def _groups_above(rows: QuerySet[PodGroup], mark: int | None) -> list[PodGroup]:
    """A page and one more, by rising keys."""
    if mark is not None:
        rows = rows.filter(pk__gt=mark)
    return list(rows.order_by("pk")[: PAGE + 1])


def count_up_to(found: QuerySet[PodGroup], most: int = COUNTED_AT_MOST) -> int:
    """How many there are; one more than `most` stands for "more than that"."""
    return found.order_by().values("pk")[: most + 1].count()


def job_rows(groups: Sequence[PodGroup]) -> tuple[JobRow, ...]:
    """With their pods: one query for all of them. One more for those that wait.

    The queue and job must have been selected with them.
    """
    members, requests = _members_by_group([group.pk for group in groups])
    expected = starts_of_waiting(groups)
    rows = []
    for group in groups:
        row = _job_row(group, members.get(group.pk, {}), requests.get(group.pk, NOTHING))
        rows.append(replace(row, expected=expected.get(group.pk)))
    return tuple(rows)


def _members_by_group(ids: list[int]) -> tuple[dict[int, dict[str, int]], dict[int, Resources]]:
    members: dict[int, dict[str, int]] = {}
    requests: dict[int, Resources] = {}
    rows = (
        Pod.objects.filter(podgroup__in=ids)
        .order_by()
        .values_list("podgroup", "phase", "pod_class__requests")
        .annotate(number=Count("pk"))
    )
    for group, phase, request, number in rows:
        counts = members.setdefault(group, {})
        counts[phase] = counts.get(phase, 0) + number
        together = Resources({name: amount * number for name, amount in request.items()})
        requests[group] = requests.get(group, NOTHING) + together
    return members, requests


def _job_row(group: PodGroup, members: Mapping[str, int], request: Resources) -> JobRow:
    phase_of_job = None
    finished_at = group.finished_at
    if group.job:
        phase_of_job = group.job.phase
        finished_at = finished_at or group.job.finished_at
    phase = shown_phase(group.phase, phase_of_job)
    reason_code = ""
    reason_message = ""
    if phase in WAITING:
        reason_code = group.reason_code or "AwaitingEvaluation"
        reason_message = group.reason_message
    return JobRow(
        pk=group.pk,
        namespace=group.namespace,
        name=group.name,
        queue=group.queue.name,
        place=group.queue.place,
        owner=group.owner,
        phase=phase,
        is_job=group.job is not None,
        min_member=group.min_member,
        priority=group.priority,
        priority_class=group.priority_class,
        reason_code=reason_code,
        reason_message=reason_message,
        created_at=group.created_at,
        started_at=group.started_at,
        finished_at=finished_at,
        members=members,
        request=request or group.min_resources or NOTHING,  # a suspended job has no pods
    )
