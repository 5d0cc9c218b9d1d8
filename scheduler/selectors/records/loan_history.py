"""What a queue borrowed and lent over the last hour, day or week, ready to be drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils import timezone

from scheduler.domain.timelines import LOAN_FIGURES, averages
from scheduler.models import LoanSample
from scheduler.selectors.records.history import SPANS, points_between, steps_of

WINDOWS: Final = ("1h", "24h", "7d")
DEFAULT_WINDOW: Final = "1h"

Series = list[int | None]


@dataclass(frozen=True, slots=True)
class LoanHistory:
    """Times are seconds since 1970, amounts base units; None where nothing is known.

    `lenders` and `borrowers` are by name of the other queue, "" for what is too small to be kept
    by name or lent by nobody.
    """

    queue: str
    resource: str
    window: str
    start: float
    end: float
    times: tuple[float, ...]
    borrowed: Series
    lent: Series
    lenders: Mapping[str, Series]
    borrowers: Mapping[str, Series]


def loan_history(
    queue: str, resource: str, window: str, now: datetime | None = None
) -> LoanHistory:
    """In a fixed number of queries. The queue "" stands for all loans of the cluster."""
    span = SPANS[window]
    end = (now or timezone.now()).timestamp()
    start, edges = steps_of(span, end)
    points = points_between(queue, span.coarsest, start, end, LoanSample)
    found: dict[str, dict[str, Series]] = {}
    if points:
        found = averages(points, edges, LOAN_FIGURES)
    nothing: Series = [None] * (len(edges) - 1)
    if points:
        nothing = [None if edge <= points[0][0] else 0 for edge in edges[1:]]
    return LoanHistory(
        queue=queue,
        resource=resource,
        window=window,
        start=start,
        end=end,
        times=tuple(float(edge) for edge in edges[:-1]),
        borrowed=found.get("borrowed", {}).get(resource, nothing),
        lent=found.get("lent", {}).get(resource, nothing),
        lenders=_by_queue(found.get("from", {}), resource),
        borrowers=_by_queue(found.get("to", {}), resource),
    )


def _by_queue(series: Mapping[str, Series], resource: str) -> dict[str, Series]:
    found: defaultdict[str, Series] = defaultdict(list)
    for key, values in series.items():
        about, _, name = key.partition(" ")
        if about == resource:
            found[name] = values
    return dict(found)
