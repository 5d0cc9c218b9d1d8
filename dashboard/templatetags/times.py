"""{% moment when %} and {% since when %}: times, shown in the reader's zone by the page's script.

The exact time appears on hover.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

_UNITS = ((2 * 86_400, 86_400, "d"), (2 * 3600, 3600, "h"), (60, 60, "min"))
"""From how many seconds on a unit is used, its seconds, its sign."""


def in_words(seconds: float) -> str:
    """ "38 min", "2 h", "4 s"."""
    whole = max(0, int(seconds))
    for least, size, unit in _UNITS:
        if whole >= least:
            return f"{whole // size} {unit}"
    return f"{whole} s"


@register.filter
def duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return in_words(seconds)


@register.filter
def instant(text: str) -> datetime:
    """A moment that came as text, for the tags below."""
    return datetime.fromisoformat(text)


@register.simple_tag
def moment(when: datetime | None) -> SafeString | str:
    """ "12:03:10 UTC", with the day where it is not today."""
    if when is None:
        return "never"
    utc = when.astimezone(UTC)
    shown = utc.strftime("%Y-%m-%d %H:%M UTC")
    if utc.date() == timezone.now().date():
        shown = utc.strftime("%H:%M:%S UTC")
    return format_html(
        '<time datetime="{}" title="{}" data-moment>{}</time>',
        utc.isoformat(),
        utc.strftime("%Y-%m-%d %H:%M:%S UTC"),
        shown,
    )


@register.simple_tag
def since(when: datetime | None) -> SafeString | str:
    """ "38 min": how long ago, counted on by the page."""
    if when is None:
        return "unknown"
    utc = when.astimezone(UTC)
    words = in_words((timezone.now() - when).total_seconds())
    return format_html(
        '<time datetime="{}" title="since {}" data-since>{}</time>',
        utc.isoformat(),
        utc.strftime("%Y-%m-%d %H:%M:%S UTC"),
        words,
    )


@register.simple_tag
def until(when: datetime) -> SafeString:
    """ "38 min": how long it is from now, counted down by the page."""
    utc = when.astimezone(UTC)
    words = in_words((when - timezone.now()).total_seconds())
    return format_html(
        '<time datetime="{}" title="until {}" data-until>{}</time>',
        utc.isoformat(),
        utc.strftime("%Y-%m-%d %H:%M:%S UTC"),
        words,
    )
