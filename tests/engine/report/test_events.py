"""Conditions, events and eviction records of a session, in Volcano's words."""

from __future__ import annotations

from scheduler.domain.queues import QueueState
from scheduler.domain.workloads import Phase
from tests.engine.builders import (
    CAPACITY,
    PROPORTION,
    cluster,
    job,
    node,
    phase,
    queue,
    run,
)
from tests.engine.report.explaining import NO_RECLAIM


def test_what_was_said_is_not_repeated():
    snapshot = cluster(
        nodes=[node("n1")],
        queues=[queue("default")],
        jobs=[job("new", cpu=1, on_hold="x")],
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
        "1/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 "
        "minAvailable; Pending: 1 Unschedulable, 3 Schedulable. "
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
            nodes=[node("n1")],
            queues=[queue("q1", deserved=4), queue("q2", deserved=4)],
            jobs=jobs,
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
        "part",
        "q1",
        tasks=3,
        cpu=1,
        on=["n1", "n1", ""],
        starving_since=0,
        phase=Phase.RUNNING,
    )
    outcome = run(
        cluster(nodes=[node("n1", cpu=2)], queues=[queue("q1")], jobs=[part], session=9), PROPORTION
    )

    text = (
        "default/part gave up 2 pods: it is short of its gang of 3, and queue q1 has all that "
        "it deserves"
    )
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
