"""Reclaim: which queue takes back what, and from whom."""

from __future__ import annotations

import pytest

from scheduler.domain.queues import QueueState
from scheduler.domain.workloads import Phase
from scheduler.engine.policy import Flag, PluginConfig
from tests.engine.builders import (
    BASIC,
    CAPACITY,
    PROPORTION,
    TREE,
    cluster,
    configured,
    cores,
    evicted,
    job,
    node,
    phase,
    policy,
    queue,
    run,
    waiting,
    with_actions,
)
from tests.engine.examples import FULL_TREE, guaranteed, tree


def test_e10_a_queue_above_its_share_loses_what_it_can_spare():
    runs = job("e", "q1", tasks=3, min=1, cpu=1, on="n1", pod={"preemptable": False})
    runs = type(runs)(
        runs.group, (*runs.pods[:2], *job("e", "q1", tasks=3, min=1, cpu=1, on="n1").pods[2:])
    )
    snapshot = cluster(
        nodes=[node("n1", cpu=3)],
        queues=[queue("q1"), queue("q2")],
        jobs=[runs, job("new", "q2", cpu=1)],
    )

    outcome = run(snapshot, policy("reclaim", BASIC, ["proportion"]))

    assert cores(outcome) == {"q1": 2, "q2": 1}
    assert outcome.queues_at_open["q1"].share == 1.5
    assert evicted(outcome) == ["e-2"]
    assert waiting(outcome) == {"new-0": "n1"}
    assert cores(outcome, "allocated") == {"q1": 2, "q2": 1}


def single_gpus(asks):
    return [job(f"b{number}", "q2", gpu=1) for number in range(asks)]


def test_e11a_a_queue_takes_back_what_it_deserves_newest_first():
    snapshot = cluster(
        nodes=[node("n1", cpu=100, gpu=10)],
        queues=[
            queue("q1", deserved={"gpu": 4}, guarantee={"gpu": 2}, capability={"gpu": 8}),
            queue("q2", deserved={"gpu": 6}),
        ],
        jobs=[job("a", "q1", tasks=8, min=0, gpu=1, on="n1"), *single_gpus(6)],
    )

    outcome = run(snapshot, CAPACITY)

    assert cores(outcome, "real_capability", resource="nvidia.com/gpu") == {"q1": 8, "q2": 8}
    assert len(outcome.binds) == 2
    assert evicted(outcome) == ["a-7", "a-6", "a-5", "a-4"]
    assert cores(outcome, "allocated", resource="nvidia.com/gpu") == {"q1": 4, "q2": 6}


def test_e11b_a_guarantee_protects_the_last_victim():
    snapshot = cluster(
        nodes=[node("n1", cpu=100, gpu=10)],
        queues=[
            queue("q1", deserved={"gpu": 2}, guarantee={"gpu": 2}, capability={"gpu": 8}),
            queue("q2", deserved={"gpu": 6}),
        ],
        jobs=[job("a", "q1", tasks=2, min=0, gpu=3, on="n1"), *single_gpus(6)],
    )

    outcome = run(snapshot, CAPACITY)

    assert evicted(outcome) == ["a-1"]
    assert cores(outcome, "allocated", resource="nvidia.com/gpu") == {"q1": 3, "q2": 6}


def test_e11c_a_queue_reclaims_up_to_its_deserved_and_no_further():
    snapshot = cluster(
        nodes=[node("n1", cpu=100, gpu=10)],
        queues=[
            queue("q1", deserved={"gpu": 1}, guarantee={"gpu": 2}, capability={"gpu": 8}),
            queue("q2", deserved={"gpu": 6}),
        ],
        jobs=[job("a", "q1", tasks=8, min=0, gpu=1, on="n1"), *single_gpus(8)],
    )

    outcome = run(snapshot, CAPACITY)

    assert cores(outcome, resource="nvidia.com/gpu") == {"q1": 2, "q2": 6}
    assert cores(outcome, "allocated", resource="nvidia.com/gpu") == {"q1": 4, "q2": 6}


def test_e12_victims_come_from_the_sibling_before_the_other_branch():
    outcome = run(tree([*FULL_TREE, job("A", "a1", tasks=2, cpu=1)]), TREE)

    assert evicted(outcome) == ["B-5", "B-4"]
    assert [(victim.level, victim.depth) for victim in outcome.evictions] == [("a", 1), ("a", 1)]


def test_e12b_when_the_sibling_is_down_to_its_deserved_the_other_branch_gives():
    outcome = run(tree([*FULL_TREE, job("A", "a1", tasks=5, cpu=1)]), TREE)

    assert evicted(outcome) == ["B-5", "B-4", "B-3", "C-9", "C-8"]
    assert [victim.level for victim in outcome.evictions] == ["a", "a", "a", "root", "root"]


