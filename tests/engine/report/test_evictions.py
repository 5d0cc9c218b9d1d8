"""What an eviction was decided by: the rule, both queues where they meet, and the choice."""

from __future__ import annotations

from scheduler.domain.evictions import EvictionRule
from scheduler.domain.workloads import Phase
from scheduler.engine.decisions import Holding
from tests.engine.builders import (
    CAPACITY,
    PROPORTION,
    cluster,
    job,
    node,
    queue,
    run,
)
from tests.engine.eviction.test_whole_gangs import RECLAIM
from tests.engine.scenes import aged, gpus, scene

GPU = "nvidia.com/gpu"


def grounds_of(snapshot, policy):
    return [eviction.grounds for eviction in run(snapshot, policy).evictions]


def test_a_reclaim_names_what_both_queues_had_and_have():
    snapshot = scene(
        job("a", "q1", tasks=2, gpu=4, min=1, on="n1"),
        job("b", "q2", gpu=4),
        queues=(gpus("q1", 4), gpus("q2", 4)),
    )

    (grounds,) = grounds_of(snapshot, RECLAIM)

    assert grounds.rule is EvictionRule.DESERVED
    assert grounds.resource == GPU
    assert grounds.taker == Holding("q2", 0, 4000, 4000)
    assert grounds.loser == Holding("q1", 8000, 4000, 4000)
    assert (grounds.possible, grounds.chosen, grounds.has_tried_all) == (1, 1, True)


def test_the_figures_are_those_of_the_level_where_the_queues_meet():
    """Below two teams, of which one has all that both deserve."""
    queues = (
        gpus("red", 4),
        gpus("q1", 4, parent="red"),
        gpus("q3", 0, parent="red"),
        gpus("blue", 4),
        gpus("q2", 4, parent="blue"),
    )
    snapshot = scene(
        job("a", "q1", tasks=4, gpu=1, on="n1"),
        job("d", "q3", tasks=4, gpu=1, on="n1"),
        job("b", "q2", tasks=4, gpu=1),
        queues=queues,
    )

    grounds = grounds_of(snapshot, RECLAIM)

    assert {item.taker for item in grounds} == {Holding("blue", 0, 4000, 4000)}
    assert {item.loser for item in grounds} == {Holding("red", 8000, 4000, 4000)}


def test_several_victims_of_one_choice_have_the_same_figures():
    snapshot = scene(
        job("a", "q1", tasks=8, gpu=1, min=1, on="n1"),
        job("b", "q2", gpu=4),
        queues=(gpus("q1", 4), gpus("q2", 4)),
    )

    grounds = grounds_of(snapshot, RECLAIM)

    assert len(grounds) == 4
    assert len(set(grounds)) == 1
    assert grounds[0].chosen == 4


def test_many_possible_victims_are_not_tried_set_by_set():
    snapshot = scene(
        *(job(f"a{number}", "q1", gpu=1, on="n1") for number in range(12)),
        job("b", "q2", gpu=2),
        nodes=(("n1", 16, 12),),
        queues=(gpus("q1", 4), gpus("q2", 4)),
    )

    grounds = grounds_of(snapshot, RECLAIM)

    assert [(item.possible, item.chosen, item.has_tried_all) for item in grounds] == [
        (12, 2, False)
    ] * 2


def test_a_guarantee_is_the_rule_where_it_is_taken_back():
    taker = queue("q2", deserved={"gpu": 4}, guarantee={"gpu": 4})
    snapshot = scene(
        job("a", "q1", tasks=8, min=4, gpu=1, on="n1"),
        job("c", "q2", tasks=4, gpu=1),
        queues=(gpus("q1", 4), taker),
    )

    grounds = grounds_of(snapshot, RECLAIM)

    assert {item.rule for item in grounds} == {EvictionRule.GUARANTEE}
    assert {item.taker for item in grounds} == {Holding("q2", 0, 4000, 4000, "guarantee")}


def test_what_is_lost_is_the_time_that_the_pod_ran():
    snapshot = scene(
        aged(job("a", "q1", tasks=2, gpu=4, min=1, on="n1"), 250),
        job("b", "q2", gpu=4),
        queues=(gpus("q1", 4), gpus("q2", 4)),
    )

    (eviction,) = run(snapshot, RECLAIM).evictions

    assert eviction.ran_seconds == 250
    assert eviction.request[GPU] == 4000


def test_a_pod_that_started_nobody_knows_when_loses_nothing():
    snapshot = scene(
        job("a", "q1", tasks=2, gpu=4, min=1, on="n1"),
        job("b", "q2", gpu=4),
        queues=(gpus("q1", 4), gpus("q2", 4)),
    )

    assert [eviction.ran_seconds for eviction in run(snapshot, RECLAIM).evictions] == [0]


def test_reclaim_as_volcano_does_it_names_its_own_rule_and_the_figures():
    jobs = [job("a", "q1", tasks=8, min=0, cpu=1, on="n1"), job("new", "q2", cpu=1)]
    queues = [queue("q1", deserved=4), queue("q2", deserved=4)]

    (grounds,) = grounds_of(cluster(nodes=[node("n1")], queues=queues, jobs=jobs), CAPACITY)

    assert (grounds.rule, grounds.resource) == (EvictionRule.OVERUSED, "cpu")
    assert grounds.taker == Holding("q2", 0, 1000, 4000)
    assert grounds.loser == Holding("q1", 8000, 7000, 4000)
    assert grounds.possible == 0


def test_preempt_names_the_priorities_and_no_queues():
    low = job("low", "q1", tasks=8, min=0, cpu=1, on="n1")
    high = job("high", "q1", cpu=1, priority=7)

    (grounds,) = grounds_of(
        cluster(nodes=[node("n1")], queues=[queue("q1")], jobs=[low, high]), CAPACITY
    )

    assert grounds.as_dict() == {"rule": "Priority", "priority": 7, "victimPriority": 0}


def test_shed_names_its_rule():
    part = job(
        "part",
        "q1",
        tasks=3,
        cpu=1,
        on=["n1", "n1", ""],
        starving_since=0,
        phase=Phase.RUNNING,
    )

    grounds = grounds_of(
        cluster(nodes=[node("n1", cpu=2)], queues=[queue("q1")], jobs=[part], session=9),
        PROPORTION,
    )

    assert [item.as_dict() for item in grounds] == [{"rule": "BrokenGang"}] * 2
