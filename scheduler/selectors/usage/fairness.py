"""Fairness over a stretch of days: debt and credit of queues, who was starved by whom, waits, and
where the cluster's room went. The number of queries is fixed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db.models import QuerySet, Sum

from scheduler.domain.gang_sizes import rank_of_size
from scheduler.domain.losses import PARTS
from scheduler.domain.usage_spans import UsageSpan
from scheduler.domain.wait_buckets import percentile
from scheduler.models import LossRow, StarvedRow, UsageRow, WaitRow
from scheduler.selectors.queues.objects import names_in_records
from scheduler.selectors.queues.reused_names import records_of
from scheduler.selectors.usage.report import known_steps

MOST_PAIRS: Final = 100
MOST_QUEUES: Final = 1000


@dataclass(frozen=True, slots=True)
class FairnessQuestion:
    span: UsageSpan
    resource: str
    queue: str = ""
    visible: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class Balance:
    """In units × seconds. `owed` is below its deserved while it asked, `borrowed` above it."""

    queue: str
    deserved: int
    used: int
    owed: int
    borrowed: int

    @property
    def balance(self) -> int:
        """Above 0: it had more than its share. Below 0: the others owe it."""
        return self.borrowed - self.owed


@dataclass(frozen=True, slots=True)
class Pair:
    starved: str
    by: str
    amount: int


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds; None where no gang started."""

    name: str
    gangs: int
    median: float | None
    most: float | None


@dataclass(frozen=True, slots=True)
class Fairness:
    question: FairnessQuestion
    balances: tuple[Balance, ...]
    pairs: tuple[Pair, ...]
    waits: Mapping[str, tuple[Waits, ...]]
    steps: tuple[datetime, ...]
    # by part, in each step; None in steps in which nobody looked
    room: Mapping[str, list[int | None]] = field(default_factory=dict)


def fairness(question: FairnessQuestion) -> Fairness:
    steps = tuple(question.span.beginnings())
    return Fairness(
        question=question,
        balances=_balances(question),
        pairs=_pairs(question),
        waits=_waits(question),
        steps=steps,
        room=_room(question, steps),
    )


def _balances(question: FairnessQuestion) -> tuple[Balance, ...]:
    """The largest debt first, then by name."""
    rows = UsageRow.objects.filter(
        grain=UsageRow.QUEUE, seconds=_seconds(question), resource=question.resource
    )
    rows = _limited(_in_span(rows, question), question)
    figures = ("deserved", "used", "owed", "borrowed")
    sums: Any = {f"sum_{name}": Sum(name) for name in figures}
    found = rows.order_by().values_list("queue_name").annotate(**sums)
    balances = [Balance(*row) for row in found.order_by("-sum_owed", "queue_name")[:MOST_QUEUES]]
    return tuple(sorted(balances, key=lambda row: (row.balance, row.queue)))


def _pairs(question: FairnessQuestion) -> tuple[Pair, ...]:
    rows: Any = StarvedRow.objects.filter(resource=question.resource)
    rows = _limited(_in_days(rows, question), question, "lender")
    found = rows.order_by().values_list("lender", "borrower").annotate(total=Sum("amount"))
    return tuple(Pair(*row) for row in found.order_by("-total", "lender", "borrower")[:MOST_PAIRS])


def _waits(question: FairnessQuestion) -> dict[str, tuple[Waits, ...]]:
    rows: Any = _limited(_in_days(WaitRow.objects.all(), question), question)
    found = {}
    for kind, column in (("queue", "queue_name"), ("size", "size"), ("user", "owner")):
        counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
        summed = rows.order_by().values_list(column, "bucket").annotate(total=Sum("count"))
        for name, bucket, number in summed:
            counts[name][bucket] += number
        order = sorted(counts)
        if kind == "size":
            order.sort(key=rank_of_size)
        found[kind] = tuple(_waits_of(name, counts[name]) for name in order)
    return found


def _waits_of(name: str, counts: Counter[int]) -> Waits:
    return Waits(name, counts.total(), percentile(counts, 0.5), percentile(counts, 0.95))


def _room(question: FairnessQuestion, steps: tuple[datetime, ...]) -> dict[str, list[int | None]]:
    """It is of the whole cluster, whoever asks."""
    places = {start: place for place, start in enumerate(steps)}
    rows: Any = LossRow.objects.filter(seconds=_seconds(question), resource=question.resource)
    found = {part: [0] * len(steps) for part in PARTS}
    looked = set()
    for part, at, amount in _in_span(rows, question).order_by().values_list("part", "at", "amount"):
        step = question.span.beginning_of(at)
        looked.add(step)
        found.setdefault(part, [0] * len(steps))[places[step]] += amount
    return known_steps(found, steps, looked)


def _seconds(question: FairnessQuestion) -> int:
    if question.span.is_hourly:
        return UsageRow.HOUR
    return UsageRow.DAY


def _in_span(rows: QuerySet[Any], question: FairnessQuestion) -> Any:
    return rows.filter(at__gte=question.span.start, at__lt=question.span.end)


def _in_days(rows: QuerySet[Any], question: FairnessQuestion) -> Any:
    """Of what is kept by the day, whole days."""
    first = question.span.start.replace(hour=0)
    return rows.filter(at__gte=first, at__lt=question.span.end)


def _limited(rows: Any, question: FairnessQuestion, column: str = "queue_name") -> Any:
    if question.queue:
        rows = rows.filter(**{f"{column}__in": names_in_records(question.queue)})
    if question.visible is not None:
        rows = rows.filter(records_of(question.visible, "at", column))
    return rows
