"""Which queues changed is found without putting any into values, and found right."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from scheduler.engine import run_session
from scheduler.engine.report.figures import differing
from scheduler.scenarios.world import advance
from tests.properties.strategies import POLICIES, clusters, policies
from tests.properties.test_sessions import quick_and_long


@quick_and_long(clusters(), policies, st.integers(1, 3), st.booleans())
def test_the_queues_that_differ_are_those_whose_values_do(
    cluster,
    policy,
    sessions,
    with_another_policy,
):
    snapshot = cluster.snapshot()
    for _ in range(sessions):
        outcome = run_session(snapshot, policy)
        snapshot = advance(snapshot, outcome)
    later = run_session(snapshot, POLICIES["proportion"] if with_another_policy else policy)

    found = differing(later.queues, outcome.queues)

    assert sorted(found) == sorted(
        name for name in later.queues if dict(later.queues)[name] != dict(outcome.queues)[name]
    )
    assert differing(later.queues, later.queues) == []


@quick_and_long(clusters(), policies)
def test_a_queue_whose_settings_changed_differs(cluster, policy):
    before = run_session(cluster.snapshot(), policy)
    name = sorted(before.queues)[-1]
    others = [
        replace(queue, spec=replace(queue.spec, weight=queue.spec.weight + 7))
        for queue in cluster.queues
    ]
    after = run_session(replace(cluster, queues=tuple(others)).snapshot(), policy)

    assert (name in differing(after.queues, before.queues)) == (
        after.queues[name] != before.queues[name]
    )
