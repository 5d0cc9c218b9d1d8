"""Gangs that are bound by rules between pods take the room of others: only if the rules then hold.

The rules are checked once more by the plain oracle of `test_pod_rules`.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from scheduler.domain.workloads import PodStatus
from scheduler.engine import run_session
from scheduler.engine.eviction.whole_gangs import VictimSearch
from scheduler.engine.presets import DEFAULT_POLICY, VOLCANO
from scheduler.engine.state import pod_rules
from tests.engine.builders import cluster, job, queue
from tests.engine.state.test_pod_rules import (
    Oracle,
    apart,
    beside,
    host,
    hosts,
    pod,
    random_rules,
    spread,
)


def low(name, on, cpu=8, **given):
    return job(name, "q", tasks=1, cpu=cpu, on=on, pod=pod(**given))


def high(name="high", tasks=1, cpu=8, **given):
    return job(name, "q", tasks=tasks, cpu=cpu, priority=10, pod=pod(**given))


def decided(nodes, jobs, policy=DEFAULT_POLICY):
    """Who goes, and which places are kept."""
    outcome = run_session(cluster(nodes, [queue("q")], jobs), policy)
    victims = sorted(each.pod.partition("/")[2] for each in outcome.evictions)
    places = {each.pod.partition("/")[2]: each.node for each in outcome.reservations}
    return victims, places


def test_a_gang_that_wants_to_be_apart_takes_the_room_of_lower_ones():
    jobs = [low("a", "n0"), low("b", "n1"), high(tasks=2, app="db", **apart())]

    victims, places = decided(hosts("a", "a"), jobs)

    assert victims == ["a-0", "b-0"]
    assert sorted(places.values()) == ["n0", "n1"]


def test_nobody_goes_for_a_gang_that_the_rules_would_keep_out_all_the_same():
    """Room for three on two nodes, but each wants a node of its own."""
    jobs = [low("a", "n0"), low("b", "n1"), high(tasks=3, cpu=2, app="db", **apart())]

    assert decided(hosts("a", "a"), jobs) == ([], {})


def test_somebody_goes_who_is_only_in_the_way_of_the_rules():
    """There is room everywhere. The lower one of the same kind stands in the way on n0."""
    in_the_way = low("a", "n0", cpu=1, app="db")
    other = job("b", "q", cpu=1, on="n1", priority=20, pod=pod(app="db"))

    victims, places = decided(
        hosts("a", "b"), [in_the_way, other, high(app="db", cpu=1, **apart())]
    )

    assert (victims, places) == (["a-0"], {"high-0": "n0"})


def test_somebody_who_keeps_others_away_goes():
    keeper = low("a", "n0", cpu=1, **apart("db"))

    victims, places = decided(hosts("a"), [keeper, high(app="db", cpu=1)])

    assert (victims, places) == (["a-0"], {"high-0": "n0"})


def test_a_spread_holds_after_the_eviction():
    """Zone a has a pod of it already: the victim is in zone b."""
    runs = job("db", "q", cpu=1, on="n0", priority=20, pod=pod(app="db"))
    jobs = [runs, low("a", "n1"), low("b", "n2"), high(app="db", **spread())]

    victims, places = decided(hosts("a", "a", "b"), jobs)

    assert (victims, places) == (["b-0"], {"high-0": "n2"})


def test_nobody_goes_for_a_pod_that_must_run_beside_others():
    """A gang after it might make its company go."""
    company = job("db", "q", cpu=1, on="n1", priority=20, pod=pod(app="db"))
    jobs = [company, low("b", "n1", cpu=7), high(cpu=7, **beside("db"))]

    assert decided(hosts("a", "b"), jobs) == ([], {})


@pytest.mark.parametrize(("tasks", "expected"), [(2, ["n0", "n1"]), (3, [])])
def test_a_queue_takes_back_its_share_where_the_rules_then_hold(tasks, expected):
    """Three want three nodes, and there are two."""
    queues = [queue("lender", deserved={"cpu": 4}), queue("owner", deserved={"cpu": 12})]
    jobs = [job(f"a{number}", "lender", cpu=4, on=f"n{number // 2}") for number in range(4)]
    asked = pod(app="db", **apart())
    jobs.append(job("claim", "owner", tasks=tasks, cpu=4, pod=asked))

    outcome = run_session(cluster(hosts("a", "a"), queues, jobs, taken_at=1e6), DEFAULT_POLICY)

    assert sorted(each.node for each in outcome.reservations) == expected
    assert len(outcome.evictions) == len(expected)


def test_pod_by_pod_nobody_is_evicted_for_a_gang_bound_by_rules():
    """Volcano's way chooses victims one by one, for the room that they leave."""
    jobs = [low("a", "n0"), low("b", "n1"), high(tasks=2, app="db", **apart())]

    assert decided(hosts("a", "a"), jobs, VOLCANO) == ([], {})


