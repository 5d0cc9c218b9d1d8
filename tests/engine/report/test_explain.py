"""Why a podgroup has not started: each code that a session can give, with its figures."""

from __future__ import annotations

import pytest

from scheduler.domain.queues import QueueState
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.workloads import Constraint, Phase, PodStatus
from scheduler.engine import open_session
from scheduler.engine.presets import DEFAULT_POLICY, VOLCANO
from scheduler.engine.report.explain import explain
from tests.engine.builders import (
    BASIC,
    CAPACITY,
    PROPORTION,
    TREE,
    cluster,
    evicted,
    job,
    node,
    phase,
    policy,
    queue,
    reason,
    run,
    with_actions,
)


def explained(policy=DEFAULT_POLICY, name="new", **given):
    return reason(run(cluster(**given), policy), name)


def test_on_hold_repeats_the_words_of_whoever_holds_it():
    found = explained(
        nodes=[node("n1")],
        queues=[queue("default")],
        jobs=[job("new", cpu=1, on_hold="released on Monday")],
    )

    assert (found.code, found.message) == (ReasonCode.ON_HOLD, "On hold: released on Monday.")


def test_paused_scheduling_decides_nothing_and_says_so():
    outcome = run(
        cluster(
            nodes=[node("n1")], queues=[queue("default")], jobs=[job("new", cpu=1)], paused=True
        )
    )

    assert outcome.binds == ()
    assert reason(outcome, "new").code is ReasonCode.SCHEDULING_PAUSED


def watched(*jobs):
    snapshot = cluster(nodes=[node("n1", cpu=8)], queues=[queue("default")], jobs=jobs)
    snapshot.is_watched = True
    return run(snapshot)


def test_a_gang_that_would_start_where_another_scheduler_decides():
    found = reason(watched(job("new", tasks=2, cpu=1)), "new")

    assert (found.code, found.figures) == (ReasonCode.ANOTHER_SCHEDULER_DECIDES, {"pods": 2})
    assert found.message == (
        "Fumarole would start it now. It only watches this cluster: "
        "another scheduler has yet to place its 2 pods."
    )


def test_other_reasons_are_the_same_where_another_scheduler_decides():
    outcome = watched(job("old", on="n1", cpu=8), job("new", cpu=1), job("big", cpu=9))

    assert reason(outcome, "new").code is not ReasonCode.ANOTHER_SCHEDULER_DECIDES
    assert reason(outcome, "big").code is ReasonCode.EXCEEDS_CLUSTER
    assert "default/old" not in outcome.reasons


def test_a_queue_that_does_not_exist():
    assert (
        explained(
            nodes=[node("n1")], queues=[queue("default")], jobs=[job("new", "gone", cpu=1)]
        ).code
        is ReasonCode.QUEUE_NOT_FOUND
    )


def test_a_queue_with_children_runs_no_jobs():
    found = explained(
        nodes=[node("n1")],
        queues=[queue("a"), queue("a1", parent="a")],
        jobs=[job("new", "a", cpu=1)],
    )

    assert (found.code, found.figures) == (
        ReasonCode.QUEUE_NOT_LEAF,
        {"queue": "a", "children": ["a1"]},
    )


@pytest.mark.parametrize("state", [QueueState.CLOSED, QueueState.UNKNOWN])
def test_a_closed_queue(state):
    found = explained(
        nodes=[node("n1")], queues=[queue("default", state=state)], jobs=[job("new", cpu=1)]
    )

    assert (found.code, found.figures["state"]) == (ReasonCode.QUEUE_CLOSED, state.value)


def test_a_suspended_queue_names_the_queue_whose_wish_it_is():
    queues = [
        queue("a", state=QueueState.SUSPENDED, held_by="a"),
        queue("a1", parent="a", state=QueueState.SUSPENDED, held_by="a"),
    ]

    found = explained(nodes=[node("n1")], queues=queues, jobs=[job("new", "a1", cpu=1)])

    assert (found.code, found.figures) == (
        ReasonCode.QUEUE_SUSPENDED,
        {"queue": "a1", "suspendedBy": "a"},
    )
    assert found.message == "Queue a1 is held: a above it is suspended."


