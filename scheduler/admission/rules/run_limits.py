"""Whom a shorter longest running time would end."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.admission.facts import Facts
from scheduler.admission.violations import Notice
from scheduler.domain.plans import counted
from scheduler.domain.queues import QueueSpec, QueueTree


def ended_jobs_notices(
    proposed: QueueSpec, placed: QueueTree, before: QueueTree, facts: Facts
) -> Iterator[Notice]:
    """Jobs that run on as things are, and would have run for too long after the change."""
    ended = 0
    for name in placed.subtree_names(proposed.name):
        after = longest_run_in(placed, name)
        if after is None:
            continue
        until_now = longest_run_in(before, name)
        for seconds in facts.run_seconds.get(name, ()):
            may_run_now = until_now is None or seconds < until_now
            ended += may_run_now and seconds >= after
    if not ended:
        return
    verb = "has" if ended == 1 else "have"
    message = (
        f"{counted(ended, 'job')} in {proposed.name} {verb} run for longer than would be allowed, "
        "and would be ended at once."
    )
    field = "spec.maxRunSeconds"
    yield Notice("jobs_would_end", proposed.name, message, field)


def longest_run_in(tree: QueueTree, name: str) -> int | None:
    """The strictest limit on the way from the queue to root."""
    seconds = []
    for queue in (name, *tree.ancestors(name)):
        own = tree[queue].max_run_seconds
        if own is not None:
            seconds.append(own)
    return min(seconds, default=None)
