"""How large a gang would start now, and which waiting gangs fit on a node."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.domain.node_fit import Fit, NodeVerdict
from scheduler.domain.resources import Resources
from scheduler.engine import count_started
from scheduler.models import Node, PodGroup, Queue
from scheduler.services.cluster import room
from scheduler.services.cluster.room import (
    LargestGang,
    largest_gangs,
    largest_that,
    waiting_at,
)
from scheduler.services.jobs.submit import submit_job
from scheduler.services.sessions.requests import pause_scheduling
from tests.dashboard.work import person, small_cluster
from tests.worlds import job, manifest, node, run_session

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def largest(queue: str = "", **shape: str) -> LargestGang:
    (found,) = largest_gangs([Resources.parse(shape)], queue, by=person("admin"))
    return found


def starts(name: str, queue: str, pods: int, cpu: str) -> bool:
    """Whether all of it has a place after the next session."""
    gang = job(name, queue, replicas=pods, cpu=cpu).podgroup
    run_session()
    return gang.pods.filter(node__isnull=False).count() == pods


@pytest.mark.parametrize(("queue", "cpu"), [("batch", "1"), ("language", "2"), ("vision", "3")])
def test_a_gang_of_that_size_starts_in_the_next_session(queue: str, cpu: str):
    found = largest(queue, cpu=cpu)

    assert found.pods > 0
    assert starts("exact", queue, found.pods, cpu)


@pytest.mark.parametrize(("queue", "cpu"), [("batch", "1"), ("language", "2"), ("vision", "3")])
def test_one_pod_more_does_not_start(queue: str, cpu: str):
    found = largest(queue, cpu=cpu)

    assert not starts("more", queue, found.pods + 1, cpu)
    assert found.why == PodGroup.objects.get(name="more").reason_message


def test_a_queue_starts_no_more_than_its_limit_lets_it():
    node("n3", cpu="64", memory="32Gi")

    within = largest("vision", cpu="1")

    assert within.pods == 12 - 4  # train-1 has 4 of the 12 CPU that vision may use
    assert largest("batch", cpu="1").pods > within.pods


def test_a_queue_near_its_limit_takes_no_more_queries_and_few_sessions(
    monkeypatch: pytest.MonkeyPatch,
):
    node("n3", cpu="64", memory="32Gi")
    sessions: list[int] = []

    def counted(*asked: Any) -> int:
        sessions.append(1)
        return count_started(*asked)

    monkeypatch.setattr(room, "count_started", counted)
    largest("vision", cpu="1")
    sessions.clear()
    with CaptureQueriesContext(connection) as for_one:
        largest("vision", cpu="1")
    tried = len(sessions)
    with CaptureQueriesContext(connection) as for_four:
        shapes = [Resources.parse({"cpu": size}) for size in ("1", "2", "3", "4")]
        found = largest_gangs(shapes, "vision", by=person("admin"))

    assert [one.pods for one in found] == [8, 4, 2, 2]
    assert len(for_four) == len(for_one)
    assert tried == 4  # 72, as many of 72 as may start, and then 8 and 9: not found by halving


def test_the_cluster_counts_what_waiting_gangs_take_first():
    before = largest(cpu="1").pods

    job("ahead", "batch", replicas=3)

    assert largest(cpu="1").pods == before - 3


def test_a_pod_larger_than_what_any_node_has_free_starts_nowhere():
    job("filler", "batch", replicas=1)
    run_session()

    found = largest("batch", cpu="8")

    assert found.pods == 0
    assert found.why


def test_a_closed_queue_starts_nothing_and_says_so():
    Queue.objects.filter(name="batch").update(state="Closed", wish="Closed")

    found = largest("batch", cpu="1")

    assert found.pods == 0
    assert "closed" in found.why.lower()


def test_nothing_starts_while_scheduling_is_paused():
    pause_scheduling(by=person("admin"))

    assert largest(cpu="1").pods == 0
    assert largest("batch", cpu="1").pods == 0


def test_a_resource_that_nobody_has_is_named():
    assert (
        largest(**{"example.com/laser": "1"}).why == "The cluster has no example.com/laser at all."
    )


def test_the_largest_is_found_whatever_was_guessed():
    for guess in (0, 1, 5, 36, 37, 38, 100):
        for truth in (0, 1, 37, 100):
            found = largest_that(partial(is_within, truth), guess, 100)

            assert (guess, found) == (guess, truth)


def is_within(truth: int, pods: int) -> bool:
    return pods <= truth


# Waiting gangs of a node


def verdict_on(name: str, gang: str) -> NodeVerdict:
    found = waiting_at(name, None)
    assert found is not None
    return next(verdict for row, verdict in found.rows if row.key == f"default/{gang}")


def waits(name: str, cpu: str = "1", **pod: object) -> None:
    """A gang that no session starts: it is larger than the cluster."""
    asked = manifest(name, "batch", replicas=90, cpu=cpu)
    asked["spec"]["tasks"][0]["template"]["spec"].update(pod)

    submit_job(asked)
    run_session()


def test_a_gang_that_fits_is_told_how_many_of_its_pods_do():
    node("n3", cpu="8", memory="8Gi")
    waits("wide", cpu="3")

    found = verdict_on("n3", "wide")

    assert (found.fit, found.places, found.pods) == (Fit.FITS, 2, 90)
    assert found.words == "Room here now for 2 of its 90 pods that wait."


def test_a_full_node_says_what_is_short():
    node("n3", cpu="8", memory="8Gi")
    job("filler", "batch", replicas=1, cpu="7")
    run_session()
    name = Node.objects.get(pods__podgroup__name="filler").name
    waits("wide", cpu="8")

    found = verdict_on(name, "wide")

    assert found.fit is Fit.FULL
    assert found.words == (
        "Too full now: a pod needs 8 cpu, 1 of 8 are free, 7 short. "
        "It would fit if the node were empty."
    )


def test_a_node_that_is_too_small_says_so():
    waits("huge", cpu="9")

    assert verdict_on("n1", "huge").words.startswith("Too small, even when empty: a pod needs 9")


def test_a_selector_and_a_taint_are_told_apart():
    node("n3", cpu="8", memory="8Gi")
    taint = {"key": "gpu", "value": "only", "effect": "NoSchedule"}
    Node.objects.filter(name="n3").update(taints=[taint], labels={"zone": "a"})
    waits("elsewhere", nodeSelector={"zone": "b"})
    waits("intolerant", nodeSelector={"zone": "a"})

    assert verdict_on("n3", "elsewhere").fit is Fit.NOT_SELECTED
    assert verdict_on("n3", "intolerant").words == (
        "It does not tolerate the taint gpu=only:NoSchedule."
    )


@pytest.mark.parametrize(
    ("state", "fit"),
    [({"unschedulable": True}, Fit.CORDONED), ({"ready": False}, Fit.NOT_READY)],
)
def test_a_node_that_takes_no_pods_says_so(state: dict[str, bool], fit: Fit):
    waits("wide")
    Node.objects.filter(name="n1").update(**state)

    assert verdict_on("n1", "wide").fit is fit


def test_gangs_of_queues_out_of_sight_are_only_counted():
    waits("wide")

    found = waiting_at("n1", {"vision"})

    assert found is not None
    assert [gang.key for gang, _ in found.rows] == ["default/train-2"]
    assert found.hidden == 1
    assert sum(found.counts.values()) == 1


def test_pages_follow_each_other_and_end():
    waits("wide")

    first = waiting_at("n1", None, size=1)
    assert first is not None
    last = waiting_at("n1", None, size=1, start=first.next)
    assert last is not None

    assert (first.whole, first.next, last.next) == (2, 1, 0)
    assert {first.rows[0][0].key, last.rows[0][0].key} == {"default/wide", "default/train-2"}


def test_a_node_that_is_not_there_has_no_answer():
    assert waiting_at("gone", None) is None
