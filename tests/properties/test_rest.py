"""Under the preset `fumarole`: frozen clusters come to rest, and the set of victims is the
smallest.

The long form tries a thousand clusters.
"""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings

from scheduler.domain.workloads import PodStatus
from scheduler.engine import open_session
from scheduler.engine.actions import reclaim_gangs
from scheduler.engine.eviction import whole_gangs
from scheduler.engine.eviction.gang_claim import Claim
from scheduler.engine.eviction.limits import QueueLimits
from scheduler.engine.presets import FUMAROLE
from scheduler.scenarios.clusters import cluster_of
from scheduler.simulation.runs import run_to_rest
from tests.engine.builders import configured, run, with_actions
from tests.properties.frozen import frozen_clusters

RECLAIM = configured(with_actions(FUMAROLE, "reclaim"), reclaim={"wholeGangs": True})


def in_two_forms(quick, long):
    """The same property over few clusters and, with `--long`, over many."""

    def decorate(check):
        def with_examples(count):
            return settings(max_examples=count, deadline=None)(given(frozen_clusters())(check))

        forms = [
            pytest.param(with_examples(quick), id="quick"),
            pytest.param(with_examples(long), id="long", marks=pytest.mark.long),
        ]

        @pytest.mark.parametrize("property_holds", forms)
        def test_property(property_holds):
            property_holds()

        return test_property

    return decorate


@in_two_forms(40, 1000)
def test_a_cluster_on_which_nothing_changes_comes_to_rest(snapshot):
    rest = run_to_rest(cluster_of(snapshot), FUMAROLE, 14)

    assert rest.after is not None
    assert rest.after <= 10


@in_two_forms(40, 1000)
def test_no_victim_is_superfluous(snapshot):
    """With any one gang or spare member left in place the newcomer would not fit.

    Tried for sessions with one newcomer.
    """
    outcome = run(snapshot, RECLAIM)
    takers = {eviction.beneficiary for eviction in outcome.evictions}
    if len(takers) != 1:
        return
    gone = _units(snapshot, outcome.evictions)
    for kept in gone:
        rows = [row for unit, pods in gone.items() if unit != kept for row in pods]
        taker = next(iter(takers))
        assert not (_fits(snapshot, taker, rows) and _may_start(snapshot, taker, rows))


@in_two_forms(40, 1000)
def test_no_cheaper_set_of_victims_would_do(snapshot):
    """Every set of possible victims is tried by brute force, for each gang that waits."""
    session = open_session(snapshot, RECLAIM)
    reclamation = reclaim_gangs.GangReclamation(session, session.starving_rows())
    for gang in session.starving_gangs():
        claim = Claim(session, gang)
        if not claim.may_take_anything:
            continue
        victims = reclamation.victims_for(gang, claim)
        if not 0 < len(victims) <= whole_gangs.FEW:
            continue
        search = whole_gangs.VictimSearch(session, gang, victims, claim.may_lose)
        plan = search.find()
        assert _cost(plan) == _least_cost(search, claim)


def _cost(plan):
    return None if plan is None else sum(victim.cost for victim in plan.victims)


def _least_cost(search, claim):
    """Of all sets that may go and make room; None if there is room without any, or no such set."""
    if search._layout(()) is not None:
        return None
    costs = []
    for size in range(1, len(search.victims) + 1):
        for chosen in combinations(search.victims, size):
            together = whole_gangs.repeats_a_gang(chosen)
            if not together and claim.may_lose(chosen) and search._layout(chosen) is not None:
                costs.append(sum(victim.cost for victim in chosen))
    return min(costs, default=None)


def _units(snapshot, evictions):
    """The pods of each gang that goes whole, and each spare member alone."""
    gone = {}
    for eviction in evictions:
        group = snapshot.groups.rows[eviction.podgroup]
        running = snapshot.aggregates.group_counts[group, PodStatus.RUNNING]
        lost = sum(other.podgroup == eviction.podgroup for other in evictions)
        is_whole = lost > running - snapshot.groups.min_member[group]
        unit = eviction.podgroup if is_whole else eviction.pod
        gone.setdefault(unit, []).append(eviction.row)
    return gone


def _fits(snapshot, podgroup, gone):
    """Whether all alike pods that the gang needs have room once these are gone."""
    free = (snapshot.nodes.allocatable - snapshot.aggregates.node_used).copy()
    requests = snapshot.classes.request[snapshot.pods.pod_class]
    np.add.at(free, snapshot.pods.node[gone], requests[gone])
    group = snapshot.groups.rows[podgroup]
    is_member = snapshot.pods.group == group
    pods = np.flatnonzero(is_member & (snapshot.pods.status == PodStatus.PENDING))
    request = requests[pods[0]]
    asked = request > 0
    copies = np.maximum(0, free[:, asked] // request[asked]).min(axis=1)
    running = int(snapshot.aggregates.group_counts[group, PodStatus.RUNNING])
    return int(copies.sum()) >= int(snapshot.groups.min_member[group]) - running


def _may_start(snapshot, podgroup, gone):
    """Whether no queue would have more than it may with the gang in it, once these are gone."""
    session = open_session(snapshot, RECLAIM)
    victims = []
    for row in gone:
        victim = session.gang(int(snapshot.pods.group[row]))
        request = session.request[session.pod_classes[row]]
        victims.append(SimpleNamespace(gang=victim, amounts=request))
    gang = session.gang(snapshot.groups.rows[podgroup])
    return QueueLimits(session, gang).allow(victims)
