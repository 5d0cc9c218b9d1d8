"""Clusters with GPUs for tests of whole gangs: `scene(job("a", "q1", gpu=4, on="n1"),
queues=…)`.
"""

from __future__ import annotations

from dataclasses import replace

from tests.engine.builders import Workload, cluster, node, queue

NOW = 10_000.0


def aged(work, seconds, **group):
    """Its pods have run for so long."""
    pods = tuple(replace(pod, started=NOW - seconds) for pod in work.pods)
    return Workload(replace(work.group, **group), pods)


def came(work, seconds, **group):
    """The gang and its pods are there for so long."""
    created = NOW - seconds
    pods = tuple(replace(pod, created=created) for pod in work.pods)
    return Workload(replace(work.group, created=created, **group), pods)


def scene(*jobs, nodes=(("n1", 8, 8),), queues=(), root=None, **snapshot):
    """Nodes are (name, cpu, gpu)."""
    return cluster(
        nodes=[node(name, cpu=cpu, gpu=gpu) for name, cpu, gpu in nodes],
        queues=[root or queue("root"), *queues],
        jobs=jobs,
        taken_at=NOW,
        **snapshot,
    )


def gpus(name, deserved, **others):
    return queue(name, deserved={"gpu": deserved}, **others)


HALVES = (gpus("q1", 4), gpus("q2", 4))
