"""What a podgroup is called when the session is over."""

from __future__ import annotations

from scheduler.domain.workloads import Phase
from scheduler.engine.policy import Flag, PluginConfig
from tests.engine.builders import cluster, evicted, job, node, phase, policy, queue, run

LOOSE = policy(
    "allocate preempt",
    ["priority", PluginConfig("gang", {Flag.PREEMPTABLE: False})],
    ["predicates", "proportion"],
)
"""Preemption may go below minMember."""


def _preempted(**victim):
    jobs = [
        job("low", "q1", cpu=2, on=["n1", "n1"], tasks=2, **victim),
        job("high", "q1", cpu=2, priority=5),
    ]
    return run(cluster(nodes=[node("n1", cpu=4)], queues=[queue("q1")], jobs=jobs), LOOSE)


def test_a_job_whose_members_are_only_on_their_way_out_still_counts_as_running():
    outcome = _preempted()

    assert evicted(outcome) == ["low-1"]
    assert phase(outcome, "low") is Phase.RUNNING
    assert "default/low" not in outcome.reasons
    assert not [
        condition for condition in outcome.conditions if condition.podgroup == "default/low"
    ]


def test_a_job_that_lost_a_member_and_waits_for_another_is_unknown():
    jobs = [
        job("low", "q1", cpu=2, on=["n1", "n1", ""], tasks=3, phase=Phase.RUNNING),
        job("high", "q1", cpu=2, priority=5),
    ]
    outcome = run(cluster(nodes=[node("n1", cpu=4)], queues=[queue("q1")], jobs=jobs), LOOSE)

    assert evicted(outcome) == ["low-1"]
    assert phase(outcome, "low") is Phase.UNKNOWN
    assert "default/low" in outcome.reasons
