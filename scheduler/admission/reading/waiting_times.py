"""How long a job or gang may wait before the plugin sla admits it: an annotation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from scheduler.admission.violations import Violation
from scheduler.domain.durations import seconds_in

SLA_ANNOTATION = "sla-waiting-time"
_LONGEST_WAIT = 2**31 - 1


def waiting_time(annotations: Mapping[str, str]) -> int | None:
    """In seconds; a part of a second counts as a whole one.

    None where there is none, or none that can be meant.
    """
    seconds = seconds_in(annotations.get(SLA_ANNOTATION, ""))
    if seconds is None or seconds > _LONGEST_WAIT:
        return None
    return math.ceil(seconds)


def check_waiting_time(
    annotations: Mapping[str, str],
    queue: str,
    before: Mapping[str, str] | None = None,
) -> Iterator[Violation]:
    """Refuse a waiting time that cannot be read.

    `before` are the annotations that it has already. What was admitted once does not keep anybody
    from changing something else.
    """
    text = annotations.get(SLA_ANNOTATION, "")
    if text and waiting_time(annotations) is None and text != (before or {}).get(SLA_ANNOTATION):
        message = (
            f"{SLA_ANNOTATION} is {text[:40]}; it must be a length of time such as 90s, 3m or "
            "1h30m."
        )
        yield Violation(
            "invalid_value", queue, f"metadata.annotations[{SLA_ANNOTATION}]", message, "write 30m"
        )
