"""Loads: the recorded one among the examples, and its cluster."""

from __future__ import annotations

from collections import Counter

import pytest

from scheduler.domain.resources import Resources
from scheduler.management.trace_files import read_trace_file
from scheduler.scenarios.files import read_file
from scheduler.simulation.loads import leaf_queues, recorded_load

GPU = "nvidia.com/gpu"
CLUSTER = "examples/philly-cluster.yaml"
TRACE = "examples/philly-2017w41-42.csv.gz"


@pytest.fixture(scope="module")
def philly():
    return read_file(CLUSTER, str)[0].cluster


@pytest.fixture(scope="module")
def jobs(philly):
    return recorded_load(read_trace_file(TRACE), philly)


def test_the_two_weeks_of_philly_are_whole(jobs):
    assert len(jobs) == 26_936
    assert max(job.at for job in jobs) == pytest.approx(14 * 86_400, rel=0.001)
    assert Counter(job.tasks for job in jobs) == {1: 26_918, 2: 18}


def test_every_job_of_philly_goes_to_the_queue_of_its_virtual_cluster(philly, jobs):
    trace = read_trace_file(TRACE)

    assert {f"vc-{job.queue}" for job in trace} == set(leaf_queues(philly))
    assert [job.queue for job in jobs] == [f"vc-{job.queue}" for job in trace]


def test_a_queue_of_philly_deserves_its_share_of_the_gpu_time(philly, jobs):
    assert sum(node.allocatable.amount(GPU) for node in philly.nodes) == gpus(512)

    time_of: Counter[str] = Counter()
    for job in jobs:
        time_of[job.queue] += job.amount(GPU) * job.seconds
    whole = sum(time_of.values())
    deserved = {queue.name: queue.spec.deserved.amount(GPU) for queue in philly.queues}
    for queue, amount in time_of.items():
        assert deserved[queue] == pytest.approx(gpus(512) * amount / whole, abs=gpus(1))
    assert sum(deserved.values()) == gpus(512)


def gpus(count: int) -> int:
    return Resources.parse({GPU: str(count)}).amount(GPU)
