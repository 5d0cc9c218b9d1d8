"""Each plugin function, argument and setting has a scenario that comes out differently when it is switched off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.domain.queues import QueueState
from scheduler.domain.workloads import Constraint, NodeTerm, Phase, PreferredTerm, Requirement
from scheduler.engine.policy import Flag, PluginConfig, Policy
from tests.engine.builders import (
    BASIC,
    Workload,
    binds,
    cluster,
    configured,
    evicted,
    job,
    node,
    phase,
    policy,
    queue,
    run,
    with_actions,
)

TREE_FLAG = {Flag.HIERARCHY: True}


def switched_off(policy: Policy, plugin: str, flag: Flag) -> Policy:
    tiers = tuple(
        tuple(_off(item, flag) if item.name == plugin else item for item in tier)
        for tier in policy.tiers
    )
    return replace(policy, tiers=tiers)


def _off(config: PluginConfig, flag: Flag) -> PluginConfig:
    return replace(config, flags={**config.flags, flag: False})


def with_priority(work: Workload, pod: int, priority: int) -> Workload:
    pods = tuple(
        replace(item, priority=priority) if number == pod else item
        for number, item in enumerate(work.pods)
    )
    return Workload(work.group, pods)


def one_node(*jobs, cpu=2, queues=("default",), **node_):
    return cluster(
        nodes=[node("n1", cpu=cpu, **node_)],
        queues=[queue(name) if isinstance(name, str) else name for name in queues],
        jobs=jobs,
    )


ALLOCATE = policy("allocate", BASIC)
PREEMPT = policy("preempt", BASIC)
RECLAIM = configured(
    policy("reclaim", ["gang", "conformance", "proportion"]), reclaim={"breakGangs": False}
)
TWO_QUEUES = ("q1", "q2")


def who_starts(outcome):
    return sorted(binds(outcome))


FLAGS = {
    "priority jobOrder": (
        ALLOCATE, "priority", Flag.JOB_ORDER,
        one_node(job("a", cpu=2), job("b", cpu=2, priority=9)), who_starts, ["b-0"], ["a-0"],
    ),
    "priority taskOrder": (
        ALLOCATE, "priority", Flag.TASK_ORDER,
        one_node(with_priority(job("a", tasks=2, min=1, cpu=2), 1, 9)), who_starts, ["a-1"], ["a-0"],
    ),
    "priority jobStarving": (
        policy("preempt", ["priority", PluginConfig("gang", {Flag.JOB_STARVING: False})]), "priority", Flag.JOB_STARVING,
        one_node(job("low", cpu=1, min=0, on="n1"), job("high", tasks=2, min=1, cpu=1, on=["n1", ""], priority=9, phase=Phase.RUNNING)),
        evicted, ["low-0"], [],
    ),
    "priority preemptable": (
        PREEMPT, "priority", Flag.PREEMPTABLE,
        one_node(job("high", tasks=2, min=0, cpu=1, on="n1", priority=9), job("low", cpu=1)), evicted, [], ["high-1"],
    ),
    "gang jobOrder": (
        policy("allocate", ["gang"]), "gang", Flag.JOB_ORDER,
        one_node(job("a", tasks=2, min=1, cpu=1, on=["n1", ""], phase=Phase.RUNNING), job("b", cpu=1)), who_starts, ["b-0"], ["a-1"],
    ),
    "gang jobReady": (ALLOCATE, "gang", Flag.JOB_READY, one_node(job("a", tasks=3, cpu=1)), who_starts, [], ["a-0", "a-1"]),
    "gang jobPipelined": (
        RECLAIM, "gang", Flag.JOB_PIPELINED,
        one_node(
            job("a", "q1", tasks=5, min=0, cpu=1, on="n1"), job("b", "q2", tasks=4, min=0, cpu=1, on="n1"), job("c", "q3", tasks=2, cpu=1),
            cpu=9, queues=(queue("q1", reclaimable=False), "q2", "q3"),
        ),
        evicted, [], ["b-3"],
    ),
    "gang jobStarving": (
        RECLAIM, "gang", Flag.JOB_STARVING,
        one_node(job("a", "q1", tasks=2, min=0, cpu=1, on="n1"), job("b", "q2", cpu=1), queues=TWO_QUEUES), evicted, ["a-1"], [],
    ),
    "gang preemptable": (
        PREEMPT, "gang", Flag.PREEMPTABLE,
        one_node(job("rigid", tasks=2, cpu=1, on="n1"), job("high", cpu=1, priority=9)), evicted, [], ["rigid-1"],
    ),
    "gang reclaimable": (
        RECLAIM, "gang", Flag.RECLAIMABLE,
        one_node(job("rigid", "q1", tasks=2, cpu=1, on="n1"), job("b", "q2", cpu=1), queues=TWO_QUEUES), evicted, [], ["rigid-1"],
    ),
    "conformance preemptable": (
        PREEMPT, "conformance", Flag.PREEMPTABLE,
        one_node(job("a", tasks=2, min=0, cpu=1, on="n1", pod={"critical": True}), job("high", cpu=1, priority=9)), evicted, [], ["a-1"],
    ),
    "conformance reclaimable": (
        RECLAIM, "conformance", Flag.RECLAIMABLE,
        one_node(job("a", "q1", tasks=2, min=0, cpu=1, on="n1", pod={"critical": True}), job("b", "q2", cpu=1), queues=TWO_QUEUES),
        evicted, [], ["a-1"],
    ),
    "overcommit jobEnqueued": (
        policy("enqueue", ["overcommit"]), "overcommit", Flag.JOB_ENQUEUED,
        one_node(job("new", cpu=3, min_resources=3, phase=Phase.PENDING)), lambda outcome: phase(outcome, "new"), Phase.PENDING, Phase.INQUEUE,
    ),
    "drf jobOrder": (
        policy("allocate", ["gang", "drf"]), "drf", Flag.JOB_ORDER,
        one_node(
            job("a", tasks=3, min=1, cpu=1, on=["n1", "n1", ""], phase=Phase.RUNNING),
            job("b", tasks=2, min=1, cpu=1, on=["n1", ""], phase=Phase.RUNNING), cpu=4,
        ),
        who_starts, ["b-1"], ["a-2"],
    ),
    "drf preemptable": (
        policy("preempt", ["gang", "drf"]), "drf", Flag.PREEMPTABLE,
        one_node(job("small", tasks=2, min=0, cpu=1, on="n1"), job("big", cpu=2)), evicted, [], ["small-1", "small-0"],
    ),
    "predicates predicate": (
        policy("allocate", ["predicates"]), "predicates", Flag.PREDICATE,
        cluster(
            nodes=[node("n1"), node("n2", labels={"zone": "b"})], queues=[queue("default")],
            jobs=[job("a", cpu=1, pod={"constraint": Constraint(node_selector=(("zone", "b"),))})],
        ),
        binds, {"a-0": "n2"}, {"a-0": "n1"},
    ),
    "nodeorder nodeOrder": (
        policy("allocate", ["nodeorder"]), "nodeorder", Flag.NODE_ORDER,
        cluster(nodes=[node("n1"), node("n2")], queues=[queue("default")], jobs=[job("x", cpu=4, memory="32Gi", on="n1"), job("a", cpu=1)]),
        binds, {"a-0": "n2"}, {"a-0": "n1"},
    ),
    "binpack nodeOrder": (
        policy("allocate", ["binpack"]), "binpack", Flag.NODE_ORDER,
        cluster(nodes=[node("n1"), node("n2")], queues=[queue("default")], jobs=[job("x", cpu=4, on="n2"), job("a", cpu=1)]),
        binds, {"a-0": "n2"}, {"a-0": "n1"},
    ),
    "scarcity nodeOrder": (
        policy("allocate", ["scarcity"]), "scarcity", Flag.NODE_ORDER,
        cluster(nodes=[node("n1", gpu=4), node("n2")], queues=[queue("default")], jobs=[job("a", cpu=1)]),
        binds, {"a-0": "n2"}, {"a-0": "n1"},
    ),
    "sla jobOrder": (
        policy("allocate", ["sla"]), "sla", Flag.JOB_ORDER,
        one_node(job("a", cpu=2, created=1.0), job("b", cpu=2, created=5.0, sla_waiting_time=10.0)), who_starts, ["b-0"], ["a-0"],
    ),
    "sla jobEnqueued": (
        policy("enqueue", ["sla"], ["overcommit"]), "sla", Flag.JOB_ENQUEUED,
        cluster(
            nodes=[node("n1", cpu=2)], queues=[queue("default")], taken_at=100.0,
            jobs=[job("new", cpu=3, min_resources=3, phase=Phase.PENDING, sla_waiting_time=60.0)],
        ),
        lambda outcome: phase(outcome, "new"), Phase.INQUEUE, Phase.PENDING,
    ),
    "sla jobPipelined": (
        configured(policy("reclaim", ["sla"], ["gang", "proportion"]), reclaim={"breakGangs": False}), "sla", Flag.JOB_PIPELINED,
        cluster(
            nodes=[node("n1", cpu=9)], queues=[queue("q1", reclaimable=False), queue("q2"), queue("q3")], taken_at=100.0,
            jobs=[
                job("a", "q1", tasks=5, min=0, cpu=1, on="n1"), job("b", "q2", tasks=4, min=0, cpu=1, on="n1"),
                job("c", "q3", tasks=2, cpu=1, sla_waiting_time=60.0),
            ],
        ),
        evicted, ["b-3"], [],
    ),
    "proportion queueOrder": (
        policy("allocate", [PluginConfig("proportion", {Flag.ALLOCATABLE: False, Flag.OVERUSED: False})]), "proportion", Flag.QUEUE_ORDER,
        one_node(job("a", "q1", cpu=2), job("b", "q2", cpu=2), queues=("q1", queue("q2", priority=5))), who_starts, ["b-0"], ["a-0"],
    ),
    "proportion overused": (
        policy("allocate", [PluginConfig("proportion", {Flag.ALLOCATABLE: False})]), "proportion", Flag.OVERUSED,
        one_node(job("a", "q1", tasks=3, min=0, cpu=1, on=["n1", "n1", ""]), cpu=3, queues=("q1", queue("q2", guarantee=1))),
        who_starts, [], ["a-2"],
    ),
    "proportion allocatable": (
        policy("allocate", ["proportion"]), "proportion", Flag.ALLOCATABLE,
        one_node(job("a", "q1", cpu=2), job("b", "q2", cpu=2), queues=TWO_QUEUES), who_starts, [], ["a-0"],
    ),
    "proportion preemptive": (
        RECLAIM, "proportion", Flag.PREEMPTIVE,
        one_node(job("a", "q1", tasks=3, min=0, cpu=1, on="n1"), job("b", "q2", cpu=2), cpu=3, queues=TWO_QUEUES),
        evicted, [], ["a-2", "a-1"],
    ),
    "proportion jobEnqueued": (
        policy("enqueue", ["proportion"]), "proportion", Flag.JOB_ENQUEUED,
        one_node(job("new", cpu=3, min_resources=3, phase=Phase.PENDING), cpu=8, queues=(queue("default", capability=2),)),
        lambda outcome: phase(outcome, "new"), Phase.PENDING, Phase.INQUEUE,
    ),
    "capacity queueOrder": (
        policy("allocate", ["capacity"]), "capacity", Flag.QUEUE_ORDER,
        one_node(job("a", "q1", cpu=2), job("b", "q2", cpu=2), queues=("q1", queue("q2", deserved=2))), who_starts, ["b-0"], ["a-0"],
    ),
    "capacity allocatable": (
        policy("allocate", ["capacity"]), "capacity", Flag.ALLOCATABLE,
        one_node(job("a", cpu=2), queues=(queue("default", capability=1),)), who_starts, [], ["a-0"],
    ),
    "capacity preemptive": (
        policy("reclaim", ["gang", "capacity"]), "capacity", Flag.PREEMPTIVE,
        one_node(job("a", "q1", tasks=2, min=0, cpu=1, on="n1"), job("b", "q2", cpu=1), queues=TWO_QUEUES), evicted, [], ["a-1"],
    ),
    "capacity reclaimable": (
        policy("reclaim", ["gang", "capacity"]), "capacity", Flag.RECLAIMABLE,
        one_node(job("a", "q1", tasks=2, min=0, cpu=1, on="n1"), job("b", "q2", cpu=1), queues=(queue("q1", deserved=2), queue("q2", deserved=1))),
        evicted, [], ["a-1"],
    ),
    "capacity jobEnqueued": (
        policy("enqueue", ["capacity"]), "capacity", Flag.JOB_ENQUEUED,
        one_node(job("new", cpu=3, min_resources=3, phase=Phase.PENDING), cpu=8, queues=(queue("default", capability=2),)),
        lambda outcome: phase(outcome, "new"), Phase.PENDING, Phase.INQUEUE,
    ),
    "capacity hierarchy": (
        policy("allocate", [PluginConfig("capacity", TREE_FLAG)]), "capacity", Flag.HIERARCHY,
        one_node(job("a", "child", cpu=2), queues=(queue("team", capability=1), queue("child", parent="team"))), who_starts, [], ["a-0"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_changes_the_outcome(name):
    policy_, plugin, flag, snapshot, observe, on, off = FLAGS[name]

    assert observe(run(snapshot, policy_)) == on
    assert observe(run(snapshot, switched_off(policy_, plugin, flag))) == off


def test_proportion_reclaimable_protects_a_queue_within_its_share():
    """q1 has what it deserves; without proportion's word gang alone would let its surplus go."""
    snapshot = one_node(
        job("a", "q1", tasks=2, min=0, cpu=1, on="n1"), job("b", "q2", tasks=2, min=0, cpu=1, on="n1"), job("c", "q3", cpu=1),
        cpu=4, queues=("q1", queue("q2", reclaimable=False), queue("q3", guarantee=1)),
    )  # fmt: skip
    free_to_ask = configured(
        policy("reclaim", ["gang", PluginConfig("proportion", {Flag.PREEMPTIVE: False})]),
        reclaim={"strictDeserved": True},
    )

    assert evicted(run(snapshot, free_to_ask)) == []
    assert evicted(run(snapshot, switched_off(free_to_ask, "proportion", Flag.RECLAIMABLE))) == [
        "a-1"
    ]


