"""Reasons that pass when others leave room: quota, nodes that are full, room in pieces."""

from __future__ import annotations

from scheduler.domain.pod_rules import PodRules, PodSelector, PodTerm
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.requirements import Requirement
from scheduler.domain.workloads import Constraint, Phase, PodStatus
from scheduler.engine.presets import DEFAULT_POLICY
from tests.engine.builders import (
    BASIC,
    CAPACITY,
    TREE,
    cluster,
    evicted,
    job,
    node,
    policy,
    queue,
    reason,
    run,
)
from tests.engine.report.explaining import NO_RECLAIM, explained


def test_where_all_are_full_the_node_that_is_named_could_hold_the_pod_if_it_were_empty():
    nodes = [node("a-without-gpu", cpu=8), node("b-with-gpu", cpu=8, gpu=4)]

    found = explained(
        nodes=nodes,
        queues=[queue("default")],
        jobs=[job("old", cpu=1, gpu=4, on="b-with-gpu"), job("new", cpu=1, gpu=2)],
    )

    assert {check.level for check in found.checks if check.name == "node"} == {"b-with-gpu"}


def test_waiting_for_quota_at_the_door_names_level_need_and_shortage():
    queues = [
        queue("team", capability={"gpu": 8}),
        queue("a", parent="team"),
        queue("b", parent="team", reclaimable=False),
    ]
    jobs = [
        job("runs", "b", tasks=5, gpu=1, min_resources={"gpu": 5}, on="n1"),
        job("new", "a", tasks=4, gpu=1, phase=Phase.PENDING, min_resources={"gpu": 4}),
    ]

    outcome = run(cluster(nodes=[node("n1", cpu=64, gpu=16)], queues=queues, jobs=jobs))

    found = reason(outcome, "new")
    assert found.code is ReasonCode.WAITING_FOR_QUOTA
    assert found.message == (
        "Needs 4 nvidia.com/gpu at once; team has 3 free under its capability of 8 (5 in "
        "use). 1 short."
    )
    assert (
        found.figures["level"],
        found.figures["need"],
        found.figures["free"],
        found.figures["short"],
    ) == ("team", 4000, 3000, 1000)
    assert "queue resource quota insufficient: insufficient nvidia.com/gpu" in [
        event.message for event in outcome.events
    ]


def test_a_full_cluster_is_told_as_that_and_not_as_a_quota_of_root():
    """What is held, and what jobs admitted before may still take, are told apart."""
    jobs = [
        job("runs", "a", tasks=5, cpu=1, min_resources={"cpu": 5}, on="n1"),
        job(
            "admitted",
            "a",
            tasks=2,
            cpu=1,
            phase=Phase.INQUEUE,
            min_resources={"cpu": 2},
            on_hold="until Monday",
        ),
        job("new", "a", tasks=4, cpu=1, phase=Phase.PENDING, min_resources={"cpu": 4}),
    ]

    found = explained(
        TREE,
        nodes=[node("n1", cpu=8)],
        queues=[queue("root"), queue("a")],
        jobs=jobs,
    )

    assert found.code is ReasonCode.CLUSTER_BUSY
    assert found.message == (
        "Needs 4 cpu at once; the cluster has 1 free of 8 (5 in use, 2 reserved for jobs "
        "admitted before). 3 short."
    )
    assert (found.figures["used"], found.figures["promised"], found.figures["admitted"]) == (
        5000,
        0,
        2000,
    )


def test_waiting_for_quota_when_the_queue_is_at_its_limit():
    jobs = [job("runs", cpu=3, on="n1"), job("new", cpu=2)]

    found = explained(
        CAPACITY,
        nodes=[node("n1", cpu=8)],
        queues=[queue("default", capability=4)],
        jobs=jobs,
    )

    assert (found.code, found.figures["free"], found.figures["short"]) == (
        ReasonCode.WAITING_FOR_QUOTA,
        1000,
        1000,
    )


def test_a_queue_that_has_what_it_deserves_can_not_reclaim():
    jobs = [
        job("a", "q1", tasks=4, cpu=1, on="n1"),
        job("b", "q2", tasks=4, cpu=1, on="n1"),
        job("new", "q1", cpu=1),
    ]
    queues = [queue("q1", deserved=4), queue("q2", deserved=4)]

    found = explained(CAPACITY, nodes=[node("n1", cpu=8)], queues=queues, jobs=jobs)

    assert found.code is ReasonCode.OVER_DESERVED_NOT_RECLAIMABLE
    assert (found.figures["used"], found.figures["limit"]) == (4000, 4000)


