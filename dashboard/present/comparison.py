"""A comparison of two schedulers in words: the same for the page, the API and its CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.http import HttpRequest, StreamingHttpResponse

from dashboard.http.exports import as_csv, streamed
from dashboard.http.visibility import Visibility
from dashboard.templatetags.times import in_words
from scheduler.domain.comparison import TITLES, Agreement, Verdict
from scheduler.models import Comparison


def present_comparison(row: Comparison, visibility: Visibility, now: datetime) -> dict[str, Any]:
    """`row` comes with its verdict."""
    verdict = Verdict(row.verdict)  # type: ignore[attr-defined]
    return {
        "row": row,
        "verdict": verdict.value,
        "title": TITLES[verdict],
        "theirs": _their_words(row, now),
        "ours": _our_words(row, verdict),
        "why": _why(row),
        "whom": visibility.visible_job(row.beneficiary, row.beneficiary_queue),
    }


def agreement_words(agreement: Agreement) -> str:
    """Such as "92 %"; a dash where nothing was decided."""
    if agreement.rate is None:
        return "–"
    if agreement.agreed == agreement.decided:
        return "100 %"
    # never rounded up to 100
    return f"{min(99, round(agreement.rate * 100))} %"


def _after(row: Comparison, moment: datetime) -> str:
    seconds = max(0.0, (moment - row.since).total_seconds())
    if seconds < 1:
        return "at once"
    return f"after {in_words(seconds)}"


def _their_words(row: Comparison, now: datetime) -> str:
    if row.about == Comparison.EVICTION:
        if row.theirs_at is None:
            return "did not evict it"
        return "evicted it"
    in_part = _half_words(row, now)
    if row.theirs_at is None:
        if in_part:
            return in_part
        return "did not start it" if row.ended_at else "has not started it"
    if not row.was_seen and not in_part:
        return "started it between two sessions"
    return "; ".join(filter(None, (in_part, f"started it {_after(row, row.theirs_at)}")))


def _half_words(row: Comparison, now: datetime) -> str:
    seconds = row.half_seconds
    if row.half_since is not None:
        seconds = max(seconds, (now - row.half_since).total_seconds())
    if seconds < 1:
        return ""
    return f"started a part of it for {in_words(seconds)}"


def _our_words(row: Comparison, verdict: Verdict) -> str:
    if verdict is Verdict.NOT_SEEN:
        return "was not asked in time"
    if row.about == Comparison.EVICTION:
        if row.ours_at is None:
            return "would not evict it"
        return "would evict it"
    if row.ours_at is not None:
        return f"would start it {_after(row, row.ours_at)}"
    if row.was_seen:
        return "would let it wait"
    return "was not asked in time"


def _why(row: Comparison) -> str:
    if row.about == Comparison.EVICTION:
        return row.message
    if row.reason_code:
        return f"{row.reason_code}: {row.message}"
    return ""


def counts_by_name(counts: Mapping[Verdict, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for verdict, number in counts.items():
        found[verdict.value] = number
    return found


CSV_COLUMNS = (
    "podgroup",
    "queue",
    "about",
    "verdict",
    "since",
    "theirsAt",
    "oursAt",
    "oursSession",
    "halfSeconds",
    "reason",
    "message",
    "beneficiary",
)


def comparisons_as_csv(
    request: HttpRequest, rows: Iterable[Comparison], visibility: Visibility
) -> StreamingHttpResponse:
    specs = (comparison_spec(row, visibility) for row in rows)
    return streamed(request, as_csv(specs, CSV_COLUMNS), "text/csv", "comparison.csv")


def comparison_spec(row: Comparison, visibility: Visibility) -> dict[str, Any]:
    """`row` comes with its verdict."""
    whom = visibility.visible_job(row.beneficiary, row.beneficiary_queue)
    return {
        "podgroup": row.podgroup_name,
        "queue": row.queue_name,
        "about": row.about,
        "verdict": row.verdict,  # type: ignore[attr-defined]
        "since": _moment_text(row.since),
        "theirsAt": _moment_text(row.theirs_at),
        "oursAt": _moment_text(row.ours_at),
        "oursSession": row.ours_session,
        "halfSeconds": round(row.half_seconds, 1),
        "reason": row.reason_code,
        "message": row.message,
        "beneficiary": whom.key if whom else "",
    }


def _moment_text(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.isoformat().replace("+00:00", "Z")
