"""What holds in every session, whatever the cluster, the tree and the policy."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, assume, given, note, settings
from hypothesis import strategies as st

from scheduler.domain.queues import ROOT, QueueTree
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.resources import Resources, total
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.workloads import Pod, PodStatus
from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome
from scheduler.engine.policy import Policy
from scheduler.scenarios.clusters import Cluster, cluster_of
from scheduler.scenarios.reports import outcome_document
from scheduler.scenarios.world import advance
from scheduler.scenarios.writing import scenario_document
from tests.properties.strategies import PLAIN, POLICIES, clusters, fits_in, policies

_QUICK = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
    phases=(Phase.generate,),
)
_LONG = settings(
    _QUICK,
    max_examples=2_000,
    derandomize=False,
    phases=(Phase.generate, Phase.shrink),
)


def quick_and_long(*strategies):
    """The test with few examples always the same, and with many new ones under --long."""

    def decorate(check):
        quick = _QUICK(given(*strategies)(check))
        long = _LONG(given(*strategies)(check))

        @pytest.mark.parametrize(
            "run",
            [quick, pytest.param(long, marks=pytest.mark.long)],
            ids=["quick", "long"],
        )
        def test(run):
            run()

        test.__name__ = check.__name__
        test.__doc__ = check.__doc__
        return test

    return decorate


ALIVE = (PodStatus.BINDING, PodStatus.BOUND, PodStatus.RUNNING)


def decide(cluster: Cluster, policy: Policy) -> Outcome:
    return run_session(_noted(cluster, policy), policy)


def _noted(cluster: Cluster, policy: Policy) -> Snapshot:
    """The snapshot.

    Should the test fail, it is shown as a scenario that `manage.py simulate` runs.
    """
    snapshot = cluster.snapshot()
    note(json.dumps(scenario_document(snapshot, policy, "found by a property")))
    return snapshot


def requests_by_pod(cluster: Cluster) -> dict[str, Resources]:
    return {pod.key: pod.request + Resources({"pods": 1}) for pod in cluster.pods}


@quick_and_long(clusters(), policies)
def test_no_node_is_taken_past_what_it_has(cluster, policy):
    outcome = decide(cluster, policy)

    requests = requests_by_pod(cluster)
    for node in cluster.nodes:
        there = [pod.key for pod in cluster.pods if pod.node == node.name]
        bound = [bind.pod for bind in outcome.binds if bind.node == node.name]
        held = total(requests[pod] for pod in (*there, *bound))
        assert fits_in(held, node.allocatable), node.name
        leaving = {eviction.pod for eviction in outcome.evictions} | {
            pod.key for pod in cluster.pods if pod.status is PodStatus.RELEASING
        }
        waiting = [
            reservation.pod for reservation in outcome.reservations if reservation.node == node.name
        ]
        later = [pod for pod in (*there, *bound, *waiting) if pod not in leaving]
        assert fits_in(total(requests[pod] for pod in later), node.allocatable), (
            f"{node.name} promises more than it will have"
        )


@quick_and_long(clusters(), policies)
def test_no_queue_is_taken_past_its_limit_at_any_level(cluster, policy):
    outcome = decide(cluster, policy)

    for name, after in outcome.queues.items():
        before = outcome.queues_at_open[name].allocated
        for resource, amount in after.allocated.items():
            if (
                resource != "pods"
                and amount > before.amount(resource)
                and resource in after.real_capability
            ):
                assert amount <= after.real_capability[resource], (name, resource)


@quick_and_long(clusters(), policies)
def test_a_gang_starts_whole_or_not_at_all(cluster, policy):
    outcome = decide(cluster, policy)

    bound = Counter(bind.podgroup for bind in outcome.binds)
    for group in cluster.podgroups:
        if bound[group.key]:
            members = [pod for pod in cluster.pods if pod.podgroup == group.key]
            here = [pod for pod in members if pod.status in (*ALIVE, PodStatus.SUCCEEDED)]
            gone = {eviction.pod for eviction in outcome.evictions}
            assert (
                len([pod for pod in here if pod.key not in gone]) + bound[group.key]
                >= group.min_member
            ), group.key


@quick_and_long(clusters(), policies)
def test_places_are_kept_for_whole_gangs_only(cluster, policy):
    outcome = decide(cluster, policy)

    coming = Counter(bind.podgroup for bind in outcome.binds) + Counter(
        reservation.podgroup for reservation in outcome.reservations
    )
    gone = {eviction.pod for eviction in outcome.evictions}
    for group in cluster.podgroups:
        if any(reservation.podgroup == group.key for reservation in outcome.reservations):
            here = [
                pod
                for pod in cluster.pods
                if pod.podgroup == group.key
                and pod.status in (*ALIVE, PodStatus.SUCCEEDED)
                and pod.key not in gone
            ]
            assert len(here) + coming[group.key] >= group.min_member, group.key


@quick_and_long(clusters(), policies)
def test_every_victim_is_needed(cluster, policy):
    outcome = decide(cluster, policy)

    requests = requests_by_pod(cluster)
    for eviction in outcome.evictions:
        if eviction.action != "shed":
            assert not _fits_without(eviction.pod, eviction.node, cluster, outcome, requests), (
                eviction.pod
            )


def _fits_without(victim, node_name, cluster, outcome, requests):
    """Whether all that is promised on the node would have room although the victim stayed, and its
    going served no quota either.
    """
    (node,) = [node for node in cluster.nodes if node.name == node_name]
    leaving = {eviction.pod for eviction in outcome.evictions if eviction.action != "shed"} - {
        victim
    }  # shed comes after the choice
    leaving |= {pod.key for pod in cluster.pods if pod.status is PodStatus.RELEASING}
    there = [pod.key for pod in cluster.pods if pod.node == node_name and pod.key not in leaving]
    coming = [
        move.pod for move in (*outcome.binds, *outcome.reservations) if move.node == node_name
    ]
    within_quota = all(
        figures.allocated.amount(name) + requests[victim].amount(name) <= limit
        for figures in outcome.queues.values()
        for name, limit in figures.real_capability.items()
        if name != "pods"
    )
    return within_quota and fits_in(
        total(requests[pod] for pod in (*there, *coming)), node.allocatable
    )


@quick_and_long(clusters(), policies)
def test_nothing_happens_in_queues_that_do_not_schedule(cluster, policy):
    outcome = decide(cluster, policy)

    silent = {queue.name for queue in cluster.queues if not queue.schedules}
    assert not {bind.pod for bind in outcome.binds if bind.queue in silent}
    assert not {
        eviction.pod for eviction in outcome.evictions if eviction.beneficiary_queue in silent
    }
    protected = {queue.name for queue in cluster.queues if queue.is_held}
    assert not {
        eviction.pod
        for eviction in outcome.evictions
        if eviction.action == "reclaim" and eviction.queue in protected
    }


@quick_and_long(clusters())
def test_under_proportion_deserved_never_exceeds_the_total_and_every_guarantee_is_kept(cluster):
    outcome = decide(cluster, POLICIES["proportion"])

    guarantees = total(queue.spec.guarantee for queue in cluster.queues)
    deserved = total(figures.deserved for name, figures in outcome.queues_at_open.items())
    for resource, amount in deserved.items():
        assert amount <= max(outcome.total.amount(resource), guarantees.amount(resource)), resource
    for queue in cluster.queues:
        if queue.name in outcome.queues_at_open:
            assert fits_in(queue.spec.guarantee, outcome.queues_at_open[queue.name].deserved), (
                queue.name
            )


@quick_and_long(clusters(), policies)
def test_reclaim_never_takes_a_queue_below_its_guarantee_nor_touches_what_is_not_reclaimable(
    cluster, policy
):
    outcome = decide(cluster, policy)

    specs = {queue.name: queue.spec for queue in cluster.queues}
    for eviction in outcome.evictions:
        if eviction.action == "reclaim":
            assert specs[eviction.queue].reclaimable
            assert eviction.queue != eviction.beneficiary_queue
            short = {
                name
                for name, amount in eviction.guarantee.items()
                if eviction.allocated_after.amount(name) < amount
            }
            assert not {
                name
                for name in short
                if eviction.allocated_after.amount(name) < eviction.allocated_before.amount(name)
            }


@quick_and_long(clusters(), policies)
def test_an_eviction_always_lets_its_beneficiary_in(cluster, policy):
    snapshot = _noted(cluster, policy)
    outcome = run_session(snapshot, policy)
    assume(any(eviction.beneficiary for eviction in outcome.evictions))

    following = run_session(advance(snapshot, outcome), policy)

    promised = {reservation.pod: reservation.node for reservation in outcome.reservations}
    placed = {bind.pod: bind.node for bind in following.binds}
    served = {reservation.podgroup for reservation in outcome.reservations}
    assert {
        eviction.beneficiary for eviction in outcome.evictions if eviction.beneficiary
    } <= served
    assert {pod: placed.get(pod) for pod in promised} == promised


@quick_and_long(clusters(), policies, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(cluster: Cluster, policy: Policy, random: Random):
    shuffled = replace(
        cluster,
        nodes=_shuffled(cluster.nodes, random),
        queues=_shuffled(cluster.queues, random),
        podgroups=_shuffled(cluster.podgroups, random),
        pods=_shuffled(cluster.pods, random),
    )

    assert _told(decide(cluster, policy)) == _told(decide(shuffled, policy))


def _shuffled(values, random: Random):
    return tuple(random.sample(values, len(values)))


def _told(outcome: Outcome):
    """Everything but row numbers."""
    return (
        outcome_document("", outcome),
        outcome.queues,
        outcome.queues_at_open,
        dict(outcome.reasons),
        outcome.warnings,
        outcome.events,
        [eviction._replace(row=0) for eviction in outcome.evictions],
        [bind._replace(row=0) for bind in outcome.binds],
        sorted(condition._replace(row=0) for condition in outcome.conditions)
        if False
        else [item._replace(row=0) for item in outcome.conditions],
    )


@quick_and_long(clusters(), policies)
def test_a_session_changes_nothing_but_its_outcome(cluster, policy):
    snapshot = cluster.snapshot()
    before = cluster_of(snapshot)

    first = run_session(snapshot, policy)
    second = run_session(snapshot, policy)

    assert cluster_of(snapshot) == before
    assert first == second


@quick_and_long(clusters(), policies)
def test_a_second_session_without_any_change_decides_nothing(cluster, policy):
    snapshot = _noted(cluster, policy)
    outcome = run_session(snapshot, policy)
    assume(
        not outcome.evictions and not any(pod.status is PodStatus.RELEASING for pod in cluster.pods)
    )
    settled = advance(snapshot, outcome)

    again = run_session(settled, policy)

    assert (
        again.binds,
        [eviction for eviction in again.evictions if eviction.action != "shed"],
    ) == ((), [])


@quick_and_long(clusters(PLAIN), policies)
def test_no_idle_room_is_left_that_a_waiting_gang_could_use(cluster, policy):
    snapshot = _noted(cluster, policy)
    outcome = run_session(snapshot, policy)
    assume(not outcome.evictions and not outcome.reservations)
    assume(not any(pod.status is PodStatus.RELEASING for pod in cluster.pods))

    after = cluster_of(advance(snapshot, outcome))
    for group in after.podgroups:
        waiting = [
            pod
            for pod in after.pods
            if pod.podgroup == group.key and pod.status is PodStatus.PENDING
        ]
        ready = [pod for pod in after.pods if pod.podgroup == group.key and pod.status in ALIVE]
        missing = group.min_member - len(ready)
        refused = (
            group.key in outcome.reasons
            and outcome.reasons[group.key].code is ReasonCode.HIERARCHY_INVALID
        )
        if 0 < missing <= len(waiting) and not group.role_minimums and not refused:
            assert not _has_room(waiting[:missing], group.queue, after, outcome), group.key


def _has_room(pods: list[Pod], queue: str, cluster: Cluster, outcome: Outcome) -> bool:
    """Whether these pods fit one after the other on idle nodes and within the queue's limit at
    every level.
    """
    free = {
        node.name: node.allocatable
        - total(requests_by_pod(cluster)[pod.key] for pod in cluster.pods if pod.node == node.name)
        for node in cluster.nodes
    }
    for pod in pods:
        request = pod.request + Resources({"pods": 1})
        node = next((name for name, left in free.items() if fits_in(request, left)), None)
        if node is None:
            return False
        free[node] = free[node] - request
    return _within_limits(total(pod.request for pod in pods), queue, cluster, outcome)


def _within_limits(request: Resources, queue: str, cluster: Cluster, outcome: Outcome) -> bool:
    tree = QueueTree(found.spec for found in cluster.queues)
    levels = [queue, *tree.ancestors(queue)] if ROOT in outcome.queues else [queue]
    known = [outcome.queues[name] for name in levels if name in outcome.queues]
    return all(
        figures.allocated.amount(name) + amount <= figures.real_capability[name]
        for figures in known
        for name, amount in request.items()
        if amount and name in figures.real_capability
    )