def test_a_suspended_queue_is_the_reason_of_volcanos_condition_too():
    outcome = run(
        cluster(
            nodes=[node("n1")],
            queues=[queue("default", state=QueueState.SUSPENDED)],
            jobs=[job("new", cpu=1)],
        )
    )

    assert [(condition.type, condition.reason) for condition in outcome.conditions] == [
        ("Unschedulable", "QueueSuspended")
    ]


def test_an_invalid_hierarchy_names_the_queue_and_the_rule():
    queues = [queue("a", deserved=2), queue("a1", parent="a", deserved=3)]

    found = explained(TREE, nodes=[node("n1")], queues=queues, jobs=[job("new", "a1", cpu=1)])

    assert (found.code, found.figures) == (
        ReasonCode.HIERARCHY_INVALID,
        {"problem": "queue a: its children deserve more than its own cpu"},
    )


def test_not_permitted_repeats_the_words():
    found = explained(
        nodes=[node("n1")],
        queues=[queue("default")],
        jobs=[job("new", cpu=1, not_permitted="ana may not use default")],
    )

    assert (found.code, found.message) == (
        ReasonCode.NOT_PERMITTED,
        "Not permitted: ana may not use default.",
    )


def test_a_gang_with_too_few_pods():
    found = explained(
        nodes=[node("n1")], queues=[queue("default")], jobs=[job("new", tasks=2, min=3, cpu=1)]
    )

    assert (found.code, found.figures["pods"], found.figures["minMember"]) == (
        ReasonCode.NOT_ENOUGH_TASKS,
        2,
        3,
    )


def test_a_role_with_too_few_pods_is_named_in_the_condition():
    work = job("new", tasks=2, min=2, cpu=1, role_minimums={"worker": 2}, pod={"role": "master"})

    outcome = run(cluster(nodes=[node("n1")], queues=[queue("default")], jobs=[work]))

    assert reason(outcome, "new").code is ReasonCode.NOT_ENOUGH_TASKS
    assert outcome.conditions[0].reason == "NotEnoughPodsOfTask"


def test_more_than_a_level_of_the_tree_may_ever_use():
    """A gang of 64 that cannot start because of one resource on one level says exactly that."""
    queues = [queue("team", capability={"gpu": 32}), queue("train", parent="team")]
    nodes = [node(f"n{number}", cpu=64, gpu=8) for number in range(16)]

    found = explained(
        nodes=nodes, queues=queues, jobs=[job("new", "train", tasks=64, cpu=1, gpu=1)]
    )

    assert found.code is ReasonCode.EXCEEDS_CAPABILITY
    assert found.message == "Needs 64 nvidia.com/gpu at once; train may never use more than 32."
    assert {key: found.figures[key] for key in ("resource", "need", "limit", "short")} == {
        "resource": "nvidia.com/gpu",
        "need": 64000,
        "limit": 32000,
        "short": 32000,
    }
    failed = [
        (check.name, check.level, check.resource) for check in found.checks if not check.passed
    ]
    assert failed == [
        ("capability", "train", "nvidia.com/gpu"),
        ("deserved", "train", "nvidia.com/gpu"),
        ("capability", "team", "nvidia.com/gpu"),
    ]


def test_more_than_the_whole_cluster_has():
    found = explained(
        nodes=[node("n1", cpu=8)], queues=[queue("default")], jobs=[job("new", tasks=3, cpu=4)]
    )

    assert (found.code, found.message) == (
        ReasonCode.EXCEEDS_CLUSTER,
        "Needs 12 cpu at once; the whole cluster has 8.",
    )
    assert (found.figures["need"], found.figures["limit"]) == (12000, 8000)


