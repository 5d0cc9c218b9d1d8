"""What holds of every run ahead, whatever the cluster and the policy."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from scheduler.domain.resources import Resources, total
from scheduler.domain.workloads import PodStatus
from scheduler.engine import run_session
from scheduler.simulation.forward import Limits, run_forward, waiting_gangs
from scheduler.simulation.world import GRACE
from tests.properties.strategies import clusters, fits_in, policies
from tests.properties.test_sessions import quick_and_long

LIMITS = Limits(seconds=5_000.0, sessions=60)
lengths = st.floats(1.0, 2_000.0)


def look_ahead(cluster, policy, seconds, *, reporting=False):
    snapshot = cluster.snapshot()
    run_seconds = np.full(len(snapshot.groups), seconds)
    return snapshot, run_forward(snapshot, policy, run_seconds, LIMITS, reporting=reporting)


@quick_and_long(clusters(), policies, lengths)
def test_the_first_session_is_what_the_engine_decides_now(cluster, policy, seconds):
    snapshot, ahead = look_ahead(cluster, policy, seconds, reporting=True)

    assert ahead.first == run_session(cluster.snapshot(), policy)
    started_now = {bind.pod for bind in ahead.binds if bind.at == snapshot.taken_at}
    assert started_now == {bind.pod for bind in ahead.first.binds}


@quick_and_long(clusters(), policies, lengths)
def test_twice_the_same_input_gives_twice_the_same_answer(cluster, policy, seconds):
    _, first = look_ahead(cluster, policy, seconds)
    _, second = look_ahead(cluster, policy, seconds)

    assert first == second


@quick_and_long(clusters(), policies, lengths)
def test_each_waiting_gang_starts_once_or_waits_on(cluster, policy, seconds):
    snapshot, ahead = look_ahead(cluster, policy, seconds)

    waiting = {snapshot.groups.key[row] for row in waiting_gangs(snapshot)}
    assert waiting == set(ahead.starts) | set(ahead.waiting)
    assert not set(ahead.starts) & set(ahead.waiting)
    for at in ahead.starts.values():
        assert snapshot.taken_at <= at <= snapshot.taken_at + LIMITS.seconds


@quick_and_long(clusters(), policies, lengths)
def test_a_gang_has_its_minimum_when_it_starts(cluster, policy, seconds):
    _, ahead = look_ahead(cluster, policy, seconds)

    groups = {group.key: group for group in cluster.podgroups}
    for key, at in ahead.starts.items():
        members = {pod.key: pod for pod in cluster.pods if pod.podgroup == key}
        placed = {bind.pod for bind in ahead.binds if bind.podgroup == key and bind.at <= at}
        before = {name for name, pod in members.items() if pod.status in PLACED}
        assert len(placed | before) >= groups[key].min_member


PLACED = (
    PodStatus.BINDING,
    PodStatus.BOUND,
    PodStatus.RUNNING,
    PodStatus.SUCCEEDED,
    PodStatus.FAILED,
)


@quick_and_long(clusters(), policies, lengths)
def test_no_node_ever_holds_more_than_it_has(cluster, policy, seconds):
    _, ahead = look_ahead(cluster, policy, seconds)

    requests = {pod.key: pod.request + Resources({"pods": 1}) for pod in cluster.pods}
    for moment in sorted({bind.at for bind in ahead.binds}):
        holders = _places_at(moment, cluster, ahead)
        for node in cluster.nodes:
            there = [pod for pod, place in holders.items() if place == node.name]
            assert fits_in(total(requests[pod] for pod in there), node.allocatable), node.name


def _places_at(moment, cluster, ahead):
    """Pod -> node just after the session of this moment, from what the run says happened."""
    places = {pod.key: pod.node for pod in cluster.pods if pod.status in OCCUPYING}
    leaving = [pod.key for pod in cluster.pods if pod.status is PodStatus.RELEASING]
    happened = [(ahead.began + GRACE, 0, pod, "") for pod in leaving]
    happened += [(end, 0, pod, "") for pod, end in ahead.ends.items()]
    happened += [(eviction.at + GRACE, 0, eviction.pod, "") for eviction in ahead.evictions]
    happened += [(bind.at, 1, bind.pod, bind.node) for bind in ahead.binds]
    for at, _, pod, node in sorted(happened):
        if at <= moment:
            places[pod] = node
    return places


OCCUPYING = (
    PodStatus.BINDING,
    PodStatus.BOUND,
    PodStatus.RUNNING,
    PodStatus.RELEASING,
    PodStatus.UNKNOWN,
)