def test_a_plugin_function_that_is_not_named_is_off_where_the_file_says_so():
    snapshot = one_node(job("a", tasks=3, cpu=1))
    named = replace(
        policy("allocate", [PluginConfig("gang", {Flag.JOB_READY: True})]), unlisted_flags=False
    )

    assert binds(run(snapshot, named)) == {}
    assert (
        len(binds(run(snapshot, replace(policy("allocate", ["gang"]), unlisted_flags=False)))) == 2
    )


PREFERS_N2 = Constraint(
    preferred=(PreferredTerm(1, NodeTerm((Requirement("zone", "In", ("b",)),))),)
)

NODE_ARGUMENTS = {
    "leastrequested.weight": ({"balancedresource.weight": 0}, {"leastrequested.weight": 0}, {"x": "n1"}, {}, "n2", "n1"),
    "mostrequested.weight": (
        {"leastrequested.weight": 0, "balancedresource.weight": 0, "mostrequested.weight": 1},
        {"mostrequested.weight": 0}, {"x": "n2"}, {}, "n2", "n1",
    ),
    "balancedresource.weight": ({"leastrequested.weight": 0}, {"balancedresource.weight": 0}, {"m": "n2"}, {}, "n2", "n1"),
    "nodeaffinity.weight": ({"leastrequested.weight": 0}, {"nodeaffinity.weight": 0}, {}, {"constraint": PREFERS_N2}, "n2", "n1"),
    "tainttoleration.weight": ({"leastrequested.weight": 0}, {"tainttoleration.weight": 0}, {"taint": "n1"}, {}, "n2", "n1"),
}  # fmt: skip