def test_of_several_shares_that_are_used_up_the_one_of_the_scarce_resource_is_named():
    jobs = [
        job("a", "q1", tasks=4, cpu=2, gpu=1, on="n1"),
        job("b", "q2", tasks=4, cpu=1, gpu=1, on="n1"),
        job("new", "q1", cpu=2, gpu=1),
    ]
    queues = [queue("q1", deserved={"cpu": 4, "gpu": 4}), queue("q2", deserved={"gpu": 4})]

    found = explained(CAPACITY, nodes=[node("n1", cpu=64, gpu=8)], queues=queues, jobs=jobs)

    assert found.code is ReasonCode.OVER_DESERVED_NOT_RECLAIMABLE
    assert found.message == (
        "Needs 1 nvidia.com/gpu at once and nothing suitable is idle; q1 deserves 4 (4 in use), "
        "so it cannot reclaim from others."
    )


def test_a_gang_for_which_there_is_room_only_in_part():
    jobs = [job("a", cpu=5, on="n1"), job("new", tasks=4, cpu=1)]

    found = explained(NO_RECLAIM, nodes=[node("n1", cpu=8)], queues=[queue("default")], jobs=jobs)

    assert (found.code, found.figures) == (
        ReasonCode.GANG_INCOMPLETE,
        {"resource": "cpu", "placeable": 3, "minMember": 4},
    )
    assert found.message == "There is room for 3 of the 4 pods that must start together."


def test_rules_between_pods_exclude_nodes_that_have_room():
    selector = PodSelector((Requirement("app", "In", ("db",)),))
    rules = PodRules(anti_affinity=(PodTerm(selector, "kubernetes.io/hostname"),))
    pod = {"labels": {"app": "db"}, "constraint": Constraint(rules=rules)}
    jobs = [job("a", cpu=1, on="n1", pod=pod), job("new", tasks=2, cpu=1, pod=pod)]

    found = explained(
        DEFAULT_POLICY,
        nodes=[node("n1"), node("n2")],
        queues=[queue("default")],
        jobs=jobs,
    )

    assert (found.code, found.figures) == (
        ReasonCode.POD_RULES_NOT_MET,
        {"nodes": 2, "excluded": 2, "placeable": 1, "minMember": 2},
    )
    assert found.message == (
        "Places for 1 of the 2 pods, then no node: 2 of 2 already run a pod of app=db."
    )


def test_room_in_pieces():
    jobs = [job("a", cpu=6, on="n1"), job("b", cpu=6, on="n2"), job("new", cpu=3)]

    found = explained(
        NO_RECLAIM,
        nodes=[node("n1"), node("n2")],
        queues=[queue("default")],
        jobs=jobs,
    )

    assert (found.code, found.figures) == (
        ReasonCode.FRAGMENTED,
        {
            "resource": "cpu",
            "freeInAll": 4000,
            "need": 3000,
            "largest": 2000,
            "placeable": 0,
            "minMember": 1,
        },
    )


def test_room_in_pieces_names_what_the_roomiest_node_is_short_of():
    """Most nodes are short of memory. The one that comes closest has enough of it."""
    jobs = [
        job("a", cpu=1, on="n1", memory="60Gi"),
        job("b", cpu=1, on="n2", memory="60Gi"),
        job("c", cpu=6, on="n3"),
        job("new", cpu=4, memory="20Gi"),
    ]

    found = explained(
        NO_RECLAIM,
        nodes=[node("n1"), node("n2"), node("n3")],
        queues=[queue("default")],
        jobs=jobs,
    )

    assert found.code is ReasonCode.FRAGMENTED
    assert found.message == (
        "16 cpu are free in all, but in pieces: a pod needs 4 on one node, and n3 has 2."
    )


