"""What is asked about usage: read from an address, the same for page, API and CSV."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from django.utils import timezone

from dashboard.forms.choices import refusal_of, stored_word
from dashboard.present.amounts import in_page_order
from dashboard.present.queue_page import chosen_resource
from scheduler.domain.usage_spans import STEPS, BadSpan, UsageSpan, span_of
from scheduler.selectors.queues.listing import cluster_total
from scheduler.selectors.usage.fairness import FairnessQuestion
from scheduler.selectors.usage.report import GROUPS, QUEUE, UsageQuestion, known_resources

PARAMETERS: Final = ("window", "from", "to", "step", "by", "resource", "queue", "user", "namespace")
_LONGEST = 253


def usage_question(
    given: Mapping[str, str], visible: Collection[str] | None, resources: list[str]
) -> UsageQuestion:
    """Raises `BadSpan` with the name of the parameter that cannot be."""
    queue = _text(given, "queue")
    if queue and visible is not None and queue not in visible:
        raise BadSpan("queue", f"There is no queue “{queue}” that you may see.")
    return UsageQuestion(
        span=usage_span(given),
        resource=_resource(given, resources),
        by=_word(given, "by", GROUPS) or QUEUE,
        queue=queue,
        user=_text(given, "user"),
        namespace=_text(given, "namespace"),
        visible=visible,
    )


def fairness_question(
    given: Mapping[str, str], visible: Collection[str] | None, resources: list[str]
) -> FairnessQuestion:
    """Raises `BadSpan`."""
    asked = usage_question({**_plain(given), "by": QUEUE}, visible, resources)
    return FairnessQuestion(asked.span, asked.resource, asked.queue, visible)


def _plain(given: Mapping[str, str]) -> dict[str, str]:
    return {name: given.get(name) or "" for name in PARAMETERS}


def usage_span(given: Mapping[str, str]) -> UsageSpan:
    step = _word(given, "step", STEPS)
    window, first, last = (_text(given, name) for name in ("window", "from", "to"))
    return span_of(timezone.now(), window, first, last, step)


def usage_resources() -> list[str]:
    """Those that the cluster has, and those of which there is usage."""
    return in_page_order({*cluster_total(), *known_resources()})


def _text(given: Mapping[str, str], name: str) -> str:
    return (given.get(name) or "").strip()[:_LONGEST]


def _word(given: Mapping[str, str], name: str, known: Collection[str]) -> str:
    word = _text(given, name)
    if not word:
        return ""
    found = stored_word(word, known)
    if found is None:
        raise BadSpan(name, refusal_of(name, word, known))
    return found


def _resource(given: Mapping[str, str], resources: list[str]) -> str:
    wanted = _text(given, "resource")
    if not wanted:
        return next(iter(resources), "")
    found = chosen_resource(wanted, resources)
    if not found:
        raise BadSpan("resource", refusal_of("resource", wanted, resources))
    return found
