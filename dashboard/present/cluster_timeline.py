"""The timeline of the cluster as a reader sees it: windows of an address, marks with links."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from html import escape
from typing import Any, Final
from urllib.parse import quote, urlencode

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from dashboard.forms.typed import moment_of
from scheduler.domain.access import Access, Permission
from scheduler.domain.cluster_timeline import LANES, LONGEST, SHORTEST, Mark, Window
from scheduler.domain.queues import ROOT

SPANS: Final[Mapping[str, tuple[str, timedelta]]] = {
    "1h": ("Hour", timedelta(hours=1)),
    "24h": ("Day", timedelta(hours=24)),
    "7d": ("Week", timedelta(days=7)),
    "30d": ("Month", timedelta(days=30)),
    "1y": ("Year", timedelta(days=365)),
}
DEFAULT_SPAN: Final = "24h"
_AHEAD = 6
"""One part in so many of a span that ends now lies ahead, for what is expected."""
COLUMNS: Final = ("lane", "at", "until", "count", "message", "queue", "kind", "name", "url")
_HALF_DOT = 0.4


class BadWindow(ValueError):
    """A window that cannot be; `field` is the parameter, the message says what to write."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


# The window


def window_of(given: Mapping[str, str], now: datetime, zone: tzinfo = UTC) -> tuple[str, Window]:
    """The name of the span, "" where start and end are given; and the window.

    Raises `BadWindow`.
    """
    start = (given.get("start") or "").strip()
    end = (given.get("end") or "").strip()
    span = (given.get("span") or "").strip()
    if not start and not end:
        name = span or DEFAULT_SPAN
        if name not in SPANS:
            raise BadWindow("span", f"There is no span “{name[:20]}”; give {', '.join(SPANS)}.")
        length = SPANS[name][1]
        return name, Window(now - length, now + length / _AHEAD)
    last = _moment("end", end, zone) if end else now
    first = _moment("start", start, zone) if start else last - SPANS[DEFAULT_SPAN][1]
    if last - first < SHORTEST:
        raise BadWindow("end", "The end must be at least a minute after the start.")
    if last - first > LONGEST:
        raise BadWindow("start", f"A window has at most {LONGEST.days} days.")
    return "", Window(first, last)


def _moment(field: str, text: str, zone: tzinfo) -> datetime:
    found = moment_of(text.replace(" ", "+") if "T" in text else text, zone)
    if found is None:
        message = f"{field} is “{text[:40]}”; write a moment such as 2026-01-31T12:00Z."
        raise BadWindow(field, message)
    return found


def moment_in(field: str, text: str, zone: tzinfo = UTC) -> datetime:
    """Raises `BadWindow`."""
    return _moment(field, text, zone)


@dataclass(frozen=True, slots=True)
class Moves:
    """Addresses of the windows beside this one, as query strings."""

    earlier: str
    later: str
    nearer: str
    wider: str


def moves(window: Window, kept: Mapping[str, str]) -> Moves:
    length = window.end - window.start
    quarter = length / 4
    half = length / 2
    return Moves(
        earlier=query(window.start - half, window.end - half, kept),
        later=query(window.start + half, window.end + half, kept),
        nearer=query(window.start + quarter, window.end - quarter, kept),
        wider=query(window.start - half, window.end + half, kept),
    )


def query(start: datetime, end: datetime, kept: Mapping[str, str]) -> str:
    """Never longer or shorter than a window may be."""
    missing = SHORTEST - (end - start)
    if missing > timedelta(0):
        start -= missing / 2
        end += missing / 2
    surplus = (end - start) - LONGEST
    if surplus > timedelta(0):
        start += surplus / 2
        end -= surplus / 2
    values = {"start": _short(start), "end": _short(end), **kept}
    return urlencode({name: value for name, value in values.items() if value})