def test_too_many_searches_end_without_an_eviction(monkeypatch):
    """Large gangs with many possible victims would hold up the session."""
    jobs = [low("a", "n0"), low("b", "n1"), high(tasks=2, app="db", **apart())]
    monkeypatch.setattr(pod_rules, "MOST_SEARCHES", 3)

    assert decided(hosts("a", "a"), jobs) == ([], {})


def test_alike_gangs_that_the_rules_keep_out_are_looked_at_once(monkeypatch):
    """Each wants three nodes of its own, and there are two."""
    asked = {"tasks": 3, "cpu": 2, "app": "db", **apart()}
    jobs = [low("a", "n0"), low("b", "n1")]
    looked_at = []
    find = VictimSearch.find
    monkeypatch.setattr(VictimSearch, "find", lambda self: looked_at.append(1) or find(self))

    decided(hosts("a", "a"), [*jobs, *(high(f"w{number}", **asked) for number in range(5))])

    assert len(looked_at) == 1


# Random clusters


def random_cluster(seed):
    random = Random(seed)
    nodes = [
        host(f"n{number}", random.choice(["a", "b", ""]), cpu=random.randint(2, 4))
        for number in range(random.randint(2, 5))
    ]
    jobs = []
    for number in range(random.randint(2, 10)):
        place = random.choice(nodes)
        if used_on(jobs, place) < place.allocatable["cpu"] // 1000:
            given = {"app": random.choice("xyz"), **random_rules(random)}
            jobs.append(low(f"r{number}", place.name, cpu=1, **given))
    for number in range(random.randint(1, 2)):
        given = {"app": random.choice("xyz"), **random_rules(random)}
        jobs.append(high(f"w{number}", tasks=random.randint(1, 3), cpu=1, **given))
    return nodes, jobs


def used_on(jobs, place):
    return sum(one.node == place.name for work in jobs for one in work.pods)


def later(jobs, outcome):
    """Those who were evicted are gone, what was bound runs, and places are kept."""
    gone = {each.pod for each in outcome.evictions}
    binds = {each.pod: each.node for each in outcome.binds}
    kept = {each.pod: each for each in outcome.reservations}
    found = []
    for work in jobs:
        pods = []
        for one in work.pods:
            if one.key in gone:
                continue
            if one.key in binds:
                one = replace(one, node=binds[one.key], status=PodStatus.RUNNING)
            elif one.key in kept:
                place = kept[one.key]
                one = replace(one, reserved_node=place.node, reserved_until=place.expires)
            pods.append(one)
        if pods:
            found.append(replace(work, pods=tuple(pods)))
    return found


@pytest.mark.parametrize("seed", range(150))
def test_nobody_is_evicted_in_vain(seed):
    """Whoever got the promise of a place starts when the victims are gone, and the rules hold."""
    nodes, jobs = random_cluster(seed)
    first = run_session(cluster(nodes, [queue("q")], jobs), DEFAULT_POLICY)
    promised = {each.pod for each in first.reservations}

    afterwards = later(jobs, first)
    second = run_session(cluster(nodes, [queue("q")], afterwards), DEFAULT_POLICY)

    assert bool(promised) == bool(first.evictions)
    assert promised <= {bind.pod for bind in second.binds}
    assert_rules_hold(nodes, afterwards, second.binds)


def assert_rules_hold(nodes, jobs, binds):
    """There is an order in which each of them was allowed when it came."""
    oracle = Oracle(nodes)
    pods = {one.key: one for work in jobs for one in work.pods}
    for one in pods.values():
        if one.node:
            oracle.place(one, one.node)
    left = list(binds)
    while left:
        allowed = [bind for bind in left if is_allowed(oracle, pods[bind.pod], bind.node)]
        assert allowed, left
        oracle.place(pods[allowed[0].pod], allowed[0].node)
        left.remove(allowed[0])


def is_allowed(oracle, one, place):
    return oracle.allows(dict(one.labels), one.constraint.rules, place)


def test_the_random_clusters_evict_for_gangs_with_rules():
    """Else the test above would say nothing."""
    evicting = 0
    for seed in range(150):
        nodes, jobs = random_cluster(seed)
        outcome = run_session(cluster(nodes, [queue("q")], jobs), DEFAULT_POLICY)
        ruled = {one.key for work in jobs for one in work.pods if one.constraint.rules}
        evicting += any(each.pod in ruled for each in outcome.reservations)
    assert evicting > 10
