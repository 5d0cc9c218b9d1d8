"""Whoever submits where a limit on what waits applies takes turns with others.

So two at once cannot pass the limit together.
"""

from __future__ import annotations

from django.db import connection

from scheduler.admission.facts import Facts
from scheduler.selectors.queues.backlogs import comes_near_a_limit
from scheduler.services.locks import alone_at_the_limit, alone_below


def take_turn(facts: Facts, *, pods: int) -> bool:
    """Wait for those before; held until the transaction ends.

    True where somebody may have submitted meanwhile, so that the facts must be read again. The
    topmost queue with a limit is enough: all who put work below any of the others pass it too.
    """
    if not connection.in_atomic_block:
        return False  # whoever only asks waits for nobody
    topmost = set()
    for path in facts.queue_limits.values():
        counting = [limits.key for limits in path if limits.counts]
        topmost.update(counting[-1:])
    for key in sorted(topmost):
        alone_below(key)
    is_near = comes_near_a_limit(facts, pods=pods)
    if is_near:
        alone_at_the_limit()
    return is_near or bool(topmost)
