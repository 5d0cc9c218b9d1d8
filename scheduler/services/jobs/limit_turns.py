"""Whoever submits where a limit on what waits applies takes turns with others.

So two at once cannot pass the limit together.
"""

from __future__ import annotations

from django.db import connection

from scheduler.admission.facts import Facts
from scheduler.selectors.queues.backlogs import comes_near_a_limit
from scheduler.services.locks import alone_at_the_limit, alone_below


def needs_a_turn(facts: Facts, *, jobs: int, pods: int) -> bool:
    """Whether so many new jobs with so many pods must take turns with others."""
    return bool(_limited_queues(facts)) or comes_near_a_limit(facts, jobs=jobs, pods=pods)


def take_turn(facts: Facts, *, pods: int) -> bool:
    """Wait for those before; held until the transaction ends.

    True where somebody may have submitted meanwhile, so that the facts must be read again. The
    topmost queue with a limit is enough: all who put work below any of the others pass it too.
    """
    if not connection.in_atomic_block:
        return False  # whoever only asks waits for nobody
    topmost = _limited_queues(facts)
    for key in sorted(topmost):
        alone_below(key)
    is_near = comes_near_a_limit(facts, jobs=1, pods=pods)
    if is_near:
        alone_at_the_limit()
    return is_near or bool(topmost)


def _limited_queues(facts: Facts) -> set[int]:
    """Of each queue with a limit on what waits above it or in it, the topmost such."""
    topmost = set()
    for path in facts.queue_limits.values():
        counting = [limits.key for limits in path if limits.counts]
        topmost.update(counting[-1:])
    return topmost