def test_room_in_pieces_names_nothing_that_the_pod_does_not_ask_for():
    """The node that comes closest has given away more CPU than it has."""
    jobs = [
        job("a", memory="60Gi", on="n1"),
        job("b", memory="60Gi", on="n2"),
        job("c", cpu=10, gpu=3, on="n3"),
        job("new", memory="20Gi", gpu=2),
    ]

    found = explained(
        NO_RECLAIM,
        nodes=[node("n1", gpu=4), node("n2", gpu=4), node("n3", gpu=4)],
        queues=[queue("default")],
        jobs=jobs,
    )

    assert found.code is ReasonCode.FRAGMENTED
    assert found.message.endswith("a pod needs 2 on one node, and n3 has 1.")


def test_a_busy_cluster():
    jobs = [job("a", cpu=6, on="n1"), job("new", cpu=3)]

    found = explained(NO_RECLAIM, nodes=[node("n1")], queues=[queue("default")], jobs=jobs)

    assert found.code is ReasonCode.CLUSTER_BUSY
    assert found.message == "Needs 3 cpu at once; the cluster has 2 free of 8 (6 in use). 1 short."
    assert (
        found.figures["need"],
        found.figures["limit"],
        found.figures["used"],
        found.figures["short"],
    ) == (3000, 8000, 6000, 1000)


def test_a_cluster_that_takes_in_no_more_jobs():
    jobs = [
        job("a", tasks=8, cpu=1, on="n1", min_resources=8),
        job("new", cpu=2, phase=Phase.PENDING, min_resources=2),
    ]

    outcome = run(
        cluster(nodes=[node("n1")], queues=[queue("default")], jobs=jobs),
        policy("enqueue", BASIC, ["overcommit"]),
    )

    found = reason(outcome, "new")
    words = (
        "Needs 2 cpu at once; the cluster has 1600m still reservable (1600m free with what "
        "overcommit adds, 0 reserved for jobs admitted before). 400m short."
    )
    assert (found.code, found.message) == (ReasonCode.CLUSTER_BUSY, words)
    assert [event.message for event in outcome.events if event.type == "Normal"] == [
        "resource in cluster is overused: overused cpu"
    ]


def test_room_that_is_being_made():
    jobs = [job("a", "q1", tasks=8, min=0, cpu=1, on="n1"), job("new", "q2", tasks=2, cpu=1)]

    outcome = run(
        cluster(
            nodes=[node("n1")],
            queues=[queue("q1", deserved=4), queue("q2", deserved=4)],
            jobs=jobs,
        ),
        CAPACITY,
    )

    assert len(evicted(outcome)) == 2
    found = reason(outcome, "new")
    assert (found.code, found.figures) == (
        ReasonCode.RECLAIM_IN_PROGRESS,
        {"waiting": 2, "victims": 2, "graceLeft": 30},
    )
    assert found.message.endswith("it is kept for 30 more sessions.")


def test_the_last_session_of_a_promise_is_one_more_session():
    leaving = job("old", tasks=2, cpu=4, on="n1", pod={"status": PodStatus.RELEASING})
    promised = job("new", tasks=2, cpu=4, pod={"reserved_node": "n1", "reserved_until": 8})

    outcome = run(
        cluster(
            nodes=[node("n1", cpu=8)],
            queues=[queue("default")],
            jobs=[leaving, promised],
            session=7,
        ),
        CAPACITY,
    )

    assert reason(outcome, "new").message.endswith(
        "for 2 pods to go; it is kept for 1 more session."
    )


def held_by_guarantee(asks):
    """Five of the eight GPUs are free; q2 is guaranteed four of them, and q0 has its due."""
    return explained(
        name="new",
        nodes=[node("n1", cpu=8, gpu=8)],
        queues=[
            queue("root"),
            queue("q0", deserved={"gpu": 3}),
            queue("q1", deserved={"gpu": asks}),
            queue("q2", deserved={"gpu": 4}, guarantee={"gpu": 4}),
        ],
        jobs=[job("other", "q0", tasks=3, gpu=1, on="n1"), job("new", "q1", gpu=asks)],
    )


def test_room_that_other_queues_are_guaranteed():
    found = held_by_guarantee(asks=2)

    assert found.code is ReasonCode.RESERVED_FOR_GUARANTEES
    assert found.message == (
        "Needs 2 nvidia.com/gpu at once; 5 are free, but 4 are kept for queues that are "
        "guaranteed them. 1 short."
    )
    assert found.figures["short"] == 1000


def test_a_gang_that_is_too_large_for_what_is_free_is_told_that_first():
    assert held_by_guarantee(asks=6).code is not ReasonCode.RESERVED_FOR_GUARANTEES