@pytest.mark.parametrize(("level", "victims"), [(0, ["v-0"]), (1, ["v-0"]), (2, [])])
def test_e14b_the_reclaim_level_asks_ancestors_of_the_victim(level, victims):
    snapshot = cluster(
        nodes=[node("n1", cpu=2)],
        queues=[
            queue("root"),
            queue("ga", deserved=2),
            queue("pa", parent="ga", deserved=2),
            queue("qa", parent="pa", deserved=2),
            queue("gb", deserved=3),
            queue("pb", parent="gb", deserved=1),
            queue("qb", parent="pb", deserved=1),
        ],
        jobs=[job("v", "qb", min=0, cpu=2, on="n1"), job("new", "qa", cpu=2)],
    )
    capacity = PluginConfig("capacity", {Flag.HIERARCHY: True}, {"ancestorReclaimLevel": level})

    outcome = run(snapshot, policy("enqueue allocate reclaim", BASIC, ["predicates", capacity]))

    assert evicted(outcome) == victims


def test_e15_a_guarantee_is_honoured_and_the_gang_it_breaks_gives_up_the_rest():
    outcome = run(guaranteed(), PROPORTION)

    assert cores(outcome, at_open=True) == {"q1": 8, "q6": 2}
    assert [(victim.pod, victim.action) for victim in outcome.evictions] == [
        ("default/j1-2", "reclaim"),
        ("default/j1-1", "reclaim"),
        ("default/j1-0", "shed"),
    ]
    assert cores(outcome, "allocated")["q1"] == 7
    assert phase(outcome, "j1") is Phase.PENDING
    assert waiting(outcome) == {"j6-0": "n1", "j6-1": "n1"}


def test_e15_without_breaking_gangs_the_guarantee_has_to_wait():
    outcome = run(guaranteed(), configured(PROPORTION, reclaim={"breakGangs": False}))

    assert evicted(outcome) == []


@pytest.mark.parametrize(("ready", "minimum", "spare"), [(5, 3, 2), (1, 1, 0)])
def test_e16_a_gang_spares_what_it_has_above_its_minimum(ready, minimum, spare):
    snapshot = cluster(
        nodes=[node("n1", cpu=ready)],
        queues=[queue("q1"), queue("q2", weight=100)],
        jobs=[
            job("v", "q1", tasks=ready, min=minimum, cpu=1, on="n1"),
            *(job(f"new{n}", "q2", cpu=1) for n in range(ready)),
        ],
    )

    outcome = run(
        snapshot, configured(with_actions(PROPORTION, "reclaim"), reclaim={"breakGangs": False})
    )

    assert len(outcome.evictions) == spare


def test_e16b_one_pass_finds_the_victims_that_break_nothing():
    outcome = run(guaranteed(j2_min=4), PROPORTION)

    assert evicted(outcome) == ["j2-6", "j2-5"]


def undershoot(strict):
    snapshot = cluster(
        nodes=[node("n1", cpu=10)],
        queues=[queue("q1", weight=3), queue("q2", weight=2)],
        jobs=[job("a", "q1", tasks=2, min=0, cpu=4, on="n1"), job("b", "q2", cpu=4)],
    )
    return run(
        snapshot,
        configured(policy("reclaim", BASIC, ["proportion"]), reclaim={"strictDeserved": strict}),
    )


def test_e20_a_queue_above_its_deserved_may_fall_below_it_by_one_victim():
    outcome = undershoot(strict=False)

    assert cores(outcome) == {"q1": 6, "q2": 4}
    assert evicted(outcome) == ["a-1"]
    assert cores(outcome, "allocated") == {"q1": 4, "q2": 4}


def test_e20_strictly_no_queue_falls_below_its_deserved():
    assert evicted(undershoot(strict=True)) == []


def test_e21_nobody_is_evicted_unless_the_whole_gang_gets_its_place():
    snapshot = cluster(
        nodes=[node("n1", cpu=9)],
        queues=[queue("q1", reclaimable=False), queue("q2"), queue("q3")],
        jobs=[
            job("a", "q1", tasks=5, min=0, cpu=1, on="n1"),
            job("b", "q2", tasks=4, min=0, cpu=1, on="n1"),
            job("c", "q3", tasks=2, cpu=1),
        ],
    )

    outcome = run(snapshot, policy("reclaim", BASIC, ["proportion"]))

    assert cores(outcome) == {"q1": 3.5, "q2": 3.5, "q3": 2}
    assert evicted(outcome) == []


@pytest.mark.parametrize(("setting", "victims"), [("protect", []), ("allow", ["a-1"])])
def test_pods_of_a_suspended_queue_are_protected_unless_the_policy_says_otherwise(setting, victims):
    queues = [queue("q1", state=QueueState.SUSPENDED), queue("q2")]
    snapshot = cluster(
        nodes=[node("n1", cpu=2)],
        queues=queues,
        jobs=[job("a", "q1", tasks=2, min=0, cpu=1, on="n1"), job("b", "q2", cpu=1)],
    )

    outcome = run(
        snapshot,
        configured(policy("reclaim", BASIC, ["proportion"]), reclaim={"suspendedVictims": setting}),
    )

    assert evicted(outcome) == victims
