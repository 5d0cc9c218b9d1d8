"""What two schedulers did with each gang: the verdicts, and how often they agree."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Case, CharField, Count, F, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from scheduler.domain.comparison import (
    EVICTION_DIFFERENCES,
    SAME_EVICTION,
    SAME_TIME,
    START_DIFFERENCES,
    Agreement,
    Verdict,
)
from scheduler.models import Comparison
from scheduler.selectors.queues.reused_names import records_of

WINDOWS: Final[Mapping[str, timedelta]] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
DEFAULT_WINDOW: Final = "24h"


@dataclass(frozen=True, slots=True)
class ComparisonSummary:
    """`counts` has every verdict, also those that nothing has."""

    starts: Agreement
    evictions: Agreement
    counts: Mapping[Verdict, int]


def comparisons_for(visible: Collection[str] | None, now: datetime | None = None) -> QuerySet[Any]:
    """With their verdicts as of now, newest first.

    `visible` are the queues that the reader may see, None for all.
    """
    rows = Comparison.objects.alias(until=Coalesce("ended_at", Value(now or timezone.now())))
    rows = rows.annotate(verdict=_verdict()).order_by("-pk")
    if visible is None:
        return rows
    return rows.filter(records_of(visible, "since"))


def within_window(rows: QuerySet[Any], window: str) -> QuerySet[Any]:
    """Questions that came up in it; see `WINDOWS`."""
    return rows.filter(since__gte=timezone.now() - WINDOWS[window])


def summary_of(rows: QuerySet[Any]) -> ComparisonSummary:
    found = rows.order_by().values_list("verdict").annotate(number=Count("pk"))
    counts = {**dict.fromkeys(Verdict, 0)}
    for verdict, number in found:
        counts[Verdict(verdict)] = number
    return ComparisonSummary(
        starts=_agreement(counts, Verdict.TOGETHER, START_DIFFERENCES),
        evictions=_agreement(counts, Verdict.EVICTED_BY_BOTH, EVICTION_DIFFERENCES),
        counts=counts,
    )


def _agreement(
    counts: Mapping[Verdict, int], agreed: Verdict, differences: Collection[Verdict]
) -> Agreement:
    differing = sum(counts[verdict] for verdict in differences)
    return Agreement(counts[agreed], counts[agreed] + differing)


def _verdict() -> Case:
    """The first that holds. What it depends on is in the row, but for the time that has passed."""
    verdicts = []
    for about, rules in ((Comparison.EVICTION, _of_evictions()), (Comparison.START, _of_starts())):
        for verdict, condition in rules:
            verdicts.append(When(Q(condition, about=about), then=Value(verdict.value)))
    return Case(
        *verdicts, default=Value(Verdict.BOTH_WAIT.value), output_field=CharField(max_length=16)
    )


_Rules = list[tuple[Verdict, Q]]


def _of_evictions() -> _Rules:
    by_both = Q(ours_at__isnull=False, theirs_at__isnull=False)
    is_same = Q(theirs_at__lte=F("ours_at") + SAME_EVICTION)
    return [
        (Verdict.NOT_SEEN, Q(was_seen=False)),
        (Verdict.EVICTED_BY_BOTH, Q(by_both, is_same)),
        (Verdict.EVICTED_BY_THEIRS, Q(theirs_at__isnull=False, ours_at__isnull=True)),
        (Verdict.EVICTED_BY_OURS, Q(until__gt=F("ours_at") + SAME_EVICTION)),
        (Verdict.UNDECIDED, Q()),
    ]


def _of_starts() -> _Rules:
    is_half = Q(half_seconds__gt=SAME_TIME.total_seconds())
    is_half |= Q(until__gt=F("half_since") + SAME_TIME)
    by_both = Q(ours_at__isnull=False, theirs_at__isnull=False)
    return [
        (Verdict.HALF_STARTED, is_half),
        (Verdict.NOT_SEEN, Q(was_seen=False)),
        (Verdict.TOGETHER, Q(by_both, theirs_at__lte=F("ours_at") + SAME_TIME)),
        (Verdict.OURS_EARLIER, by_both),
        (Verdict.ONLY_THEIRS, Q(theirs_at__isnull=False)),
        (Verdict.ONLY_OURS, Q(until__gt=F("ours_at") + SAME_TIME)),
        (Verdict.UNDECIDED, Q(ours_at__isnull=False, ended_at__isnull=True)),
    ]


def of_kind(rows: QuerySet[Any], verdicts: Collection[Verdict]) -> QuerySet[Any]:
    return rows.filter(verdict__in=[verdict.value for verdict in verdicts])
