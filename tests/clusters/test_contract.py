"""What the scheduler may rely on in every cluster, whoever runs the pods."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.clusters.base import BindRequest, Cluster, EvictRequest, Reported
from scheduler.clusters.simulated import SimulatedCluster, SimulationSettings


class SimulatedUnderTest:
    """The simulated cluster with a clock that the test turns."""

    def __init__(self) -> None:
        self.settings = SimulationSettings(
            start_delay=(1.0, 1.0), run_seconds=(10.0, 10.0), grace_seconds=2.0
        )
        self.cluster = SimulatedCluster.holding([], clock=0.0, seed=1, settings=self.settings)

    def wait(self, seconds: float) -> None:
        self.cluster.clock += seconds


@pytest.fixture(params=[SimulatedUnderTest], ids=["simulated"])
def world(request: pytest.FixtureRequest):
    return request.param()


def bind(cluster: Cluster, pod: int = 1, **template: object) -> None:
    (answer,) = cluster.bind([BindRequest(pod, f"uid-{pod}", f"default/pod-{pod}", "n1", template)])
    assert answer.accepted


def phases(cluster: Cluster) -> list[tuple[int, str]]:
    return [(report.pod_id, report.phase.value) for report in cluster.observe()]


def test_a_bound_pod_starts_runs_and_ends(world):
    bind(world.cluster, run_seconds=5.0)

    assert phases(world.cluster) == []
    world.wait(1.0)
    assert phases(world.cluster) == [(1, "Running")]
    world.wait(5.0)
    assert phases(world.cluster) == [(1, "Succeeded")]
    world.wait(100.0)
    assert phases(world.cluster) == []


def test_a_long_absence_tells_everything_in_order(world):
    bind(world.cluster, run_seconds=5.0)
    world.wait(60.0)

    assert phases(world.cluster) == [(1, "Running"), (1, "Succeeded")]


def test_binding_twice_is_harmless(world):
    bind(world.cluster)
    world.wait(0.5)
    bind(world.cluster)
    world.wait(0.5)

    assert phases(world.cluster) == [(1, "Running")]


def test_an_evicted_pod_is_gone_after_its_grace(world):
    bind(world.cluster)
    world.wait(1.0)
    world.cluster.observe()
    world.cluster.evict([EvictRequest(1, "default/pod-1", "reclaim")])

    assert phases(world.cluster) == []
    world.wait(2.0)
    assert phases(world.cluster) == [(1, "Gone")]


def test_evicting_what_was_never_there_is_answered_with_gone(world):
    (answer,) = world.cluster.evict([EvictRequest(9, "default/pod-9")])

    assert answer.accepted
    assert phases(world.cluster) == [(9, "Gone")]


def test_a_pod_that_is_to_fail_tells_its_exit_code(world):
    bind(world.cluster, run_seconds=1.0, exit_code=3)
    world.wait(10.0)

    running, failed = world.cluster.observe()

    assert (running.phase, failed.phase, failed.exit_code) == (Reported.RUNNING, Reported.FAILED, 3)


def test_a_lost_node_takes_its_pods_along(world):
    bind(world.cluster)
    world.wait(1.0)
    world.cluster.observe()
    world.cluster.lose_node("n1")
    world.wait(5.0)

    (report,) = world.cluster.observe()

    assert report.phase is Reported.GONE
    assert "n1" in report.message


def test_a_node_that_is_not_ready_refuses_pods(world):
    world.cluster.ready_nodes = frozenset({"n2"})

    (answer,) = world.cluster.bind([BindRequest(1, "uid-1", "default/pod-1", "n1")])

    assert not answer.accepted
    assert "n1" in answer.error


def test_chance_follows_the_seed_and_not_the_order(world):
    def ends(order: list[int], make: Callable[[], SimulatedCluster]) -> dict[int, float]:
        cluster = make()
        cluster.bind([BindRequest(pod, f"uid-{pod}", f"p{pod}", "n1") for pod in order])
        return {pod.pod_id: pod.next_at + pod.run_seconds for pod in cluster.pods.values()}

    def make() -> SimulatedCluster:
        return SimulatedCluster.holding(
            [], clock=0.0, seed=5, settings=SimulationSettings(failure_probability=0.5)
        )

    assert ends([1, 2, 3], make) == ends([3, 1, 2], make)
