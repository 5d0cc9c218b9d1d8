"""A session that did not ask for the time comes to the same outcome at any other time: on this
rests that sessions need not think again.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from scheduler.domain.snapshot import ClockedSnapshot, Snapshot
from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome
from scheduler.engine.policy import PluginConfig, Policy
from scheduler.scenarios.clusters import Cluster
from scheduler.scenarios.digests import plain_outcome
from scheduler.scenarios.world import advance
from tests.properties.strategies import clusters, policies
from tests.properties.test_sessions import quick_and_long

SLA = PluginConfig("sla", arguments={"sla-waiting-time": "10s"})


def lived(cluster: Cluster, policy: Policy, sessions: int) -> Snapshot:
    """After so many sessions there are reservations, starving gangs, and words that were said
    already.
    """
    snapshot = cluster.snapshot()
    for _ in range(sessions):
        snapshot = advance(snapshot, run_session(snapshot, policy))
    return snapshot


def decided(tables: Snapshot, policy: Policy, *, later: int = 0) -> tuple[ClockedSnapshot, Outcome]:
    """A session on these tables, so many sessions and hours later."""
    snapshot = ClockedSnapshot(
        tables.resources,
        tables.nodes,
        tables.queues,
        tables.classes,
        tables.groups,
        tables.pods,
    )
    snapshot.session = tables.session + later
    snapshot.taken_at = tables.taken_at + 3600 * later
    snapshot.clock_was_read = False
    return snapshot, run_session(snapshot, policy)


@quick_and_long(clusters(), policies, st.booleans(), st.integers(0, 4), st.sampled_from([1, 3, 40]))
def test_who_did_not_ask_for_the_time_decides_the_same_at_another(
    cluster,
    policy,
    with_sla,
    sessions,
    later,
):
    policy = (
        replace(policy, tiers=((SLA, *policy.tiers[0]), *policy.tiers[1:])) if with_sla else policy
    )
    tables = lived(cluster, policy, sessions)
    snapshot, outcome = decided(tables, policy)
    if snapshot.clock_was_read:
        return

    other, again = decided(tables, policy, later=later)

    assert not other.clock_was_read
    assert plain_outcome(outcome, snapshot) == plain_outcome(again, other)


@quick_and_long(clusters(), policies, st.integers(1, 4))
def test_who_keeps_a_place_or_counts_a_grace_has_asked_for_the_time(cluster, policy, sessions):
    snapshot, outcome = decided(lived(cluster, policy, sessions), policy)

    assert snapshot.clock_was_read or not (
        outcome.reservations or any(since >= 0 for since in outcome.starving.values())
    )
