"""What the last hour's evictions cost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from scheduler.domain.resources import Resources
from scheduler.models import ClusterState, Eviction, SchedulingSession
from scheduler.selectors.cluster.evictions import eviction_costs
from scheduler.services.demo.setup import ensure_builtin_objects

pytestmark = pytest.mark.django_db
GPUS = Resources.parse({"cpu": "64", "nvidia.com/gpu": "10"})


@pytest.fixture(autouse=True)
def cluster() -> None:
    ensure_builtin_objects()
    ClusterState.objects.update(total=GPUS)


def session(number: int, binds: int, ago: timedelta = timedelta()) -> None:
    SchedulingSession.objects.create(
        number=number,
        state="Done",
        started_at=timezone.now() - ago,
        counts={"binds": binds},
    )


def evicted(
    gang: str,
    number: int,
    queue: str = "vision",
    pods: int = 1,
    ago: timedelta = timedelta(),
) -> None:
    for pod in range(pods):
        Eviction.objects.create(
            session_number=number,
            pod_name=f"{gang}-{pod}",
            podgroup_name=gang,
            queue_name=queue,
            action="reclaim",
            ran_seconds=90,
            accelerator_seconds=180,
            core_seconds=720,
            created_at=timezone.now() - ago,
        )


LONG_AGO = timedelta(minutes=61)


def test_evictions_and_placements_of_the_last_hour_are_compared():
    session(1, 40)
    session(2, 60)
    session(0, 1000, LONG_AGO)
    evicted("default/a", 2, pods=5)
    evicted("default/a", 0, pods=7, ago=LONG_AGO)

    costs = eviction_costs(None)

    assert (costs.placements, costs.evictions, costs.per_placement) == (100, 5, 0.05)


def test_lost_work_is_gpu_time_and_its_part_of_what_the_cluster_has():
    evicted("default/a", 2, pods=5)

    costs = eviction_costs(None)

    assert (costs.lost_of, costs.lost_seconds) == ("accelerators", 900)
    assert costs.lost_share == 900 / (10 * 3600)


def test_a_cluster_without_accelerators_loses_cpu_time():
    ClusterState.objects.update(total=Resources.parse({"cpu": "64"}))
    evicted("default/a", 2)

    costs = eviction_costs(None)

    assert (costs.lost_of, costs.lost_seconds) == ("cores", 720)
    assert costs.lost_share == 720 / (64 * 3600)


def test_what_is_not_known_is_not_0():
    ClusterState.objects.update(total=Resources())

    costs = eviction_costs(None)

    assert (costs.per_placement, costs.lost_share) == (None, None)


def test_gangs_that_were_evicted_more_than_twice_are_named_the_worst_first():
    """By sessions: a gang that loses eight pods at once was evicted once."""
    for number in range(4):
        evicted("default/a", number, pods=2)
    for number in range(3):
        evicted("default/b", number)
    evicted("default/c", 1, pods=8)
    evicted("default/c", 2)

    often = eviction_costs(None).often

    assert [(gang.podgroup, gang.times, gang.pods) for gang in often] == [
        ("default/a", 4, 8),
        ("default/b", 3, 3),
    ]


def test_gangs_of_queues_that_the_reader_may_not_see_are_counted_and_not_named():
    for number in range(3):
        evicted("default/a", number, queue="vault")
        evicted("default/b", number, queue="vision")

    costs = eviction_costs({"vision"})

    assert costs.evictions == 6
    assert [gang.podgroup for gang in costs.often] == ["default/b"]
