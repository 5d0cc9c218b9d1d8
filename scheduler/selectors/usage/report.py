"""Usage of a stretch of time by queue, user, namespace or job: sums, and the largest over time.

The number of queries is fixed. The rows were summed by the hour and the day when they were booked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db.models import Q, QuerySet, Sum

from scheduler.domain.usage import moment_at
from scheduler.domain.usage_spans import UsageSpan
from scheduler.models import UsageBook, UsageRow
from scheduler.selectors.queues.objects import names_in_records
from scheduler.selectors.queues.reused_names import records_of

QUEUE: Final = "queue"
USER: Final = "user"
NAMESPACE: Final = "namespace"
JOB: Final = "job"
GROUPS: Final = (QUEUE, USER, NAMESPACE, JOB)
MOST_LINES: Final = 1000
LARGEST: Final = 6
"""So many have a colour of their own in a chart; the others are one."""

COLUMNS: Final = {
    QUEUE: ("queue_name",),
    USER: ("owner",),
    NAMESPACE: ("namespace",),
    JOB: ("namespace", "job"),
}


@dataclass(frozen=True, slots=True)
class UsageQuestion:
    """`visible` are the queues that the reader may see, None for all. Without a resource it is
    about all of them.
    """

    span: UsageSpan
    resource: str
    by: str = QUEUE
    queue: str = ""
    user: str = ""
    namespace: str = ""
    visible: Collection[str] | None = None

    @property
    def grain(self) -> str:
        """The coarsest rows that can tell it."""
        if self.by == JOB:
            return UsageRow.JOB
        if self.by == QUEUE and not self.user and not self.namespace:
            return UsageRow.QUEUE
        return UsageRow.USER

    @property
    def has_shares(self) -> bool:
        """Only queues deserve, borrow and lend something."""
        return self.grain == UsageRow.QUEUE


@dataclass(frozen=True, slots=True)
class Figures:
    """In units × seconds (see domain/usage.py)."""

    used: int = 0
    waited: int = 0
    lost: int = 0
    deserved: int = 0
    borrowed: int = 0
    lent: int = 0
    owed: int = 0

    @property
    def idle(self) -> int:
        """Of what was deserved: neither used by itself nor lent."""
        return max(0, self.deserved + self.borrowed - self.used - self.lent)

    def __add__(self, other: Figures) -> Figures:
        return Figures(*(getattr(self, name) + getattr(other, name) for name in UsageRow.FIGURES))

    def __sub__(self, other: Figures) -> Figures:
        return Figures(*(getattr(self, name) - getattr(other, name) for name in UsageRow.FIGURES))

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in UsageRow.FIGURES)


@dataclass(frozen=True, slots=True)
class UsageLine:
    name: str
    figures: Figures


@dataclass(frozen=True, slots=True)
class UsageReport:
    """`others` is what the lines beyond the most add up to. `capacity` is what the whole cluster
    had. `series` are units × seconds used in each step, by name; the name None stands for all
    others. A step of which nothing was booked has no figure: None.
    """

    question: UsageQuestion
    lines: tuple[UsageLine, ...]
    others: Figures
    whole: Figures
    capacity: int
    complete_until: datetime | None
    steps: tuple[datetime, ...] = ()
    series: Mapping[str | None, list[int | None]] = field(default_factory=dict)


def usage_report(question: UsageQuestion, most: int = MOST_LINES) -> UsageReport:
    rows = rows_of(question)
    names = COLUMNS[question.by]
    figures = _figures_of(question)
    by_name: Any = rows.order_by().values_list(*names).annotate(**_sums(figures))
    found = [
        UsageLine("/".join(row[: len(names)]), _figures(figures, row[len(names) :]))
        for row in by_name.order_by("-sum_used", *names)[: most + 1]
    ]
    lines = found[:most]
    listed = _together(line.figures for line in lines)
    whole = listed
    if len(found) > most:
        whole = _figures(figures, rows.aggregate(**_sums(figures)).values())
    steps = tuple(question.span.beginnings())
    capacity = _capacity(question)
    series = _series(question, rows, [line.name for line in lines[:LARGEST]], steps)
    return UsageReport(
        question=question,
        lines=tuple(lines),
        others=whole - listed,
        whole=whole,
        capacity=sum(capacity.values()),
        complete_until=complete_until(),
        steps=steps,
        series=known_steps(series, steps, map(question.span.beginning_of, capacity)),
    )


def _figures_of(question: UsageQuestion) -> tuple[str, ...]:
    if question.has_shares:
        return UsageRow.FIGURES
    return UsageRow.FIGURES_OF_PODS


def _figures(names: tuple[str, ...], values: Iterable[int | None]) -> Figures:
    return Figures(**{name: value or 0 for name, value in zip(names, values, strict=True)})


def _together(parts: Iterable[Figures]) -> Figures:
    whole = Figures()
    for part in parts:
        whole = whole + part
    return whole


def rows_of(question: UsageQuestion) -> QuerySet[UsageRow]:
    return _of_grain(question.grain, question)


def _of_grain(grain: str, question: UsageQuestion) -> QuerySet[UsageRow]:
    rows = _in_span(grain, question)
    if question.queue:
        rows = rows.filter(queue_name__in=names_in_records(question.queue))
    if question.user:
        rows = rows.filter(owner=question.user)
    if question.namespace:
        rows = rows.filter(namespace=question.namespace)
    if question.visible is not None:
        rows = rows.filter(records_of(question.visible, "at"))
    return rows


def _in_span(grain: str, question: UsageQuestion) -> QuerySet[UsageRow]:
    seconds = UsageRow.DAY
    if question.span.is_hourly:
        seconds = UsageRow.HOUR
    rows = UsageRow.objects.filter(
        grain=grain,
        seconds=seconds,
        at__gte=question.span.start,
        at__lt=question.span.end,
    )
    if question.resource:
        return rows.filter(resource=question.resource)
    return rows


def _sums(figures: tuple[str, ...]) -> dict[str, Any]:
    return {f"sum_{name}": Sum(name) for name in figures}


def _capacity(question: UsageQuestion) -> dict[datetime, int]:
    """What the cluster had, by hour or day; those that nothing was booked of are left out."""
    rows = _in_span(UsageRow.CLUSTER, question)
    return dict(rows.order_by().values_list("at").annotate(total=Sum("deserved")))


def known_steps(
    series: Mapping[Any, list[int]], steps: tuple[datetime, ...], known: Iterable[datetime]
) -> dict[Any, list[int | None]]:
    """The same, with None in steps of which nothing is known: that is not the same as nothing."""
    are_known = set(known)
    found: dict[Any, list[int | None]] = {}
    for name, values in series.items():
        found[name] = [
            value if step in are_known else None for step, value in zip(steps, values, strict=True)
        ]
    return found


def complete_until() -> datetime | None:
    """Up to when all that was heard of is booked; None before the first time."""
    until = UsageBook.objects.values_list("complete_until", flat=True).first()
    if until is None:
        return None
    return moment_at(until)


def _series(
    question: UsageQuestion,
    rows: QuerySet[UsageRow],
    names: Iterable[str],
    steps: tuple[datetime, ...],
) -> dict[str | None, list[int]]:
    places = {start: place for place, start in enumerate(steps)}
    beginning_of = question.span.beginning_of
    rest = [0] * len(steps)
    whole = _of_grain(_grain_of_whole(question), question).order_by()
    for at, used in whole.values_list("at").annotate(total=Sum("used")):
        rest[places[beginning_of(at)]] += used
    largest_names = list(names)
    found: dict[str | None, list[int]] = {name: [0] * len(steps) for name in largest_names}
    columns = COLUMNS[question.by]
    largest = rows.filter(_any_of(columns, largest_names)).order_by()
    for *key, at, used in largest.values_list(*columns, "at").annotate(total=Sum("used")):
        place = places[beginning_of(at)]
        found["/".join(key)][place] += used
        rest[place] -= used
    if any(rest):
        found[None] = rest
    return found


def _grain_of_whole(question: UsageQuestion) -> str:
    """The coarsest rows that tell what was used in all: each second is in a row of each grain, but
    those by job are not kept for as long.
    """
    if question.by == JOB or question.user or question.namespace:
        return question.grain
    if question.queue or question.visible is not None:
        return UsageRow.QUEUE
    return UsageRow.CLUSTER


def _any_of(columns: tuple[str, ...], names: Iterable[str]) -> Q:
    if len(columns) == 1:
        return Q(**{f"{columns[0]}__in": list(names)})
    found = Q(pk__in=[])
    for name in names:
        namespace, _, job = name.partition("/")
        found |= Q(namespace=namespace, job=job)
    return found


def known_resources() -> list[str]:
    """Of which there is usage at all, whoever sees it."""
    rows = UsageRow.objects.filter(grain=UsageRow.CLUSTER, seconds=UsageRow.DAY)
    return list(rows.order_by().values_list("resource", flat=True).distinct())


def used_by_resource(question: UsageQuestion) -> dict[str, int]:
    """Of a question without a resource; what was not used is left out."""
    rows: Any = rows_of(question).order_by().values_list("resource").annotate(total=Sum("used"))
    return {resource: total for resource, total in rows if total}
