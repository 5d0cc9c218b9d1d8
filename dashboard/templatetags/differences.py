"""{% diff_line line %}: one line of a difference between two texts."""

from __future__ import annotations

from typing import Protocol

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

_SIGNS = {"added": "+", "removed": "-"}


class _Line(Protocol):
    @property
    def kind(self) -> str: ...

    @property
    def text(self) -> str: ...


@register.simple_tag
def diff_line(line: _Line) -> SafeString:
    """A tag, not a partial: inside <pre> every line break counts, also the one that ends a file."""
    sign = _SIGNS.get(line.kind, " ")
    return format_html('<span class="diff-{}">{}{}\n</span>', line.kind, sign, line.text)
