"""Fairness as it is shown: the same for page, API, CSV and CLI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dashboard.http.exports import as_csv, streamed
from dashboard.http.visibility import OTHER_QUEUES, Visibility
from dashboard.present.amounts import short_name
from dashboard.present.usage import (
    NOBODY,
    UNKNOWN,
    hour_unit,
    hours_or_nothing,
    in_hours,
    percent,
    shown_hours,
)
from dashboard.templatetags.times import in_words
from scheduler.domain.gang_sizes import SIZE_WORDS
from scheduler.domain.losses import PART_HELP, PART_WORDS
from scheduler.selectors.usage.fairness import Balance, Fairness, Waits

CSV_COLUMNS: Final = (
    "queue",
    "resource",
    "unit",
    "deserved",
    "used",
    "owed",
    "borrowed",
    "balance",
)
_COLOURS: Final = (
    "--series-0",
    "--series-4",
    "--series-2",
    "--series-3",
    "--suspended",
    "--series-5",
    "--track",
)


def balance_object(resource: str, row: Balance) -> dict[str, Any]:
    found: dict[str, Any] = {"queue": row.queue}
    for name in ("deserved", "used", "owed", "borrowed", "balance"):
        found[name] = round(in_hours(resource, getattr(row, name)), 6)
    found["message"] = balance_words(resource, row)
    return found


def balance_words(resource: str, row: Balance) -> str:
    """ "12 GPU-hours less than the 96 that it deserved, while it asked for more: 13 % of them"."""
    if not row.balance:
        return "even"
    part = f"{shown_hours(resource, abs(row.balance))} {hour_unit(resource)}"
    if row.deserved <= 0:
        return f"{part} more than it deserved, which was nothing"
    whole = shown_hours(resource, row.deserved)
    share = percent(abs(row.balance), row.deserved)
    if row.balance > 0:
        return f"{part} more than the {whole} that it deserved: {share} of them"
    return (
        f"{part} less than the {whole} that it deserved, while it asked for more: {share} of them"
    )


def fairness_object(found: Fairness, seen: Visibility) -> dict[str, Any]:
    question = found.question
    resource = question.resource
    span = question.span
    return {
        "window": span.window,
        "from": span.start.isoformat(),
        "to": span.end.isoformat(),
        "step": span.step,
        "resource": resource,
        "unit": hour_unit(resource),
        "queues": [balance_object(resource, row) for row in found.balances],
        "pairs": [
            {
                "starved": pair.starved,
                "by": seen.visible_queue(pair.by) or OTHER_QUEUES,
                "amount": round(in_hours(resource, pair.amount), 6),
            }
            for pair in found.pairs
        ],
        "waits": {kind: [_wait_object(row) for row in rows] for kind, rows in found.waits.items()},
        "steps": [start.isoformat() for start in found.steps],
        "room": _room_objects(found),
    }


def _wait_object(row: Waits) -> dict[str, Any]:
    return {
        "name": row.name,
        "gangs": row.gangs,
        "p50Seconds": None if row.median is None else round(row.median, 1),
        "p95Seconds": None if row.most is None else round(row.most, 1),
    }


def _room_objects(found: Fairness) -> list[dict[str, Any]]:
    resource = found.question.resource
    amounts = _room_amounts(found)
    whole = sum(amounts.values())
    rows = []
    for part, values in found.room.items():
        amount = amounts[part]
        rows.append(
            {
                "part": part,
                "hours": hours_or_nothing(resource, amount if whole else None),
                "share": round(amount / whole, 6) if whole else None,
                "steps": [hours_or_nothing(resource, value) for value in values],
            }
        )
    return rows


def _room_amounts(found: Fairness) -> dict[str, int]:
    """By part, of all steps in which somebody looked."""
    return {part: sum(filter(None, values)) for part, values in found.room.items()}


def fairness_as_csv(request: HttpRequest, found: Fairness) -> HttpResponseBase:
    resource = found.question.resource
    fixed = {"resource": resource, "unit": hour_unit(resource)}
    rows = [{**balance_object(resource, row), **fixed} for row in found.balances]
    return streamed(request, as_csv(rows, CSV_COLUMNS), "text/csv", "fairness.csv")


def present_fairness(found: Fairness, seen: Visibility) -> dict[str, Any]:
    resource = found.question.resource
    unit = hour_unit(resource)
    return {
        "title": short_name(resource),
        "unit": unit,
        "balances": [_shown_balance(resource, row) for row in found.balances],
        "pairs": [
            {
                "starved": pair.starved,
                "by": seen.visible_queue(pair.by) or OTHER_QUEUES,
                "amount": f"{shown_hours(resource, pair.amount)} {unit}",
            }
            for pair in found.pairs
        ],
        "waits": [
            {"title": title, "rows": [_shown_wait(kind, row) for row in found.waits[kind]]}
            for kind, title in (("queue", "Queue"), ("size", "Size"), ("user", "User"))
        ],
        "room": _shown_room(found),
        "chart": _chart(found),
        "steps_table": _steps_table(found),
        "has_waits": any(found.waits.values()),
        "has_room": any(any(filter(None, values)) for values in found.room.values()),
    }


def _shown_balance(resource: str, row: Balance) -> dict[str, str]:
    found = {"queue": row.queue, "words": balance_words(resource, row)}
    for name in ("deserved", "used", "owed", "borrowed"):
        found[name] = shown_hours(resource, getattr(row, name))
    sign = "+" if row.balance > 0 else "−" if row.balance < 0 else ""
    found["balance"] = f"{sign}{shown_hours(resource, abs(row.balance))}"
    return found


def _shown_wait(kind: str, row: Waits) -> dict[str, Any]:
    name = row.name or NOBODY
    if kind == "size":
        name = SIZE_WORDS.get(row.name, row.name)
    return {
        "name": name,
        "gangs": row.gangs,
        "median": "–" if row.median is None else in_words(row.median),
        "most": "–" if row.most is None else in_words(row.most),
    }


def _shown_room(found: Fairness) -> list[dict[str, str]]:
    resource = found.question.resource
    amounts = _room_amounts(found)
    whole = sum(amounts.values())
    of_all = f"of {shown_hours(resource, whole)} {hour_unit(resource)}"
    shares = percents(list(amounts.values()))
    rows = []
    for (part, amount), share in zip(amounts.items(), shares, strict=True):
        words = f"{shown_hours(resource, amount)} {of_all}"
        rows.append(
            {
                "title": PART_WORDS[part],
                "help": PART_HELP[part],
                "share": share,
                "words": words,
            }
        )
    return rows


def percents(amounts: Sequence[int]) -> list[str]:
    """Of all of them, rounded so that they add up to 100: who was cut most is rounded up first."""
    whole = sum(amounts)
    if not whole:
        return [UNKNOWN] * len(amounts)
    shares = [amount * 100 // whole for amount in amounts]
    by_rest = sorted(range(len(amounts)), key=lambda place: -(amounts[place] * 100 % whole))
    for place in by_rest[: 100 - sum(shares)]:
        shares[place] += 1
    found = []
    for amount, share in zip(amounts, shares, strict=True):
        found.append("under 1\u00a0%" if amount and not share else f"{share}\u00a0%")
    return found


def _shares(found: Fairness) -> dict[str, list[float | None]]:
    """Percent of each step; they add up to 100. None where nobody looked."""
    sums = [sum(filter(None, values)) for values in zip(*found.room.values(), strict=True)]
    shares = {}
    for part, values in found.room.items():
        shares[part] = [
            round((value or 0) / whole * 100, 3) if whole else None
            for value, whole in zip(values, sums, strict=True)
        ]
    return shares


def _chart(found: Fairness) -> dict[str, Any]:
    series = []
    for (part, values), colour in zip(_shares(found).items(), _COLOURS, strict=True):
        series.append({"label": PART_WORDS[part], "values": values, "colour": colour})
    return {
        "unit": "%",
        "most": 100,
        "step": found.question.span.step,
        "times": [int(start.timestamp()) for start in found.steps],
        "end": int(found.question.span.end.timestamp()),
        "series": series,
    }


def _steps_table(found: Fairness) -> dict[str, Any]:
    shares = _shares(found)
    lines = []
    for place in reversed(range(len(found.steps))):
        known = [share for values in shares.values() if (share := values[place]) is not None]
        cells = [f"{share:.1f}" for share in known] or [UNKNOWN] * len(shares)
        whole = f"{sum(known):.0f}" if known else UNKNOWN
        lines.append({"at": found.steps[place], "cells": cells, "sum": whole})
    resource = found.question.resource
    return {
        "caption": f"Where the room of {short_name(resource)} went",
        "unit": "Percent of all that the cluster had",
        "names": [PART_WORDS[part] for part in shares],
        "lines": lines,
    }
