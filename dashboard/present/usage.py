"""Usage as it is shown: resource-hours with unit and denominator, for page, API, CSV and CLI."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dashboard.http.exports import as_csv, streamed
from dashboard.present.amounts import short_name
from scheduler.domain.prices import rounded
from scheduler.domain.resources import is_bytes, units_per_one
from scheduler.domain.usage import HOUR, unit_of
from scheduler.selectors.usage.costs import Costs
from scheduler.selectors.usage.report import (
    JOB,
    QUEUE,
    Figures,
    UsageReport,
)

OTHERS: Final = "others"
NOBODY: Final = "nobody"
UNKNOWN: Final = "–"
"""Where there is no figure: not the same as 0."""
SHARES: Final = ("deserved", "borrowed", "lent", "idle", "owed")
FIGURES: Final = ("used", "waited", "lost", *SHARES)
CSV_COLUMNS: Final = (
    "name",
    "resource",
    "unit",
    *FIGURES,
    "usedSeconds",
    "share",
    "cost",
    "currency",
)
FIRST_LINES: Final = 100
"""Of the table on the page. CSV has more."""


def hour_unit(resource: str) -> str:
    """ "GPU-hours", "Gi-hours of memory"."""
    if is_bytes(resource):
        return f"Gi-hours of {short_name(resource).lower()}"
    return f"{short_name(resource)}-hours"


def priced_unit(resource: str) -> str:
    """What a price is for: "GPU-hour", "Gi-hour"."""
    if is_bytes(resource):
        return "Gi-hour"
    return f"{short_name(resource)}-hour"


def in_hours(resource: str, value: int) -> float:
    """Units × seconds as resource-hours: whole cores, devices or Gi."""
    per_one = 2**30 if is_bytes(resource) else units_per_one(resource)
    return value * unit_of(resource) / per_one / HOUR


def shown_hours(resource: str, value: int) -> str:
    """ "412", "0.25", "12 345": three digits are enough for a page."""
    hours = in_hours(resource, value)
    if not value:
        return "0"
    digits = 0
    if abs(hours) < 10:
        digits = 2
    elif abs(hours) < 100:
        digits = 1
    text = f"{hours:,.{digits}f}"
    if digits:
        text = text.rstrip("0").rstrip(".")
    if float(text.replace(",", "")) == 0:
        return "under 0.01"
    return text.replace(",", "\u202f")


def percent(part: int, whole: int) -> str:
    """ "43 %", "under 1 %", "" where there is no whole."""
    if whole <= 0:
        return ""
    share = part / whole * 100
    if 0 < share < 1:
        return "under 1\u00a0%"
    return f"{share:.0f}\u00a0%"


def of_whole(resource: str, part: int, whole: int, name: str) -> str:
    """ "412 of 960 GPU-hours deserved, 43 %"; `name` says what the whole is."""
    words = shown_hours(resource, part)
    if whole > 0:
        unit = f"{hour_unit(resource)} {name}"
        return f"{words} of {shown_hours(resource, whole)} {unit}, {percent(part, whole)}"
    return f"{words} {hour_unit(resource)}"


def of_its_whole(report: UsageReport, figures: Figures) -> str:
    """Of the denominator of a line."""
    name = "deserved" if report.question.has_shares else "used by all"
    return of_whole(report.question.resource, figures.used, denominator(report, figures), name)


def of_capacity(report: UsageReport) -> str:
    """ "452 of 2 000 GPU-hours that the cluster had, 23 %"."""
    resource = report.question.resource
    return of_whole(resource, report.whole.used, report.capacity, "that the cluster had")


def exact_seconds(resource: str, value: int) -> str:
    """In whole cores or devices × seconds, or Ki × seconds, with no digit left out."""
    if is_bytes(resource):
        return str(value)
    per_one = units_per_one(resource)
    if per_one == 1:
        return str(value)
    whole, rest = divmod(value, per_one)
    if not rest:
        return str(whole)
    return f"{whole}.{rest:03d}".rstrip("0")


def denominator(report: UsageReport, figures: Figures) -> int:
    """A queue is measured by what it deserved, others by all that was used."""
    if report.question.has_shares:
        return figures.deserved
    return report.whole.used


def line_object(
    report: UsageReport, name: str, figures: Figures, cost: Fraction | None
) -> dict[str, Any]:
    resource = report.question.resource
    whole = denominator(report, figures)
    found: dict[str, Any] = {"name": name}
    for figure in FIGURES:
        known: float | None = round(in_hours(resource, getattr(figures, figure)), 6)
        if figure in SHARES and not report.question.has_shares:
            known = None
        found[figure] = known
    found["usedSeconds"] = exact_seconds(resource, figures.used)
    found["share"] = round(figures.used / whole, 6) if whole > 0 else None
    found["cost"] = None if cost is None else str(rounded(cost))
    found["message"] = of_its_whole(report, figures)
    return found


def _cost_of(costs: Costs, name: str) -> Fraction | None:
    """Of all resources together; None where there are no prices."""
    if not costs.currency:
        return None
    return costs.by_name.get(name, Fraction())


def _whole_cost(costs: Costs) -> Fraction | None:
    if not costs.currency:
        return None
    return costs.total


def _rest_cost(costs: Costs, names: Iterable[str]) -> Fraction | None:
    if not costs.currency:
        return None
    return costs.total - sum((costs.by_name.get(name, Fraction()) for name in names), Fraction())


def money(cost: Fraction | None, currency: str) -> str:
    """ "1 234.50 EUR"."""
    if cost is None:
        return ""
    return f"{rounded(cost):,} {currency}".replace(",", "\u202f")


def report_object(report: UsageReport, costs: Costs) -> dict[str, Any]:
    """The status of the API's answer."""
    question = report.question
    span = question.span
    return {
        "window": span.window,
        "from": span.start.isoformat(),
        "to": span.end.isoformat(),
        "step": span.step,
        "by": question.by,
        "resource": question.resource,
        "unit": hour_unit(question.resource),
        "completeUntil": report.complete_until.isoformat() if report.complete_until else None,
        "capacity": round(in_hours(question.resource, report.capacity), 6),
        "message": of_capacity(report),
        "currency": costs.currency,
        "whole": line_object(report, "", report.whole, _whole_cost(costs)),
        "rows": _line_objects(report, costs),
        "steps": [start.isoformat() for start in report.steps],
        "series": _series(report),
    }


