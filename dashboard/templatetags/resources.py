"""Amounts in templates: {{ amount|amount_of:"cpu" }}, {{ resource|resource_name }}, {% bar %}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.safestring import SafeString, mark_safe

from dashboard.forms import queue_words
from dashboard.present import row_html
from dashboard.present.amounts import in_page_order, short_name, with_unit
from dashboard.present.bars import LEGEND
from dashboard.present.quotas import quota_bar

register = template.Library()


@register.filter
def amount_of(amount: int | None, resource: str) -> str:
    """ "3.5 CPU", "12 Gi"; unset is said, not shown as 0."""
    if amount is None:
        return "unset"
    return with_unit(resource, amount)


@register.filter
def amounts(resources: Mapping[str, int]) -> str:
    """ "8 GPU · 32 CPU · 128 Gi"; "–" for nothing."""
    words = []
    for name in in_page_order(resources):
        if resources[name]:
            words.append(with_unit(name, resources[name]).replace(" ", "\N{NO-BREAK SPACE}"))
    return " · ".join(words) or "–"


@register.filter
def quota_words(field: str) -> str:
    return queue_words.quota_words(field)


@register.filter
def resource_name(resource: str) -> str:
    return short_name(resource)


@register.simple_tag
def bar(quota: Mapping[str, Any]) -> SafeString:
    """The bar of a presented quota. Other bars come from their views, ready to be put in."""
    return quota_bar(quota)


@register.simple_tag
def legend_bar() -> SafeString:
    return LEGEND


@register.simple_tag
def state_badge(state: str) -> SafeString:
    return mark_safe(row_html.state_badge(state))  # noqa: S308 - escapes its value itself