@pytest.mark.parametrize("name", NODE_ARGUMENTS)
def test_an_argument_of_nodeorder_moves_the_pod(name):
    arguments, off, there, pod, with_it, without_it = NODE_ARGUMENTS[name]
    taints = [("slow", "", "PreferNoSchedule")] if "taint" in there else []
    snapshot = cluster(
        nodes=[node("n1", taints=taints), node("n2", labels={"zone": "b"})],
        queues=[queue("default")],
        jobs=[
            *(job("x", cpu=4, memory="32Gi", on=there[key]) for key in there if key == "x"),
            *(job("m", memory="32Gi", on=there[key]) for key in there if key == "m"),
            job("a", cpu=2, memory="4Gi" if "m" not in there else None, pod=pod),
        ],
    )

    def place(given):
        return binds(run(snapshot, policy("allocate", [PluginConfig("nodeorder", {}, given)])))[
            "a-0"
        ]

    assert (place(arguments), place({**arguments, **off})) == (with_it, without_it)


BINPACK_ARGUMENTS = {
    "binpack.weight": ({}, {"binpack.weight": 0}),
    "binpack.cpu": ({"binpack.memory": 0}, {"binpack.cpu": 0}),
    "binpack.memory": ({"binpack.cpu": 0}, {"binpack.memory": 0}),
    "binpack.resources": (
        {"binpack.cpu": 0, "binpack.memory": 0, "binpack.resources": "nvidia.com/gpu"},
        {"binpack.resources": ""},
    ),
    "binpack.resources.nvidia.com/gpu": (
        {"binpack.cpu": 0, "binpack.memory": 0, "binpack.resources": "nvidia.com/gpu"},
        {"binpack.resources.nvidia.com/gpu": 0},
    ),
}


