"""Expected starts and their error in words: the same for pages, API and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest, StreamingHttpResponse

from dashboard.http.exports import as_csv, streamed
from dashboard.templatetags.times import in_words
from scheduler.domain.gang_sizes import SIZE_WORDS
from scheduler.domain.start_forecasts import COVERAGE, Why
from scheduler.models import ExpectedStart
from scheduler.selectors.jobs.start_times import FEWEST, Accuracy

STATED: Final = f"{COVERAGE:.0%}".replace("%", " %")
NOT_LOOKED_AT: Final = "Nobody has looked ahead yet."
WHY_WORDS: Final = {
    Why.PAUSED: "Scheduling is paused.",
    Why.NO_RUN_TIMES: (
        "Too few jobs have ended to know how long others run, and they do not declare it."
    ),
    Why.FEW_FORECASTS: "Too few forecasts of such waits could be compared with what happened.",
    Why.STANDSTILL: "Nothing that is known to come lets it start.",
    Why.TOO_FAR: "It does not start in the next two days, as far as can be seen.",
    Why.CUT_SHORT: "It lies further ahead than there was time to look.",
}
_AT_ONCE: Final = 15.0


def present_start(expected: ExpectedStart | None, now: datetime) -> dict[str, Any]:
    """`words` is short, for a table. `why` says in a sentence why there is no range."""
    if expected is None:
        return {"words": "", "why": NOT_LOOKED_AT, "earliest": None, "latest": None}
    if expected.earliest_at is None or expected.latest_at is None:
        why = WHY_WORDS[Why(expected.why)]
        return {"words": "no estimate", "why": why, "earliest": None, "latest": None}
    return {
        "words": _span(expected.earliest_at, expected.latest_at, now),
        "why": "",
        "earliest": expected.earliest_at,
        "latest": expected.latest_at,
        "cases": expected.cases,
        "made_at": expected.made_at,
        "is_late": expected.latest_at < now,
    }


def _span(earliest: datetime, latest: datetime, now: datetime) -> str:
    """ "in 5 min to 2 h", "within 35 min", "later than expected"."""
    first = (earliest - now).total_seconds()
    last = (latest - now).total_seconds()
    if last < -_AT_ONCE:
        return "later than expected"
    if last < _AT_ONCE:
        return "now"
    if first < _AT_ONCE:
        return f"within {in_words(last)}"
    if in_words(first) == in_words(last):
        return f"in {in_words(last)}"
    return f"in {in_words(first)} to {in_words(last)}"


def start_object(expected: ExpectedStart | None) -> dict[str, Any] | None:
    """For the API; None where nobody has looked."""
    if expected is None:
        return None
    why = ""
    if expected.why:
        why = WHY_WORDS[Why(expected.why)]
    return {
        "earliest": _text(expected.earliest_at),
        "latest": _text(expected.latest_at),
        "madeAt": _text(expected.made_at),
        "coverage": COVERAGE,
        "cases": expected.cases,
        "noEstimate": expected.why,
        "message": why,
    }


def _text(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


# How good they are


def accuracy_object(row: Accuracy) -> dict[str, Any]:
    return {
        "queue": row.queue,
        "size": row.size,
        "known": row.known,
        "held": row.held,
        "coverage": _rounded(row.coverage, 3),
        "medianErrorSeconds": _rounded(row.error, 1),
        "medianWidthSeconds": _rounded(row.width, 1),
        "message": too_few_words(row),
    }


def _rounded(value: float | None, digits: int) -> float | None:
    if value is None:
        return None
    return round(value, digits)


def too_few_words(row: Accuracy) -> str:
    if row.known >= FEWEST:
        return ""
    return f"too few: {row.known} of {FEWEST}"


def present_accuracy(row: Accuracy) -> dict[str, Any]:
    coverage = "–"
    if row.coverage is not None:
        coverage = f"{row.coverage:.0%}".replace("%", " %")
    return {
        "queue": row.queue,
        "size": SIZE_WORDS.get(row.size, row.size),
        "known": row.known,
        "held": row.held,
        "coverage": coverage,
        "error": _duration(row.error),
        "width": _duration(row.width),
        "too_few": too_few_words(row),
        "is_off": row.coverage is not None and abs(row.coverage - COVERAGE) > 0.1,
    }


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return in_words(seconds)


CSV_COLUMNS: Final = (
    "queue",
    "size",
    "known",
    "held",
    "coverage",
    "medianErrorSeconds",
    "medianWidthSeconds",
    "message",
)


def accuracies_as_csv(request: HttpRequest, rows: Iterable[Accuracy]) -> StreamingHttpResponse:
    return streamed(request, as_csv(_objects(rows), CSV_COLUMNS), "text/csv", "forecasts.csv")


def _objects(rows: Iterable[Accuracy]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield accuracy_object(row)