def _short(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


# Marks


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads, and which window they look at: a gathered mark leads into it."""

    access: Access
    window: Window
    kept: Mapping[str, str]

    def url(self, mark: Mark) -> str:
        """The page of what happened; for many things, the same timeline, nearer."""
        if mark.lane == "evictions" and mark.number:
            return reverse("session", args=[mark.number])
        if mark.is_gathered:
            return self._nearer(mark)
        if mark.kind == "Job":
            return reverse("job", args=[mark.namespace, mark.name])
        if mark.is_ahead:
            return reverse("change-set", args=[mark.number])
        if mark.number and self._may_audit(mark.queue):
            return reverse("audit-entry", args=[mark.number])
        return self._page_of(mark)

    def _nearer(self, mark: Mark) -> str:
        """What cannot be told apart any nearer is listed."""
        margin = timedelta(seconds=self.window.step / 4)
        if self.window.seconds > 2 * SHORTEST.total_seconds():
            kept = {**self.kept, "lane": mark.lane}
            near = query(mark.at - margin, mark.until + margin, kept)
            return f"{reverse('cluster-timeline')}?{near}"
        span = {"from": _short(mark.at), "until": _short(mark.until + timedelta(seconds=1))}
        page = "audit" if self._may_audit(ROOT) else "activity"
        return f"{reverse(page)}?{urlencode(span)}"

    def _page_of(self, mark: Mark) -> str:
        if mark.kind == "Queue":
            return reverse("queue", args=[mark.name])
        if mark.kind == "Node":
            return reverse("node", args=[mark.name])
        if mark.kind == "Policy":
            return reverse("policy")
        if mark.kind == "Cluster":
            return reverse("sessions")
        return reverse("activity")

    def _may_audit(self, queue: str) -> bool:
        return self.access.may(Permission.ADMINISTER, queue or ROOT)


def mark_words(mark: Mark) -> str:
    """A sentence with its time in UTC: "37 evictions, 14:00:10 to 14:04:51 UTC"."""
    first = mark.at.astimezone(UTC)
    last = mark.until.astimezone(UTC)
    words = mark.words[:1].upper() + mark.words[1:]
    if mark.at == mark.until:
        return f"{words}, {first:%Y-%m-%d %H:%M:%S} UTC"
    if first.date() == last.date():
        return f"{words}, {first:%Y-%m-%d %H:%M:%S} to {last:%H:%M:%S} UTC"
    return f"{words}, {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"


def mark_object(mark: Mark, reader: Reader) -> dict[str, Any]:
    return {
        "lane": mark.lane,
        "at": _iso(mark.at),
        "until": _iso(mark.until),
        "count": mark.count,
        "message": mark.words,
        "queue": mark.queue,
        "kind": mark.kind,
        "name": mark.name,
        "ahead": mark.is_ahead,
        "url": reader.url(mark),
    }


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


# Drawing


def lanes_of(
    marks: Sequence[Mark], reader: Reader, chosen: Collection[str]
) -> list[dict[str, Any]]:
    drawn = []
    for lane, title in LANES.items():
        if lane not in chosen:
            continue
        own = [mark for mark in marks if mark.lane == lane]
        drawn.append(
            {
                "name": lane,
                "title": title,
                "count": sum(mark.count for mark in own),
                "marks": _drawn(own, reader),
            }
        )
    return drawn


def _drawn(marks: Iterable[Mark], reader: Reader) -> SafeString:
    return mark_safe("".join(_one(mark, reader) for mark in marks))  # noqa: S308 - escaped below


def _one(mark: Mark, reader: Reader) -> str:
    """A link in an SVG that is as wide as the page: places are parts of a hundred."""
    start = 100 * max(0.0, reader.window.place(mark.at))
    end = 100 * min(1.0, reader.window.place(mark.until))
    width = max(end - start, 2 * _HALF_DOT)
    left = min(max(0.0, start - _HALF_DOT), 100 - width)
    words = escape(mark_words(mark))
    style = "mark"
    if mark.is_gathered:
        style += " mark-many"
    if mark.is_ahead:
        style += " mark-ahead"
    address = escape(quote(reader.url(mark), safe="/?&=:%+-._~"))
    count = ""
    if mark.is_gathered:
        count = f'<text aria-hidden="true" x="{left + width / 2:.2f}%" y="11">{mark.count}</text>'
    return (
        f'<a class="{style}" href="{address}"><title>{words}</title>'
        f'<rect x="{left:.2f}%" y="14" width="{width:.2f}%" height="14" rx="2"></rect>{count}</a>'
    )


def ticks(window: Window, number: int = 5) -> list[datetime]:
    """Moments at even distances along the axis, both ends among them."""
    length = window.end - window.start
    return [window.start + length * place / (number - 1) for place in range(number)]