@pytest.mark.parametrize("name", BINPACK_ARGUMENTS)
def test_an_argument_of_binpack_moves_the_pod(name):
    arguments, off = BINPACK_ARGUMENTS[name]
    snapshot = cluster(
        nodes=[node("n1", gpu=4), node("n2", gpu=4)],
        queues=[queue("default")],
        jobs=[job("x", cpu=4, memory="8Gi", gpu=1, on="n2"), job("a", cpu=1, memory="1Gi", gpu=1)],
    )

    def place(given):
        return binds(run(snapshot, policy("allocate", [PluginConfig("binpack", {}, given)])))["a-0"]

    assert (place(arguments), place({**arguments, **off})) == ("n2", "n1")


@pytest.mark.parametrize(("weight", "place"), [(10, "n2"), (0, "n1")])
def test_the_weight_of_scarcity_moves_the_pod(weight, place):
    """Of two nodes with GPUs the fuller one is filled up, against what binpack alone would say of their cores."""
    snapshot = cluster(
        nodes=[node("n1", cpu=4, gpu=8), node("n2", cpu=64, gpu=4)],
        queues=[queue("default")],
        jobs=[job("a", cpu=1, memory="1Gi", gpu=1)],
    )
    plugins = ["binpack", PluginConfig("scarcity", {}, {"scarcity.weight": weight})]

    assert binds(run(snapshot, policy("allocate", plugins))) == {"a-0": place}


