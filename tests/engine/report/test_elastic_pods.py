"""Pods beyond the minimum of a gang that runs are told why they have no place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.domain.queues import QueueState
from scheduler.domain.workloads import Phase, PodStatus
from scheduler.engine.decisions import Outcome, PodCondition
from tests.engine.builders import BASIC, CAPACITY, cluster, job, node, phase, policy, queue, run

NO_RECLAIM = policy("enqueue allocate backfill", BASIC, ["predicates"])


def told(outcome: Outcome, name: str) -> list[PodCondition]:
    return [item for item in outcome.pod_conditions if item.pod.startswith(f"default/{name}")]


def running(*places: str, cpu: int = 1, queue: str = "q", **group):
    """A gang with a minimum of one; "" for a pod without a place."""
    return job(
        "web",
        queue,
        tasks=len(places),
        min=1,
        on=list(places),
        cpu=cpu,
        phase=Phase.RUNNING,
        **group,
    )


FULL_NODE = [node("n1", cpu=2)]
ROOMY = [node("n1", cpu=64), node("n2", cpu=64)]


def test_a_pod_that_no_node_has_room_for_is_unschedulable():
    outcome = run(cluster(FULL_NODE, [queue("q")], [running("n1", "n1", "", "")]), NO_RECLAIM)

    sentence = "0/1 nodes are unavailable: 1 Insufficient cpu."
    assert [(item.pod, item.reason, item.message) for item in told(outcome, "web")] == [
        ("default/web-2", "Unschedulable", sentence),
        ("default/web-3", "Unschedulable", sentence),
    ]
    events = [(event.object, event.name, event.reason) for event in outcome.events]
    assert events == [
        ("pod", "default/web-2", "FailedScheduling"),
        ("pod", "default/web-3", "FailedScheduling"),
    ]


def test_a_pod_that_its_queue_has_no_quota_for_is_not_unschedulable():
    queues = [queue("q", capability=2)]

    outcome = run(cluster(ROOMY, queues, [running("n1", "n2", "")]), CAPACITY)

    (condition,) = told(outcome, "web")
    assert condition.reason == "WaitingForQuota"
    assert condition.message == (
        "Needs 1 cpu at once; q has 0 free under its capability of 2 (2 in use). 1 short."
    )


@pytest.mark.parametrize(
    ("world", "group", "reason"),
    [
        ({"queues": [queue("q", state=QueueState.CLOSED)]}, {}, "QueueClosed"),
        ({"queues": [queue("q")], "paused": True}, {}, "SchedulingPaused"),
        ({"queues": [queue("q")]}, {"on_hold": "until Monday"}, "OnHold"),
    ],
)
def test_a_pod_that_nobody_tries_to_place_is_told_who_holds_it_back(world, group, reason):
    outcome = run(cluster(ROOMY, jobs=[running("n1", "", **group)], **world), CAPACITY)

    assert [item.reason for item in told(outcome, "web")] == [reason]


def test_the_gang_itself_waits_for_nothing():
    jobs = [running("n1", "n2", "")]

    outcome = run(cluster(ROOMY, [queue("q", capability=2)], jobs), CAPACITY)

    assert phase(outcome, "web") is Phase.RUNNING
    assert not outcome.reasons
    assert not outcome.conditions
    assert [said.reason for said in outcome.said] == [None]
    assert not outcome.queues["q"].lacking


def test_classes_of_pods_that_wait_for_something_else_are_told_so():
    """The queue has no memory left for the one, and no node has cores for the other."""
    large = job("web", "q", tasks=1, min=1, cpu=1, memory=8, on="n1", phase=Phase.RUNNING)
    hungry = job("hungry", "q", tasks=1, cpu=0, memory=4)
    wide = job("wide", "q", tasks=1, cpu=2, memory=0)
    members = [*large.pods, *in_gang("web", hungry), *in_gang("web", wide)]
    gang = type(large)(large.group, tuple(members))
    nodes = [node("n1", cpu=2, memory=64)]
    queues = [queue("q", capability={"cpu": 64, "memory": 8})]

    outcome = run(cluster(nodes, queues, [gang]), CAPACITY)

    assert {item.pod: item.reason for item in outcome.pod_conditions} == {
        "default/hungry-0": "WaitingForQuota",
        "default/wide-0": "Unschedulable",
    }


def in_gang(name: str, work) -> list:
    return [replace(pod, podgroup=f"default/{name}") for pod in work.pods]


def test_nothing_is_told_twice_but_a_pod_that_takes_the_place_of_another_is():
    snapshot = cluster(FULL_NODE, [queue("q")], [running("n1", "n1", "")])
    first = run(snapshot, NO_RECLAIM)
    snapshot.groups.said[0] = first.said[0].fingerprint

    assert run(snapshot, NO_RECLAIM).is_quiet
    snapshot.pods.key[2] = "default/web-9"
    again = run(snapshot, NO_RECLAIM)

    assert [item.pod for item in again.pod_conditions] == ["default/web-9"]


def test_what_was_said_is_taken_back_when_they_have_their_places():
    snapshot = cluster(ROOMY, [queue("q")], [running("n1", "")])
    snapshot.groups.said[0] = 17

    outcome = run(snapshot, NO_RECLAIM)

    assert [(said.fingerprint, said.reason) for said in outcome.said] == [(0, None)]
    assert not outcome.pod_conditions


def test_where_another_scheduler_decides_nothing_is_told():
    snapshot = cluster(FULL_NODE, [queue("q")], [running("n1", "n1", "")])
    snapshot.is_watched = True

    outcome = run(snapshot, NO_RECLAIM)

    assert not outcome.pod_conditions


def test_a_pod_that_a_place_is_kept_for_waits_for_what_is_leaving():
    """The others of its gang are told what stands in their way."""
    leaving = job("old", "q", cpu=1, on="n1", pod={"status": PodStatus.RELEASING})
    gang = running("n1", "", "")
    kept = replace(gang.pods[1], reserved_node="n1", reserved_until=99)
    gang = replace(gang, pods=(gang.pods[0], kept, gang.pods[2]))

    outcome = run(cluster(FULL_NODE, [queue("q")], [leaving, gang]), NO_RECLAIM)

    assert {item.pod: item.message for item in told(outcome, "web")} == {
        "default/web-1": ("pod default/web-1 can possibly be scheduled once resource is released"),
        "default/web-2": "0/1 nodes are unavailable: 1 Insufficient cpu.",
    }
