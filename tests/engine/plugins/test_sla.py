"""Sla: who has waited long enough is admitted."""

from __future__ import annotations

import pytest

from scheduler.domain.workloads import Phase
from scheduler.engine.policy import PluginConfig
from tests.engine.builders import cluster, job, node, phase, policy, queue, run


@pytest.mark.parametrize(
    ("waiting_time", "expected"),
    [("1m", Phase.INQUEUE), ("1h", Phase.PENDING), (None, Phase.PENDING)],
)
def test_the_waiting_time_of_sla_lets_a_job_in(waiting_time, expected):
    snapshot = cluster(
        nodes=[node("n1", cpu=2)],
        queues=[queue("default")],
        taken_at=100.0,
        jobs=[job("new", cpu=3, min_resources=3, phase=Phase.PENDING, created=10.0)],
    )
    arguments = {"sla-waiting-time": waiting_time} if waiting_time else {}

    outcome = run(snapshot, policy("enqueue", [PluginConfig("sla", {}, arguments)], ["overcommit"]))

    assert phase(outcome, "new") is expected