@pytest.mark.parametrize(
    ("admission", "expected"), [("possible", Phase.INQUEUE), ("room", Phase.PENDING)]
)
def test_a_large_gang_that_waits_keeps_nobody_out_unless_the_policy_says_so(admission, expected):
    snapshot = one_node(
        job("large", cpu=2, min_resources=2, phase=Phase.INQUEUE),
        job("small", cpu=1, min_resources=1, phase=Phase.PENDING),
    )

    outcome = run(
        snapshot, policy("enqueue", [PluginConfig("capacity", {}, {"admission": admission})])
    )

    assert phase(outcome, "small") is expected


def test_a_gang_that_can_never_run_is_not_let_in():
    snapshot = one_node(job("huge", cpu=3, min_resources=3, phase=Phase.PENDING))

    outcome = run(
        snapshot, policy("enqueue", [PluginConfig("capacity", {}, {"admission": "possible"})])
    )

    assert phase(outcome, "huge") is Phase.PENDING


@pytest.mark.parametrize(
    ("factor", "expected"), [(1.5, Phase.INQUEUE), (1.0, Phase.PENDING), (0.5, Phase.PENDING)]
)
def test_the_overcommit_factor_says_how_much_more_is_let_in(factor, expected):
    snapshot = one_node(job("new", cpu=3, min_resources=3, phase=Phase.PENDING))

    outcome = run(
        snapshot, policy("enqueue", [PluginConfig("overcommit", {}, {"overcommit-factor": factor})])
    )

    assert phase(outcome, "new") is expected


@pytest.mark.parametrize(
    ("waiting_time", "expected"),
    [("1m", Phase.INQUEUE), ("1h", Phase.PENDING), (None, Phase.PENDING)],
)
def test_the_waiting_time_of_sla_lets_a_job_in(waiting_time, expected):
    snapshot = cluster(
        nodes=[node("n1", cpu=2)],
        queues=[queue("default")],
        taken_at=100.0,
        jobs=[job("new", cpu=3, min_resources=3, phase=Phase.PENDING, created=10.0)],
    )
    arguments = {"sla-waiting-time": waiting_time} if waiting_time else {}

    outcome = run(snapshot, policy("enqueue", [PluginConfig("sla", {}, arguments)], ["overcommit"]))

    assert phase(outcome, "new") is expected


@pytest.mark.parametrize(
    ("how", "started"), [("subtree", ["b-0"]), ("session", []), ("warn", ["a-0", "b-0"])]
)
def test_a_broken_rule_of_the_tree_stops_what_the_policy_says(how, started):
    queues = [
        queue("root"),
        queue("bad", deserved=1),
        queue("leaf", parent="bad", deserved=2),
        queue("good"),
    ]
    snapshot = cluster(
        nodes=[node("n1")], queues=queues, jobs=[job("a", "leaf", cpu=1), job("b", "good", cpu=1)]
    )

    outcome = run(
        snapshot,
        policy("allocate", [PluginConfig("capacity", TREE_FLAG, {"hierarchyViolation": how})]),
    )

    assert sorted(binds(outcome)) == started
    assert outcome.warnings == ("queue bad: its children deserve more than its own cpu",)
    assert outcome.queues["bad"].warnings == outcome.warnings