def test_a_pod_larger_than_any_node_names_the_largest_whatever_runs_there():
    nodes = [node("n1", cpu=8), node("n2", cpu=6)]

    found = explained(
        nodes=nodes, queues=[queue("default")], jobs=[job("a", cpu=5, on="n1"), job("new", cpu=10)]
    )

    assert (found.code, found.figures["largest"], found.figures["has"]) == (
        ReasonCode.NO_NODE_FITS,
        "n1",
        {"cpu": 8000},
    )
    assert (
        found.message
        == "A pod needs 10 cpu, more than any suitable node has; the largest is n1 with 8 cpu."
    )


def test_where_all_are_full_the_node_that_is_named_could_hold_the_pod_if_it_were_empty():
    nodes = [node("a-without-gpu", cpu=8), node("b-with-gpu", cpu=8, gpu=4)]

    found = explained(
        nodes=nodes,
        queues=[queue("default")],
        jobs=[job("old", cpu=1, gpu=4, on="b-with-gpu"), job("new", cpu=1, gpu=2)],
    )

    assert {check.level for check in found.checks if check.name == "node"} == {"b-with-gpu"}


def test_a_selector_that_no_node_matches():
    work = job("new", cpu=1, pod={"constraint": Constraint(node_selector=(("zone", "x"),))})

    found = explained(nodes=[node("n1"), node("n2")], queues=[queue("default")], jobs=[work])

    assert (found.code, found.figures) == (ReasonCode.NO_NODE_FITS, {"nodes": 2, "suitable": 0})


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
    assert (
        found.message
        == "Needs 4 nvidia.com/gpu at once; team has 3 free under its capability of 8 (5 in use). 1 short."
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
        TREE, nodes=[node("n1", cpu=8)], queues=[queue("root"), queue("a")], jobs=jobs
    )

    assert found.code is ReasonCode.CLUSTER_BUSY
    assert found.message == (
        "Needs 4 cpu at once; the cluster has 1 free of 8 (5 in use, 2 reserved for jobs admitted before). 3 short."
    )
    assert (found.figures["used"], found.figures["promised"], found.figures["admitted"]) == (
        5000,
        0,
        2000,
    )


