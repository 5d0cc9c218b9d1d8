"""How well a span of time was scheduled: by hand-made records of one small cluster."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from scheduler.models import ClusterState, Decision, Eviction, Pod, SchedulingSession
from scheduler.selectors.sessions.quality import quality_between
from tests import worlds

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def ago(seconds: float):
    return NOW - timedelta(seconds=seconds)


@pytest.fixture
def session():
    return SchedulingSession.objects.create(number=1, state="Done", started_at=ago(900))


@pytest.fixture
def pods():
    """Four pods with one CPU each, on a cluster of four."""
    total = worlds.node("n1", cpu="4", memory="8Gi").allocatable
    ClusterState.objects.update(total=total)
    worlds.job("train", replicas=4)
    return list(Pod.objects.order_by("index"))


def decide(kind, pod, session, at, action="allocate"):
    Decision.objects.create(
        kind=kind,
        pod=pod,
        pod_name=f"default/{pod.name}",
        podgroup_name="default/train",
        session=session,
        action=action,
        created_at=at,
    )


def evict(pod, session, number, at, *, action="reclaim", core_seconds=0):
    Eviction.objects.create(
        session=session,
        session_number=number,
        pod_name=f"default/{pod}",
        podgroup_name="default/train",
        action=action,
        core_seconds=core_seconds,
        created_at=at,
    )


def run(pod, phase, started, finished=None):
    node = None if phase == "Pending" else worlds.Node.objects.get()
    Pod.objects.filter(pk=pod.pk).update(
        phase=phase,
        node=node,
        started_at=started,
        finished_at=finished,
    )


def last_ten_minutes():
    return quality_between(ago(600), NOW)


def test_time_is_useful_if_the_pod_ran_to_its_end_and_counts_from_the_beginning_of_the_span(pods):
    run(pods[0], "Succeeded", ago(700), ago(300))  # 300 seconds of it
    run(pods[1], "Failed", ago(500), ago(300))
    run(pods[2], "Running", ago(120))

    found = last_ten_minutes()

    assert found.share(found.useful) == pytest.approx(300 / (4 * 600))
    assert found.share(found.unfinished) == pytest.approx(120 / (4 * 600))
    assert found.lost == 0


def test_what_evictions_cost_is_lost(pods, session):
    for pod in pods[:2]:
        decide("Bind", pod, session, ago(500))
    decide("Bind", pods[2], session, ago(900))
    evict("train-0", session, 1, ago(400), core_seconds=100)
    evict("train-1", session, 1, ago(400), core_seconds=50, action="preempt")
    evict("train-2", session, 1, ago(700), core_seconds=1000)

    found = last_ten_minutes()

    assert found.share(found.lost) == pytest.approx(150 / (4 * 600))
    assert found.placements == 2
    assert found.evictions_by_action == {"preempt": 1, "reclaim": 1}
    assert found.evictions_per_placement == 1.0


def test_a_gang_that_lost_two_pods_at_once_was_evicted_once(session):
    for pod, number in (("train-0", 1), ("train-1", 1), ("train-0", 2)):
        evict(pod, session, number, ago(60))

    assert last_ten_minutes().most_evicted == [("default/train", 2)]


def test_a_younger_cluster_is_looked_at_from_its_first_session_on(pods):
    SchedulingSession.objects.create(number=1, state="Done", started_at=ago(200))
    run(pods[0], "Succeeded", ago(100), ago(50))

    found = last_ten_minutes()

    assert found.seconds == 200
    assert found.share(found.useful) == pytest.approx(50 / (4 * 200))


def test_an_empty_cluster_has_nothing_to_show():
    found = last_ten_minutes()

    assert found.evictions_per_placement == found.share(found.useful) == 0