@pytest.mark.parametrize(("fill", "victims"), [(True, ["a-1"]), (False, [])])
def test_weights_alone_make_a_tree_that_reclaims(fill, victims):
    queues = [queue("root"), queue("q1", weight=1), queue("q2", weight=1)]
    snapshot = cluster(
        nodes=[node("n1", cpu=2)],
        queues=queues,
        jobs=[job("a", "q1", tasks=2, min=0, cpu=1, on="n1"), job("b", "q2", cpu=1)],
    )
    capacity = PluginConfig("capacity", TREE_FLAG, {"fillByWeight": fill})

    assert evicted(run(snapshot, policy("reclaim", BASIC, [capacity]))) == victims


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


@pytest.mark.parametrize(("beyond", "started"), [(True, 1), (False, 0)])
def test_backfill_goes_beyond_deserved_unless_the_policy_says_otherwise(beyond, started):
    snapshot = one_node(job("a", "q1", cpu=2), job("b", "q2", cpu=2), queues=TWO_QUEUES)

    outcome = run(
        snapshot,
        configured(
            policy("allocate backfill", BASIC, ["proportion"]), backfill={"beyondDeserved": beyond}
        ),
    )

    assert len(outcome.binds) == started


def starving(session, since):
    """A job of three that lost two pods, in a queue that has all it deserves."""
    lost = job(
        "lost", "q1", tasks=3, cpu=1, on=["n1", "", ""], phase=Phase.RUNNING, starving_since=since
    )
    return one_node(
        lost,
        job("other", "q1", tasks=1, cpu=1, on="n1"),
        job("b", "q2", tasks=2, cpu=1, on="n1"),
        cpu=4,
        queues=TWO_QUEUES,
    ), session


@pytest.mark.parametrize(("grace", "victims", "noted"), [(3, [], {0: 5}), (2, ["lost-0"], {0: -1})])
def test_shed_waits_for_its_grace(grace, victims, noted):
    snapshot, session = starving(7, since=5)
    snapshot.session = session

    outcome = run(
        snapshot, configured(policy("shed", BASIC, ["proportion"]), shed={"graceSessions": grace})
    )

    assert evicted(outcome) == victims
    assert outcome.starving == noted


def test_shed_notes_when_it_first_saw_a_job_starving_and_forgets_one_that_recovered():
    snapshot, _ = starving(7, since=-1)
    snapshot.session = 7
    shed = policy("shed", BASIC, ["proportion"])
    assert run(snapshot, shed).starving == {0: 7}

    recovered = one_node(job("lost", tasks=1, cpu=1, on="n1", starving_since=3))

    assert run(recovered, shed).starving == {0: -1}


@pytest.mark.parametrize(("fifo", "started"), [(True, []), (False, ["b-0"])])
def test_a_strict_line_waits_for_its_head(fifo, started):
    snapshot = one_node(
        job("a", cpu=3, created=1.0),
        job("b", cpu=1, created=2.0),
        queues=(queue("default", fifo=fifo),),
    )

    assert sorted(binds(run(snapshot, ALLOCATE))) == started


@pytest.mark.parametrize(("fifo", "admitted"), [(True, Phase.PENDING), (False, Phase.INQUEUE)])
def test_a_strict_line_waits_for_its_head_at_the_door_too(fifo, admitted):
    jobs = [
        job(name, cpu=size, min_resources=size, phase=Phase.PENDING, created=float(size == 1))
        for name, size in (("a", 3), ("b", 1))
    ]
    snapshot = one_node(*jobs, queues=(queue("default", fifo=fifo),))

    assert phase(run(snapshot, policy("enqueue", ["overcommit"])), "b") is admitted


def test_without_enqueue_every_job_is_let_in_by_allocate():
    snapshot = one_node(job("a", cpu=1, phase=Phase.PENDING))

    assert binds(run(snapshot, ALLOCATE)) == {"a-0": "n1"}
    assert binds(run(snapshot, with_actions(ALLOCATE, "backfill"))) == {}
