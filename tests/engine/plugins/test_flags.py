"""Each function of a plugin has a scenario that comes out differently when it is switched off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.domain.workloads import Constraint, Phase
from scheduler.engine.policy import Flag, PluginConfig, Policy
from tests.engine.builders import (
    ALLOCATE,
    BASIC,
    TWO_QUEUES,
    Workload,
    binds,
    cluster,
    configured,
    evicted,
    job,
    node,
    one_node,
    phase,
    policy,
    queue,
    run,
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


PREEMPT = policy("preempt", BASIC)

RECLAIM = configured(
    policy("reclaim", ["gang", "conformance", "proportion"]), reclaim={"breakGangs": False}
)


def who_starts(outcome):
    return sorted(binds(outcome))


FLAGS = {
    "priority jobOrder": (
        ALLOCATE,
        "priority",
        Flag.JOB_ORDER,
        one_node(job("a", cpu=2), job("b", cpu=2, priority=9)),
        who_starts,
        ["b-0"],
        ["a-0"],
    ),
    "priority taskOrder": (
        ALLOCATE,
        "priority",
        Flag.TASK_ORDER,
        one_node(with_priority(job("a", tasks=2, min=1, cpu=2), 1, 9)),
        who_starts,
        ["a-1"],
        ["a-0"],
    ),
    "priority jobStarving": (
        policy("preempt", ["priority", PluginConfig("gang", {Flag.JOB_STARVING: False})]),
        "priority",
        Flag.JOB_STARVING,
        one_node(
            job("low", cpu=1, min=0, on="n1"),
            job("high", tasks=2, min=1, cpu=1, on=["n1", ""], priority=9, phase=Phase.RUNNING),
        ),
        evicted,
        ["low-0"],
        [],
    ),
    "priority preemptable": (
        PREEMPT,
        "priority",
        Flag.PREEMPTABLE,
        one_node(job("high", tasks=2, min=0, cpu=1, on="n1", priority=9), job("low", cpu=1)),
        evicted,
        [],
        ["high-1"],
    ),
    "gang jobOrder": (
        policy("allocate", ["gang"]),
        "gang",
        Flag.JOB_ORDER,
        one_node(
            job("a", tasks=2, min=1, cpu=1, on=["n1", ""], phase=Phase.RUNNING), job("b", cpu=1)
        ),
        who_starts,
        ["b-0"],
        ["a-1"],
    ),
    "gang jobReady": (
        ALLOCATE,
        "gang",
        Flag.JOB_READY,
        one_node(job("a", tasks=3, cpu=1)),
        who_starts,
        [],
        ["a-0", "a-1"],
    ),
    "gang jobPipelined": (
        RECLAIM,
        "gang",
        Flag.JOB_PIPELINED,
        one_node(
            job("a", "q1", tasks=5, min=0, cpu=1, on="n1"),
            job("b", "q2", tasks=4, min=0, cpu=1, on="n1"),
            job("c", "q3", tasks=2, cpu=1),
            cpu=9,
            queues=(queue("q1", reclaimable=False), "q2", "q3"),
        ),
        evicted,
        [],
        ["b-3"],
    ),
    "gang jobStarving": (
        RECLAIM,
        "gang",
        Flag.JOB_STARVING,
        one_node(
            job("a", "q1", tasks=2, min=0, cpu=1, on="n1"),
            job("b", "q2", cpu=1),
            queues=TWO_QUEUES,
        ),
        evicted,
        ["a-1"],
        [],
    ),
    "gang preemptable": (
        PREEMPT,
        "gang",
        Flag.PREEMPTABLE,
        one_node(job("rigid", tasks=2, cpu=1, on="n1"), job("high", cpu=1, priority=9)),
        evicted,
        [],
        ["rigid-1"],
    ),
    "gang reclaimable": (
        RECLAIM,
        "gang",
        Flag.RECLAIMABLE,
        one_node(
            job("rigid", "q1", tasks=2, cpu=1, on="n1"),
            job("b", "q2", cpu=1),
            queues=TWO_QUEUES,
        ),
        evicted,
        [],
        ["rigid-1"],
    ),
    "conformance preemptable": (
        PREEMPT,
        "conformance",
        Flag.PREEMPTABLE,
        one_node(
            job("a", tasks=2, min=0, cpu=1, on="n1", pod={"critical": True}),
            job("high", cpu=1, priority=9),
        ),
        evicted,
        [],
        ["a-1"],
    ),
    "conformance reclaimable": (
        RECLAIM,
        "conformance",
        Flag.RECLAIMABLE,
        one_node(
            job("a", "q1", tasks=2, min=0, cpu=1, on="n1", pod={"critical": True}),
            job("b", "q2", cpu=1),
            queues=TWO_QUEUES,
        ),
        evicted,
        [],
        ["a-1"],
    ),
    "overcommit jobEnqueued": (
        policy("enqueue", ["overcommit"]),
        "overcommit",
        Flag.JOB_ENQUEUED,
        one_node(job("new", cpu=3, min_resources=3, phase=Phase.PENDING)),
        lambda outcome: phase(outcome, "new"),
        Phase.PENDING,
        Phase.INQUEUE,
    ),
    "drf jobOrder": (
        policy("allocate", ["gang", "drf"]),
        "drf",
        Flag.JOB_ORDER,
        one_node(
            job("a", tasks=3, min=1, cpu=1, on=["n1", "n1", ""], phase=Phase.RUNNING),
            job("b", tasks=2, min=1, cpu=1, on=["n1", ""], phase=Phase.RUNNING),
            cpu=4,
        ),
        who_starts,
        ["b-1"],
        ["a-2"],
    ),
    "drf preemptable": (
        policy("preempt", ["gang", "drf"]),
        "drf",
        Flag.PREEMPTABLE,
        one_node(job("small", tasks=2, min=0, cpu=1, on="n1"), job("big", cpu=2)),
        evicted,
        [],
        ["small-1", "small-0"],
    ),
    "predicates predicate": (
        policy("allocate", ["predicates"]),
        "predicates",
        Flag.PREDICATE,
        cluster(
            nodes=[node("n1"), node("n2", labels={"zone": "b"})],
            queues=[queue("default")],
            jobs=[job("a", cpu=1, pod={"constraint": Constraint(node_selector=(("zone", "b"),))})],
        ),
        binds,
        {"a-0": "n2"},
        {"a-0": "n1"},
    ),
    "nodeorder nodeOrder": (
        policy("allocate", ["nodeorder"]),
        "nodeorder",
        Flag.NODE_ORDER,
        cluster(
            nodes=[node("n1"), node("n2")],
            queues=[queue("default")],
            jobs=[job("x", cpu=4, memory="32Gi", on="n1"), job("a", cpu=1)],
        ),
        binds,
        {"a-0": "n2"},
        {"a-0": "n1"},
    ),
    "binpack nodeOrder": (
        policy("allocate", ["binpack"]),
        "binpack",
        Flag.NODE_ORDER,
        cluster(
            nodes=[node("n1"), node("n2")],
            queues=[queue("default")],
            jobs=[job("x", cpu=4, on="n2"), job("a", cpu=1)],
        ),
        binds,
        {"a-0": "n2"},
        {"a-0": "n1"},
    ),
    "scarcity nodeOrder": (
        policy("allocate", ["scarcity"]),
        "scarcity",
        Flag.NODE_ORDER,
        cluster(
            nodes=[node("n1", gpu=4), node("n2")],
            queues=[queue("default")],
            jobs=[job("a", cpu=1)],
        ),
        binds,
        {"a-0": "n2"},
        {"a-0": "n1"},
    ),
    "sla jobOrder": (
        policy("allocate", ["sla"]),
        "sla",
        Flag.JOB_ORDER,
        one_node(job("a", cpu=2, created=1.0), job("b", cpu=2, created=5.0, sla_waiting_time=10.0)),
        who_starts,
        ["b-0"],
        ["a-0"],
    ),
    "sla jobEnqueued": (
        policy("enqueue", ["sla"], ["overcommit"]),
        "sla",
        Flag.JOB_ENQUEUED,
        cluster(
            nodes=[node("n1", cpu=2)],
            queues=[queue("default")],
            taken_at=100.0,
            jobs=[job("new", cpu=3, min_resources=3, phase=Phase.PENDING, sla_waiting_time=60.0)],
        ),
        lambda outcome: phase(outcome, "new"),
        Phase.INQUEUE,
        Phase.PENDING,
    ),
    "sla jobPipelined": (
        configured(
            policy("reclaim", ["sla"], ["gang", "proportion"]), reclaim={"breakGangs": False}
        ),
        "sla",
        Flag.JOB_PIPELINED,
        cluster(
            nodes=[node("n1", cpu=9)],
            queues=[queue("q1", reclaimable=False), queue("q2"), queue("q3")],
            taken_at=100.0,
            jobs=[
                job("a", "q1", tasks=5, min=0, cpu=1, on="n1"),
                job("b", "q2", tasks=4, min=0, cpu=1, on="n1"),
                job("c", "q3", tasks=2, cpu=1, sla_waiting_time=60.0),
            ],
        ),
        evicted,
        ["b-3"],
        [],
    ),
    "proportion queueOrder": (
        policy(
            "allocate",
            [PluginConfig("proportion", {Flag.ALLOCATABLE: False, Flag.OVERUSED: False})],
        ),
        "proportion",
        Flag.QUEUE_ORDER,
        one_node(
            job("a", "q1", cpu=2),
            job("b", "q2", cpu=2),
            queues=("q1", queue("q2", priority=5)),
        ),
        who_starts,
        ["b-0"],
        ["a-0"],
    ),
    "proportion overused": (
        policy("allocate", [PluginConfig("proportion", {Flag.ALLOCATABLE: False})]),
        "proportion",
        Flag.OVERUSED,
        one_node(
            job("a", "q1", tasks=3, min=0, cpu=1, on=["n1", "n1", ""]),
            cpu=3,
            queues=("q1", queue("q2", guarantee=1)),
        ),
        who_starts,
        [],
        ["a-2"],
    ),
    "proportion allocatable": (
        policy("allocate", ["proportion"]),
        "proportion",
        Flag.ALLOCATABLE,
        one_node(job("a", "q1", cpu=2), job("b", "q2", cpu=2), queues=TWO_QUEUES),
        who_starts,
        [],
        ["a-0"],
    ),
    "proportion preemptive": (
        RECLAIM,
        "proportion",
        Flag.PREEMPTIVE,
        one_node(
            job("a", "q1", tasks=3, min=0, cpu=1, on="n1"),
            job("b", "q2", cpu=2),
            cpu=3,
            queues=TWO_QUEUES,
        ),
        evicted,
        [],
        ["a-2", "a-1"],
    ),
    "proportion jobEnqueued": (
        policy("enqueue", ["proportion"]),
        "proportion",
        Flag.JOB_ENQUEUED,
        one_node(
            job("new", cpu=3, min_resources=3, phase=Phase.PENDING),
            cpu=8,
            queues=(queue("default", capability=2),),
        ),
        lambda outcome: phase(outcome, "new"),
        Phase.PENDING,
        Phase.INQUEUE,
    ),
    "capacity queueOrder": (
        policy("allocate", ["capacity"]),
        "capacity",
        Flag.QUEUE_ORDER,
        one_node(
            job("a", "q1", cpu=2),
            job("b", "q2", cpu=2),
            queues=("q1", queue("q2", deserved=2)),
        ),
        who_starts,
        ["b-0"],
        ["a-0"],
    ),
    "capacity allocatable": (
        policy("allocate", ["capacity"]),
        "capacity",
        Flag.ALLOCATABLE,
        one_node(job("a", cpu=2), queues=(queue("default", capability=1),)),
        who_starts,
        [],
        ["a-0"],
    ),
    "capacity preemptive": (
        policy("reclaim", ["gang", "capacity"]),
        "capacity",
        Flag.PREEMPTIVE,
        one_node(
            job("a", "q1", tasks=2, min=0, cpu=1, on="n1"),
            job("b", "q2", cpu=1),
            queues=TWO_QUEUES,
        ),
        evicted,
        [],
        ["a-1"],
    ),
    "capacity reclaimable": (
        policy("reclaim", ["gang", "capacity"]),
        "capacity",
        Flag.RECLAIMABLE,
        one_node(
            job("a", "q1", tasks=2, min=0, cpu=1, on="n1"),
            job("b", "q2", cpu=1),
            queues=(queue("q1", deserved=2), queue("q2", deserved=1)),
        ),
        evicted,
        [],
        ["a-1"],
    ),
    "capacity jobEnqueued": (
        policy("enqueue", ["capacity"]),
        "capacity",
        Flag.JOB_ENQUEUED,
        one_node(
            job("new", cpu=3, min_resources=3, phase=Phase.PENDING),
            cpu=8,
            queues=(queue("default", capability=2),),
        ),
        lambda outcome: phase(outcome, "new"),
        Phase.PENDING,
        Phase.INQUEUE,
    ),
    "capacity hierarchy": (
        policy("allocate", [PluginConfig("capacity", TREE_FLAG)]),
        "capacity",
        Flag.HIERARCHY,
        one_node(
            job("a", "child", cpu=2),
            queues=(queue("team", capability=1), queue("child", parent="team")),
        ),
        who_starts,
        [],
        ["a-0"],
    ),
}


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_changes_the_outcome(name):
    policy_, plugin, flag, snapshot, observe, on, off = FLAGS[name]

    assert observe(run(snapshot, policy_)) == on
    assert observe(run(snapshot, switched_off(policy_, plugin, flag))) == off


def test_proportion_reclaimable_protects_a_queue_within_its_share():
    """q1 has what it deserves; without proportion's word gang alone would let its surplus go."""
    snapshot = one_node(
        job("a", "q1", tasks=2, min=0, cpu=1, on="n1"),
        job("b", "q2", tasks=2, min=0, cpu=1, on="n1"),
        job("c", "q3", cpu=1),
        cpu=4,
        queues=("q1", queue("q2", reclaimable=False), queue("q3", guarantee=1)),
    )
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
