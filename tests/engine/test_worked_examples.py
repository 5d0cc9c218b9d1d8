"""Worked examples of the written rules (docs/origins.md, decision 9), one sentence each; numbers are cores unless a test says otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.domain.queues import QueueState
from scheduler.domain.resources import Resources
from scheduler.domain.workloads import Phase, PodStatus
from scheduler.engine import open_session
from scheduler.engine.fair_share import fill, fill_each
from scheduler.engine.policy import Flag, PluginConfig
from scheduler.engine.state.queue_quotas import queue_share
from tests.engine.builders import (
    BASIC,
    CAPACITY,
    PROPORTION,
    TREE,
    amounts,
    binds,
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
)  # fmt: skip

ONLY_SHARES = policy("", BASIC, ["proportion"])
A_LOT = 10**6


def shares(total, *queues):
    """`queues` as (weight, request) with optional guarantee and capability: what each deserves, guarantees of all set aside first."""
    rows = [(*row, *(0, None)[len(row) - 2 :]) for row in queues]
    snapshot = cluster(
        nodes=[node("n1", cpu=total, memory="1Gi")],
        queues=[
            queue(f"q{i}", weight=row[0], guarantee=row[2] or None, capability=row[3])
            for i, row in enumerate(rows)
        ],
        jobs=[job(f"j{i}", f"q{i}", cpu=row[1]) for i, row in enumerate(rows) if row[1]],
    )
    return list(cores(run(snapshot, ONLY_SHARES)).values())


def test_e1_weights_divide_the_cluster():
    assert shares(100, (1, 100), (3, 100)) == [25, 75]


def test_e2_what_one_queue_does_not_ask_for_goes_to_the_others_by_weight():
    assert shares(100, (1, 10), (1, 60), (2, 100)) == [10, 30, 60]


def test_e3_each_resource_is_divided_on_its_own():
    ceilings = np.array([[16, 8], [8, 40]], dtype=np.int64)

    parts = fill_each(np.array([20, 40]), np.array([1, 1]), np.zeros_like(ceilings), ceilings)

    assert parts.tolist() == [[12, 8], [8, 32]]


def test_e4_a_capability_is_a_ceiling_and_the_rest_goes_to_the_others():
    assert shares(100, (1, 100, 0, 20), (1, 100)) == [20, 80]


def test_e5_the_guarantee_of_an_idle_queue_is_kept_from_all_others_together():
    assert shares(10, (1, 0, 4), (1, 100), (1, 100)) == [4, 3, 3]


def test_e6_a_guarantee_above_the_fair_share_is_taken_from_the_others():
    assert shares(10, (1, 10, 6), (1, 10), (1, 10)) == [6, 2, 2]


def test_e6b_a_guarantee_stays_whole_although_less_is_asked_for():
    assert shares(10, (1, 1, 6), (1, 100)) == [6, 4]


def gpus(*queues):
    """(name, weight, guarantee, capability, used): 30 GPUs on one node."""
    return cluster(
        nodes=[node("n1", cpu=100, gpu=30)],
        queues=[
            queue(
                name,
                weight,
                guarantee={"gpu": guarantee} if guarantee else None,
                capability={"gpu": most} if most else None,
            )
            for name, weight, guarantee, most, _ in queues
        ],
        jobs=[
            job(f"j-{name}", name, tasks=used, gpu=1, on="n1" if name != "q4" else None)
            for name, _, _, _, used in queues
        ],
    )


def test_e7_three_queues_share_thirty_gpus_evenly():
    outcome = run(
        gpus(("q1", 1, 5, None, 10), ("q2", 1, None, None, 10), ("q3", 1, None, 10, 10)),
        ONLY_SHARES,
    )

    assert cores(outcome, "real_capability", resource="nvidia.com/gpu") == {
        "q1": 30,
        "q2": 25,
        "q3": 10,
    }
    assert cores(outcome, resource="nvidia.com/gpu") == {"q1": 10, "q2": 10, "q3": 10}


def test_e7_a_fourth_queue_with_a_guarantee_puts_the_others_above_their_share():
    outcome = run(
        gpus(
            ("q1", 1, 5, None, 10),
            ("q2", 1, None, None, 10),
            ("q3", 1, None, 10, 10),
            ("q4", 2, 10, None, 12),
        ),
        ONLY_SHARES,
    )

    assert cores(outcome, "real_capability", resource="nvidia.com/gpu") == {
        "q1": 20,
        "q2": 15,
        "q3": 10,
        "q4": 25,
    }
    assert cores(outcome, resource="nvidia.com/gpu") == {"q1": 6, "q2": 6, "q3": 6, "q4": 12}
    assert [outcome.queues[name].overused for name in ("q1", "q2", "q3", "q4")] == [
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
@pytest.mark.parametrize(
    ("request_", "starts"),
    [({"cpu": 1}, True), ({"cpu": 1, "memory": "1Gi"}, False)],
    ids=["cpu only", "cpu and memory"],
)
def test_e8_only_the_resources_that_a_pod_asks_for_are_looked_at(plugin, request_, starts):
    snapshot = cluster(
        nodes=[node("n1", cpu=2, memory="2Gi"), node("n2", cpu=2, memory="2Gi")],
        queues=[queue("q1", capability={"cpu": 2, "memory": "2Gi"})],
        jobs=[
            job(
                "runs",
                "q1",
                cpu=1,
                memory="2Gi",
                min_resources={"cpu": 1, "memory": "2Gi"},
                on="n1",
            ),
            job("new", "q1", phase=Phase.PENDING, min_resources=request_, **request_),
        ],
    )

    outcome = run(snapshot, policy("enqueue allocate", BASIC, ["predicates", plugin]))

    assert list(binds(outcome)) == (["new-0"] if starts else [])
    assert phase(outcome, "new") is (Phase.INQUEUE if starts else Phase.PENDING)


def two_core_tasks(**queues):
    return cluster(
        nodes=[node("n1", cpu=2), node("n2", cpu=2)],
        queues=[queue(name, priority=priority) for name, priority in queues.items()],
        jobs=[job(f"j{name}", name, cpu=2) for name in queues],
    )


def test_e9_idle_room_that_no_share_is_large_enough_for_is_backfilled_and_marked_as_borrowed():
    outcome = run(
        two_core_tasks(q1=0, q2=0, q3=0),
        policy("allocate backfill", BASIC, ["predicates", "proportion"]),
    )

    assert cores(outcome, at_open=True) == {
        "q1": 1.334,
        "q2": 1.333,
        "q3": 1.333,
    }  # the thousandth left over goes to the first
    assert binds(outcome) == {"jq1-0": "n1", "jq2-0": "n2"}
    assert all(bind.borrowed for bind in outcome.binds)


def test_e9_without_backfill_the_cluster_stays_idle():
    outcome = run(
        two_core_tasks(q1=0, q2=0, q3=0), policy("allocate", BASIC, ["predicates", "proportion"])
    )

    assert binds(outcome) == {}


def test_e9_the_queue_of_the_highest_priority_is_served_first():
    snapshot = cluster(
        nodes=[node("n1", cpu=2)],
        queues=[
            queue(name, priority=priority) for name, priority in (("q1", 5), ("q2", 1), ("q3", 10))
        ],
        jobs=[job(f"j{name}", name, cpu=2) for name in ("q1", "q2", "q3")],
    )

    outcome = run(
        snapshot, policy("allocate", BASIC, [PluginConfig("proportion", {Flag.ALLOCATABLE: False})])
    )

    assert binds(outcome) == {"jq3-0": "n1"}


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


def tree(jobs, a1=0):
    return cluster(
        nodes=[node("n1", cpu=16)],
        queues=[
            queue("root"),
            queue("a", deserved=8, guarantee=4),
            queue("a1", parent="a", deserved=5, guarantee=2),
            queue("a2", parent="a", deserved=3),
            queue("b", deserved=8),
            queue("b1", parent="b", deserved=8),
        ],
        jobs=jobs,
    )


FULL_TREE = (
    job("B", "a2", tasks=6, min=0, cpu=1, on="n1"),
    job("C", "b1", tasks=10, min=0, cpu=1, on="n1"),
)


def test_e12_root_is_the_cluster_so_that_guarantees_hold_at_the_first_level():
    outcome = run(tree(FULL_TREE), with_actions(TREE, "enqueue"))

    assert cores(outcome, "real_capability") == {
        "root": 16,
        "a": 16,
        "b": 12,
        "a1": 16,
        "a2": 14,
        "b1": 12,
    }
    assert {name: figures.share for name, figures in outcome.queues.items() if name != "root"} == {
        "a": 0.75, "b": 1.25, "a1": 0, "a2": 2.0, "b1": 1.25,
    }  # fmt: skip


def test_e12_victims_come_from_the_sibling_before_the_other_branch():
    outcome = run(tree([*FULL_TREE, job("A", "a1", tasks=2, cpu=1)]), TREE)

    assert evicted(outcome) == ["B-5", "B-4"]
    assert [(victim.level, victim.depth) for victim in outcome.evictions] == [("a", 1), ("a", 1)]


def test_e12b_when_the_sibling_is_down_to_its_deserved_the_other_branch_gives():
    outcome = run(tree([*FULL_TREE, job("A", "a1", tasks=5, cpu=1)]), TREE)

    assert evicted(outcome) == ["B-5", "B-4", "B-3", "C-9", "C-8"]
    assert [victim.level for victim in outcome.evictions] == ["a", "a", "a", "root", "root"]


def test_e12c_branches_are_compared_before_their_leaves():
    jobs = [
        job(f"r{name}", name, tasks=used, min=0, cpu=1, on="n1")
        for name, used in (("a1", 1), ("a2", 3), ("b1", 5))
    ]
    session = open_session(tree([*jobs]), TREE)
    from scheduler.engine.ordering import in_queue_order

    order = in_queue_order(session, [session.queue_tree.rows[name] for name in ("b1", "a2", "a1")])

    assert [session.queue_tree.names[row] for row in order] == ["a1", "a2", "b1"]


def test_e13_a_parents_capability_admits_only_one_of_two_children():
    need = {"cpu": 2, "memory": "4Gi"}
    snapshot = cluster(
        nodes=[node("n1", cpu=8)],
        queues=[
            queue("root"),
            queue("q6", capability=need),
            queue("q61", parent="q6"),
            queue("q62", parent="q6"),
        ],
        jobs=[
            job(f"j{name}", name, phase=Phase.PENDING, min_resources=need, **need)
            for name in ("q61", "q62")
        ],
    )

    outcome = run(snapshot, with_actions(TREE, "enqueue"))

    assert (phase(outcome, "jq61"), phase(outcome, "jq62")) == (Phase.INQUEUE, Phase.PENDING)


def test_e14_no_pod_takes_an_ancestor_past_its_capability():
    snapshot = cluster(
        nodes=[node("n1", cpu=8)],
        queues=[
            queue("root"),
            queue("q3", capability=4),
            *(queue(f"q3{n}", parent="q3", capability=4) for n in (1, 2, 3)),
        ],
        jobs=[
            job("j1", "q31", cpu=2, on="n1"),
            job("j2", "q32", cpu=2, on="n1"),
            job("j3", "q33", cpu=3),
        ],
    )

    outcome = run(snapshot, with_actions(TREE, "enqueue allocate"))

    assert binds(outcome) == {}


@pytest.mark.parametrize(("level", "victims"), [(0, ["v-0"]), (1, ["v-0"]), (2, [])])
def test_e14b_the_reclaim_level_asks_ancestors_of_the_victim(level, victims):
    snapshot = cluster(
        nodes=[node("n1", cpu=2)],
        queues=[
            queue("root"), queue("ga", deserved=2), queue("pa", parent="ga", deserved=2), queue("qa", parent="pa", deserved=2),
            queue("gb", deserved=3), queue("pb", parent="gb", deserved=1), queue("qb", parent="pb", deserved=1),
        ],
        jobs=[job("v", "qb", min=0, cpu=2, on="n1"), job("new", "qa", cpu=2)],
    )  # fmt: skip
    capacity = PluginConfig("capacity", {Flag.HIERARCHY: True}, {"ancestorReclaimLevel": level})

    outcome = run(snapshot, policy("enqueue allocate reclaim", BASIC, ["predicates", capacity]))

    assert evicted(outcome) == victims


def guaranteed(guarantee=2, j2_min=7, **new):
    return cluster(
        nodes=[node("n1", cpu=10)],
        queues=[queue("q1"), queue("q6", guarantee=guarantee)],
        jobs=[
            job("j1", "q1", tasks=3, cpu=1, on="n1"),
            job("j2", "q1", tasks=7, min=j2_min, cpu=1, on="n1"),
            job(
                "j6",
                "q6",
                phase=Phase.PENDING,
                tasks=guarantee,
                cpu=1,
                min_resources=guarantee,
                **new,
            ),
        ],
    )


def test_e15_a_guarantee_is_honoured_and_the_gang_it_breaks_gives_up_the_rest():
    outcome = run(guaranteed(), PROPORTION)

    assert cores(outcome, at_open=True) == {"q1": 8, "q6": 2}
    assert [(victim.pod, victim.action) for victim in outcome.evictions] == [
        ("default/j1-2", "reclaim"), ("default/j1-1", "reclaim"), ("default/j1-0", "shed"),
    ]  # fmt: skip
    assert cores(outcome, "allocated")["q1"] == 7
    assert phase(outcome, "j1") is Phase.PENDING
    assert waiting(outcome) == {"j6-0": "n1", "j6-1": "n1"}


def test_e15_overcommit_lets_a_job_in_that_stays_within_its_guarantee():
    outcome = run(guaranteed(guarantee=3), with_actions(PROPORTION, "enqueue"))

    assert phase(outcome, "j6") is Phase.INQUEUE


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


def test_e17_what_runs_beyond_its_minimum_makes_room_for_others_to_be_let_in():
    snapshot = cluster(
        nodes=[node("n1", cpu=10)],
        queues=[queue("q1")],
        jobs=[
            job("j1", "q1", tasks=8, min=3, cpu=1, min_resources=3, on="n1"),
            job("j2", "q1", phase=Phase.PENDING, cpu=6, min_resources=6),
            job("j3", "q1", phase=Phase.PENDING, cpu=2, min_resources=2),
        ],
    )

    outcome = run(snapshot, policy("enqueue", BASIC, ["proportion"]))

    assert (phase(outcome, "j2"), phase(outcome, "j3")) == (Phase.INQUEUE, Phase.PENDING)


def test_e18_a_gang_that_does_not_fit_leaves_its_room_to_the_next_job():
    snapshot = cluster(
        nodes=[node("n1", cpu=10)],
        queues=[queue("default")],
        jobs=[job("a", tasks=3, cpu=2), job("b", tasks=3, cpu=2), job("c", tasks=4, min=1, cpu=2)],
    )

    outcome = run(snapshot, policy("allocate", BASIC, ["predicates"]))

    assert sorted(binds(outcome)) == ["a-0", "a-1", "a-2", "c-0", "c-1"]


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        (PluginConfig("binpack"), [56.25, 18.75]),
        (
            PluginConfig(
                "nodeorder", {}, {"balancedresource.weight": 0, "tainttoleration.weight": 0}
            ),
            [43.75, 81.25],
        ),
    ],
    ids=["binpack", "least requested"],
)
def test_e19_scores(plugin, expected):
    """Least requested counts in whole points, as Volcano does: the worked figures are cut."""
    snapshot = cluster(
        nodes=[node("n1", cpu=8, memory="32Gi"), node("n2", cpu=8, memory="32Gi")],
        queues=[queue("default")],
        jobs=[job("runs", cpu=4, memory="8Gi", on="n1"), job("new", cpu=2, memory="4Gi")],
    )
    session = open_session(snapshot, policy("allocate", [plugin]))

    scores = session.node_scores(1).by_node.tolist()

    whole = plugin.name == "nodeorder"
    assert scores == [int(score) if whole else score for score in expected]


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


@pytest.mark.parametrize(
    ("deserved", "allocated", "share"),
    [
        ({}, {}, 1),
        ((2, 2), (1, 1), 0.5),
        ((2, 2), (3, 2), 1.5),
        ((2, 4), (1, 3), 0.75),
        ((0, 0), (1, 1), 1),
    ],
)
def test_e22_the_share_of_a_queue(deserved, allocated, share):
    def pair(values):
        return amounts(*values) if values else Resources()

    assert queue_share(pair(allocated), pair(deserved)) == share


def test_e23_pods_that_are_binding_are_not_counted_twice():
    snapshot = cluster(
        nodes=[node("n1", cpu=8)],
        queues=[queue("q1", capability=4)],
        jobs=[
            job(
                "a",
                "q1",
                tasks=3,
                cpu=1,
                min_resources=3,
                on="n1",
                phase=Phase.INQUEUE,
                pod={"status": PodStatus.BINDING},
            ),
            job("b", "q1", phase=Phase.PENDING, cpu=1, min_resources=1),
        ],
    )

    outcome = run(snapshot, policy("enqueue", BASIC, ["capacity"]))

    assert phase(outcome, "b") is Phase.INQUEUE


def test_floors_that_exceed_the_total_are_given_as_they_are():
    """When nodes are lost, guarantees alone may exceed what is left: each queue deserves just its guarantee."""
    assert fill(5, np.array([1, 1]), np.array([4, 3]), np.array([10, 10])).tolist() == [4, 3]


@pytest.mark.parametrize("state", [QueueState.CLOSING, QueueState.OPEN])
def test_a_closing_queue_schedules_like_an_open_one(state):
    snapshot = cluster(
        nodes=[node("n1")], queues=[queue("default", state=state)], jobs=[job("a", cpu=1)]
    )

    assert binds(run(snapshot)) == {"a-0": "n1"}
