"""What a queue borrowed and lent over time: a chart, a table, and the same in the API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from dashboard.http.visibility import OTHER_QUEUES, Visibility
from dashboard.present.amounts import with_unit
from dashboard.present.charts import scaled_amount, unit_of_chart
from scheduler.domain.resources import format_quantity
from scheduler.selectors.records.loan_history import LoanHistory, Series

HISTORY_COLUMNS: Final = ("at", "queue", "resource", "borrowed", "lent", "from", "to")
MOST_LINES: Final = 60
"""Of the table on the page, newest first. CSV has them all."""


def chart(history: LoanHistory) -> dict[str, Any]:
    """In the units of a chart. Of the whole cluster one line is enough: all that is borrowed."""
    unit, per_one = unit_of_chart(history.resource)
    data: dict[str, Any] = {
        "resource": history.resource,
        "unit": unit,
        "start": history.start,
        "end": history.end,
        "times": history.times,
        "borrowed": [scaled_amount(amount, per_one) for amount in history.borrowed],
    }
    if history.queue:
        data["lent"] = [scaled_amount(amount, per_one) for amount in history.lent]
    return data


def points(history: LoanHistory, seen: Visibility) -> list[dict[str, Any]]:
    """One for each step that is known, oldest first; amounts as in manifests."""
    found = []
    for place, at in enumerate(history.times):
        if history.borrowed[place] is None:
            continue
        found.append(
            {
                "at": datetime.fromtimestamp(at, tz=UTC).isoformat(),
                "queue": history.queue,
                "resource": history.resource,
                "borrowed": _quantity(history, history.borrowed[place]),
                "lent": _quantity(history, history.lent[place]),
                "from": _shares(history, history.lenders, place, seen),
                "to": _shares(history, history.borrowers, place, seen),
            }
        )
    return found


def _quantity(history: LoanHistory, amount: int | None) -> str:
    return format_quantity(history.resource, amount or 0)


def _shares(
    history: LoanHistory, series: Mapping[str, Series], place: int, seen: Visibility
) -> dict[str, str]:
    """By queue, the largest first; those that may not be seen, or are too small, are one."""
    sums: Counter[str] = Counter()
    for name, amounts in series.items():
        sums[seen.visible_queue(name) or OTHER_QUEUES] += amounts[place] or 0
    shares = {}
    for name, amount in sums.most_common():
        if amount:
            shares[name] = format_quantity(history.resource, amount)
    return shares


def table(history: LoanHistory, seen: Visibility) -> list[dict[str, Any]]:
    """For the page: newest first, with words."""
    rows: list[dict[str, Any]] = []
    for place in reversed(range(len(history.times))):
        borrowed = history.borrowed[place]
        if borrowed is None or len(rows) >= MOST_LINES:
            continue
        rows.append(
            {
                "at": datetime.fromtimestamp(history.times[place], tz=UTC),
                "borrowed": with_unit(history.resource, borrowed),
                "lent": with_unit(history.resource, history.lent[place] or 0),
                "from": _words(_shares(history, history.lenders, place, seen)),
                "to": _words(_shares(history, history.borrowers, place, seen)),
            }
        )
    return rows


def _words(shares: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in shares.items()) or "–"
