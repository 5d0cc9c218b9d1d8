"""The reason that a session gives for a podgroup that waits."""

from __future__ import annotations

from scheduler.engine.presets import DEFAULT_POLICY
from tests.engine.builders import (
    BASIC,
    cluster,
    policy,
    reason,
    run,
)


def explained(policy=DEFAULT_POLICY, name="new", **given):
    return reason(run(cluster(**given), policy), name)


NO_RECLAIM = policy("enqueue allocate backfill", BASIC, ["predicates"])