def _line_objects(report: UsageReport, costs: Costs) -> list[dict[str, Any]]:
    rows = []
    for line in report.lines:
        rows.append(line_object(report, line.name, line.figures, _cost_of(costs, line.name)))
    if report.others:
        cost = _rest_cost(costs, (line.name for line in report.lines))
        rows.append(line_object(report, OTHERS, report.others, cost))
    return rows


def _series(report: UsageReport) -> list[dict[str, Any]]:
    """Hours used in each step, the largest first, all others last."""
    resource = report.question.resource
    found = []
    for name, values in report.series.items():
        label = OTHERS if name is None else name or NOBODY
        hours = [hours_or_nothing(resource, value) for value in values]
        found.append({"name": label, "used": hours})
    return found


def hours_or_nothing(resource: str, value: int | None) -> float | None:
    """None where nothing is known."""
    if value is None:
        return None
    return round(in_hours(resource, value), 6)


def usage_as_csv(request: HttpRequest, report: UsageReport, costs: Costs) -> HttpResponseBase:
    resource = report.question.resource
    fixed = {"resource": resource, "unit": hour_unit(resource), "currency": costs.currency}
    rows = [{**row, **fixed} for row in _line_objects(report, costs)]
    name = f"usage-by-{report.question.by}.csv"
    return streamed(request, as_csv(rows, CSV_COLUMNS), "text/csv", name)


