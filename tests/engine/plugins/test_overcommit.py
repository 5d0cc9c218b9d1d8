"""Overcommit: how much more than the cluster has is admitted."""

from __future__ import annotations

import pytest

from scheduler.domain.workloads import Phase
from scheduler.engine.policy import PluginConfig
from tests.engine.builders import job, one_node, phase, policy, run


@pytest.mark.parametrize(
    ("factor", "expected"), [(1.5, Phase.INQUEUE), (1.0, Phase.PENDING), (0.5, Phase.PENDING)]
)
def test_the_overcommit_factor_says_how_much_more_is_let_in(factor, expected):
    snapshot = one_node(job("new", cpu=3, min_resources=3, phase=Phase.PENDING))

    outcome = run(
        snapshot, policy("enqueue", [PluginConfig("overcommit", {}, {"overcommit-factor": factor})])
    )

    assert phase(outcome, "new") is expected
