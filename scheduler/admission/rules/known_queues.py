"""A queue that is named must be there. One that the caller may not see is answered the same."""

from __future__ import annotations

from typing import Final

from scheduler.admission.violations import Violation

_LONGEST: Final = 253


def unknown_queue(queue: str, field: str = "spec.queue") -> Violation:
    message = f"There is no queue {queue[:_LONGEST]}."
    return Violation("queue_not_found", queue, field, message, "name a queue that exists")
