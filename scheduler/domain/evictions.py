"""Why pods were evicted, in words: the one place that says it, for events, timelines and tables."""

from __future__ import annotations

from typing import Final

WHY: Final = {
    "shed": "what was left of its gang could not run, and gave its room back",
    "reclaim": "its queue gave back what it had borrowed",
    "preempt": "the other one has a higher priority",
}


def why_evicted(action: str) -> str:
    """By the action that evicted it; one that is not known speaks for itself."""
    return WHY.get(action, action)
