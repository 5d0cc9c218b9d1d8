"""Capacity: who is admitted under it."""

from __future__ import annotations

import pytest

from scheduler.domain.workloads import Phase
from scheduler.engine.policy import PluginConfig
from tests.engine.builders import job, one_node, phase, policy, run


@pytest.mark.parametrize(
    ("admission", "expected"), [("possible", Phase.INQUEUE), ("room", Phase.PENDING)]
)
def test_a_large_gang_that_waits_keeps_nobody_out_unless_the_policy_says_so(admission, expected):
    snapshot = one_node(
        job("large", cpu=2, min_resources=2, phase=Phase.INQUEUE),
        job("small", cpu=1, min_resources=1, phase=Phase.PENDING),
    )

    outcome = run(
        snapshot, policy("enqueue", [PluginConfig("capacity", {}, {"admission": admission})])
    )

    assert phase(outcome, "small") is expected


def test_a_gang_that_can_never_run_is_not_let_in():
    snapshot = one_node(job("huge", cpu=3, min_resources=3, phase=Phase.PENDING))

    outcome = run(
        snapshot, policy("enqueue", [PluginConfig("capacity", {}, {"admission": "possible"})])
    )

    assert phase(outcome, "huge") is Phase.PENDING