def present_report(report: UsageReport, costs: Costs) -> dict[str, Any]:
    """For the page's template."""
    question = report.question
    lines = list(report.lines[:FIRST_LINES])
    rest = report.whole
    for line in lines:
        rest = rest - line.figures
    currency = costs.currency
    entries = []
    for line in lines:
        entry = _entry(report, line.name, line.figures)
        entry["cost"] = money(_cost_of(costs, line.name), currency)
        entries.append(entry)
    others = None
    if rest:
        others = _entry(report, "", rest)
        others["cost"] = money(_rest_cost(costs, (line.name for line in lines)), currency)
    whole = _entry(report, "", report.whole)
    whole["cost"] = money(_whole_cost(costs), currency)
    return {
        "title": short_name(question.resource),
        "unit": hour_unit(question.resource),
        "has_shares": question.has_shares,
        "entries": entries,
        "others": others,
        "hidden": len(report.lines) - len(lines),
        "whole": whole,
        "currency": currency,
        "totals": _totals(report),
        "chart": _chart(report),
        "steps_table": _steps_table(report),
        "complete_until": report.complete_until,
    }


def _entry(report: UsageReport, name: str, figures: Figures) -> dict[str, Any]:
    question = report.question
    whole = denominator(report, figures)
    found: dict[str, Any] = {
        "name": name or NOBODY,
        "queue": name if question.by == QUEUE else "",
        "job": name if question.by == JOB else "",
        "share": percent(figures.used, whole) or "–",
        "words": of_its_whole(report, figures),
    }
    for figure in FIGURES:
        found[figure] = shown_hours(question.resource, getattr(figures, figure))
    return found


def _totals(report: UsageReport) -> list[dict[str, str]]:
    resource = report.question.resource
    whole = report.whole
    unit = hour_unit(resource)
    used = of_capacity(report).removeprefix(shown_hours(resource, whole.used))
    rows = [{"title": "Used", "amount": shown_hours(resource, whole.used), "note": used.strip()}]
    if report.question.has_shares:
        for figure, note in (
            ("deserved", unit),
            ("borrowed", f"{unit} above what was deserved"),
            (
                "idle",
                f"{unit}, {percent(whole.idle, whole.deserved) or '0 %'} of what was deserved",
            ),
        ):
            amount = shown_hours(resource, getattr(whole, figure))
            rows.append({"title": figure.capitalize(), "amount": amount, "note": note})
        owed = shown_hours(resource, whole.owed)
        note = f"{unit} that queues lacked of their deserved while they asked for more"
        rows.append({"title": "Owed", "amount": owed, "note": note})
    rows.append(
        {
            "title": "Waited for",
            "amount": shown_hours(resource, whole.waited),
            "note": f"{unit} that pods asked for until they got a node",
        }
    )
    lost = percent(whole.lost, whole.used) or "0 %"
    rows.append(
        {
            "title": "Lost",
            "amount": shown_hours(resource, whole.lost),
            "note": f"{unit} to evictions, {lost} of what was used",
        }
    )
    return rows


def _chart(report: UsageReport) -> dict[str, Any]:
    """Hours used in each step, stacked. Times are those at which steps begin."""
    return {
        "unit": hour_unit(report.question.resource),
        "step": report.question.span.step,
        "times": [int(start.timestamp()) for start in report.steps],
        "end": int(report.question.span.end.timestamp()),
        "series": [{"label": row["name"], "values": row["used"]} for row in _series(report)],
    }


def _steps_table(report: UsageReport) -> dict[str, Any]:
    resource = report.question.resource
    lines = []
    for place in reversed(range(len(report.steps))):
        values = [series[place] for series in report.series.values()]
        known = [value for value in values if value is not None]
        cells = [UNKNOWN if value is None else shown_hours(resource, value) for value in values]
        total = shown_hours(resource, sum(known)) if known else UNKNOWN
        lines.append({"at": report.steps[place], "cells": cells, "sum": total})
    return {
        "caption": f"{hour_unit(resource)} per {report.question.span.step}",
        "unit": hour_unit(resource),
        "names": [series["name"] for series in _series(report)],
        "lines": lines,
    }
