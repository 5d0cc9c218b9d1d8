"""Limits on work as pages show them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dashboard.http.visibility import Visibility
from scheduler.admission.facts import QueueLimits
from scheduler.domain.queue_fields import LIMIT_FIELDS, QueueField

_SHORTEST_TOLD_IN_MINUTES = 120


def limit_lines(queue: str, path: Iterable[QueueLimits], seen: Visibility) -> list[dict[str, Any]]:
    """Every limit that applies to work in the queue.

    Of those that are about one job, the strictest is told alone. How much waits below a queue that
    the reader may not see is not told: other tenants have a part in it.
    """
    limits = list(path)
    lines = []
    for field in LIMIT_FIELDS:
        naming = [each for each in limits if getattr(each, field.name) is not None]
        if field.name in ("max_pods_per_job", "max_run_seconds"):
            naming = sorted(naming, key=lambda each: getattr(each, field.name))[:1]
        for each in naming:
            lines.append(_line(queue, field, each, seen))
    return lines


def _line(queue: str, field: QueueField, limits: QueueLimits, seen: Visibility) -> dict[str, Any]:
    most = getattr(limits, field.name)
    words = f"at most {most:,}"
    if field.name == "max_run_seconds":
        words = f"at most {time_words(most)}"
    source = ""
    if limits.queue != queue:
        source = limits.queue
    now = _now(field, limits)
    if not seen.sees(limits.queue) and not field.name.endswith("per_user"):
        now = ""
    return {"label": field.label, "words": words, "source": source, "now": now}


def _now(field: QueueField, limits: QueueLimits) -> str:
    numbers = {
        "max_waiting_jobs": f"{limits.waiting.jobs:,} now",
        "max_waiting_pods": f"{limits.waiting.pods:,} now",
        "max_waiting_jobs_per_user": f"{limits.waiting_of_user.jobs:,} of yours now",
        "max_waiting_pods_per_user": f"{limits.waiting_of_user.pods:,} of yours now",
    }
    return numbers.get(field.name, "")


def time_words(seconds: int) -> str:
    """ "90 s", "5 min", "2 h", "1 h 30 min": whole units, exactly."""
    if seconds < _SHORTEST_TOLD_IN_MINUTES:
        return f"{seconds} s"
    parts = []
    rest = seconds
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if rest >= size:
            parts.append(f"{rest // size} {unit}")
            rest %= size
    return " ".join(parts)


def namespace_lines(queue: str, path: Iterable[QueueLimits]) -> list[dict[str, str]]:
    """Whose work may come, and the queue that says so where it is one above; empty: everybody's."""
    lines = []
    for limits in path:
        source = ""
        if limits.queue != queue:
            source = limits.queue
        for name in limits.namespaces:
            lines.append({"name": name, "source": source})
    return lines