def test_waiting_for_quota_when_the_queue_is_at_its_limit():
    jobs = [job("runs", cpu=3, on="n1"), job("new", cpu=2)]

    found = explained(
        CAPACITY, nodes=[node("n1", cpu=8)], queues=[queue("default", capability=4)], jobs=jobs
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


NO_RECLAIM = policy("enqueue allocate backfill", BASIC, ["predicates"])


def test_a_gang_for_which_there_is_room_only_in_part():
    jobs = [job("a", cpu=5, on="n1"), job("new", tasks=4, cpu=1)]

    found = explained(NO_RECLAIM, nodes=[node("n1", cpu=8)], queues=[queue("default")], jobs=jobs)

    assert (found.code, found.figures) == (
        ReasonCode.GANG_INCOMPLETE,
        {"resource": "cpu", "placeable": 3, "minMember": 4},
    )
    assert found.message == "There is room for 3 of the 4 pods that must start together."


def test_room_in_pieces():
    jobs = [job("a", cpu=6, on="n1"), job("b", cpu=6, on="n2"), job("new", cpu=3)]

    found = explained(
        NO_RECLAIM, nodes=[node("n1"), node("n2")], queues=[queue("default")], jobs=jobs
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
    words = "Needs 2 cpu at once; the cluster has 1600m still reservable (1600m free with what overcommit adds, 0 reserved for jobs admitted before). 400m short."
    assert (found.code, found.message) == (ReasonCode.CLUSTER_BUSY, words)
    assert [event.message for event in outcome.events if event.type == "Normal"] == [
        "resource in cluster is overused: overused cpu"
    ]


def test_room_that_is_being_made():
    jobs = [job("a", "q1", tasks=8, min=0, cpu=1, on="n1"), job("new", "q2", tasks=2, cpu=1)]

    outcome = run(
        cluster(
            nodes=[node("n1")], queues=[queue("q1", deserved=4), queue("q2", deserved=4)], jobs=jobs
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


def test_behind_others_in_a_strict_line():
    jobs = [
        job("first", cpu=3, created=1.0),
        job("new", cpu=1, created=2.0),
        job("last", cpu=1, created=3.0),
    ]
    given = {
        "nodes": [node("n1", cpu=2), node("n2", cpu=2)],
        "queues": [queue("default", fifo=True)],
        "jobs": jobs,
    }

    found = explained(NO_RECLAIM, **given)
    assert (found.code, found.figures) == (
        ReasonCode.BEHIND_OTHERS,
        {"position": 2, "queue": "default"},
    )
    assert explained(NO_RECLAIM, "last", **given).figures["position"] == 3


@pytest.mark.parametrize(
    "actions", [("backfill",), ("enqueue",), ("enqueue", "reclaim", "backfill")], ids=" ".join
)
def test_a_job_that_no_action_of_the_policy_starts(actions: tuple[str, ...]):
    found = explained(
        with_actions(NO_RECLAIM, " ".join(actions)),
        nodes=[node("n1")],
        queues=[queue("default")],
        jobs=[job("new", cpu=1)],
    )

    assert (found.code, found.figures) == (ReasonCode.LEFT_OUT_BY_POLICY, {"missing": "allocate"})
    assert (
        found.message
        == f"No session starts it: the policy has no allocate action (its actions are {', '.join(actions)})."
    )


def test_a_job_that_has_to_go_says_so():
    broken = job("old", "q1", tasks=2, cpu=4, on="n1")
    given = {
        "nodes": [node("n1", cpu=8)],
        "queues": [queue("q1", deserved=4), queue("q2", deserved=4)],
    }
    found = explained(CAPACITY, "old", jobs=[broken, job("new", "q2", cpu=4)], **given)

    assert (found.code, found.figures) == (ReasonCode.AWAITING_EVALUATION, {"leaving": 2})
    assert (
        found.message
        == "2 of its pods are still leaving; it is looked at again when they are gone."
    )


def test_every_code_has_its_place_in_the_order_of_precedence():
    """A held job in a closed queue is on hold first of all."""
    given = {"nodes": [node("n1")], "queues": [queue("default", state=QueueState.CLOSED)]}

    assert explained(**given, jobs=[job("new", cpu=1, on_hold="x")]).code is ReasonCode.ON_HOLD
    assert (
        explained(**given, jobs=[job("new", tasks=1, min=9, cpu=1)]).code is ReasonCode.QUEUE_CLOSED
    )


def test_what_was_said_is_not_repeated():
    snapshot = cluster(
        nodes=[node("n1")], queues=[queue("default")], jobs=[job("new", cpu=1, on_hold="x")]
    )
    first = run(snapshot)
    snapshot.groups.said[0] = first.said[0].fingerprint

    second = run(snapshot)

    assert list(first.reasons) == ["default/new"]
    assert (second.reasons, second.said, second.conditions, second.events) == ({}, (), (), ())


def test_what_no_longer_holds_is_taken_back():
    snapshot = cluster(nodes=[node("n1")], queues=[queue("default")], jobs=[job("new", cpu=1)])
    snapshot.groups.said[0] = 7

    outcome = run(snapshot)

    assert [(said.podgroup, said.fingerprint, said.reason) for said in outcome.said] == [
        ("default/new", 0, None)
    ]


def test_volcanos_sentence_for_a_gang_counts_pods_and_nodes():
    jobs = [job("a", cpu=5, on="n1"), job("new", tasks=4, cpu=1)]

    outcome = run(
        cluster(nodes=[node("n1", cpu=8)], queues=[queue("default")], jobs=jobs), NO_RECLAIM
    )

    assert outcome.conditions[0].message == (
        "1/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 1 Unschedulable, 3 Schedulable. "
        "Origin reason is new-3: 0/1 nodes are unavailable: 1 Insufficient cpu."
    )
    assert [condition.reason for condition in outcome.pod_conditions] == ["Schedulable"] * 3 + [
        "Unschedulable"
    ]


def test_a_started_gang_is_scheduled():
    outcome = run(
        cluster(nodes=[node("n1")], queues=[queue("default")], jobs=[job("new", tasks=2, cpu=1)])
    )

    assert [(condition.type, condition.reason) for condition in outcome.conditions] == [
        ("Scheduled", "tasks in gang are ready to be scheduled")
    ]
    assert phase(outcome, "new") is Phase.INQUEUE
    assert outcome.reasons == {}


def test_an_eviction_is_an_event_of_the_pod():
    jobs = [job("a", "q1", tasks=8, min=0, cpu=1, on="n1"), job("new", "q2", cpu=1)]

    outcome = run(
        cluster(
            nodes=[node("n1")], queues=[queue("q1", deserved=4), queue("q2", deserved=4)], jobs=jobs
        ),
        CAPACITY,
    )

    assert [
        (event.reason, event.message, event.name)
        for event in outcome.events
        if event.object == "pod" and event.reason == "Evict"
    ] == [
        (
            "Evict",
            "Reclaim: a queue below its deserved takes from one that has more than its own. "
            "q1 goes from 8 to 7 cpu; it deserves 4.",
            "default/a-7",
        )
    ]


def test_what_was_shed_is_an_event_of_job_queue_and_pod():
    part = job(
        "part", "q1", tasks=3, cpu=1, on=["n1", "n1", ""], starving_since=0, phase=Phase.RUNNING
    )
    outcome = run(
        cluster(nodes=[node("n1", cpu=2)], queues=[queue("q1")], jobs=[part], session=9), PROPORTION
    )

    text = "default/part gave up 2 pods: it is short of its gang of 3, and queue q1 has all that it deserves"
    told = [
        (event.type, event.object, event.name, event.message)
        for event in outcome.events
        if event.reason == "StarvingInOverusedQueue"
    ]
    assert told == [("Warning", "podgroup", "default/part", text), ("Warning", "queue", "q1", text)]
    assert {event.message for event in outcome.events if event.reason == "Evict"} == {
        "Shed: a gang that is short of its minimum gives the rest back."
    }


def test_a_job_that_a_suspended_queue_keeps_out_has_an_event_of_it():
    held = queue("default", state=QueueState.SUSPENDED, held_by="default")
    jobs = [job("new", cpu=1, phase=Phase.PENDING), job("in", cpu=1)]
    outcome = run(cluster(nodes=[node("n1")], queues=[held], jobs=jobs))

    told = [
        (event.type, event.name, event.message)
        for event in outcome.events
        if event.reason == "QueueSuspended"
    ]
    assert told == [("Normal", "default/new", "Queue default is suspended.")]


def test_a_victim_record_has_the_figures_before_and_after():
    jobs = [job("a", "q1", tasks=8, min=0, cpu=1, on="n1"), job("new", "q2", cpu=1)]
    queues = [queue("q1", deserved=4, guarantee=2), queue("q2", deserved=4)]

    (victim,) = run(cluster(nodes=[node("n1")], queues=queues, jobs=jobs), CAPACITY).evictions

    assert (victim.action, victim.beneficiary, victim.beneficiary_queue, victim.queue) == (
        "reclaim",
        "default/new",
        "q2",
        "q1",
    )
    assert (victim.allocated_before["cpu"], victim.allocated_after["cpu"]) == (8000, 7000)
    assert (victim.deserved["cpu"], victim.guarantee["cpu"]) == (4000, 2000)


def test_a_gang_that_has_no_pod_left_to_place_waits_for_its_own_pods_to_leave():
    """It was promised room for its fifth pod, and then lost the other four and was shed."""
    gang = job("a", tasks=5, gpu=1, on=[*["n1"] * 4, ""], phase=Phase.RUNNING)
    snapshot = cluster(nodes=[node("n1", gpu=4)], queues=[queue("default")], jobs=[gang])
    session = open_session(snapshot, VOLCANO)
    found = session.gang(0)
    with session.statement() as statement:
        for pod in range(4):
            statement.evict(found, pod, "shed", None)
        statement.pipeline(found, int(session.pod_classes[4]), [4], [0])
        statement.commit()
    found.phase = Phase.PENDING
    found.failed = "room"
    found.placeable = 4

    assert explain(session, found).code is ReasonCode.AWAITING_EVALUATION
