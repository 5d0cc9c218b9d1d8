"""What comes to a cluster over time: jobs drawn from a named mix, or read from a recorded trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler.domain.mixes import GPU, MIXES, Mix, Target, draw_job, pause_before
from scheduler.domain.queues import ROOT
from scheduler.domain.resources import Resources
from scheduler.domain.traces import TraceJob, target_of
from scheduler.scenarios.clusters import Cluster

RUN_SECONDS: Final = "fumarole.io/run-seconds"
DEFAULT_PRIORITY_CLASS: Final = "normal"
"""The class of jobs that name none, if the file has it."""


@dataclass(frozen=True, slots=True)
class LoadJob:
    """One job: `tasks` alike pods, of which `minimum` must start together, each running for
    `seconds`.

    `at` is when it arrives.
    """

    key: str  # namespace/name
    queue: str
    at: float
    tasks: int
    minimum: int
    request: Resources
    seconds: float
    priority: int = 0

    def amount(self, resource: str) -> int:
        """What its gang asks for of one resource."""
        return self.request.amount(resource) * self.minimum


def load_targets(cluster: Cluster) -> list[Target]:
    """Where jobs of a mix go: the file's own targets, or every leaf.

    A queue with GPUs of its own takes GPU jobs, others the rest.
    """
    return list(cluster.targets) or [_target_of(name, cluster) for name in leaf_queues(cluster)]


def leaf_queues(cluster: Cluster) -> list[str]:
    parents = {queue.spec.parent for queue in cluster.queues}
    return sorted(
        queue.name for queue in cluster.queues if queue.name not in parents and queue.name != ROOT
    )


def _target_of(name: str, cluster: Cluster) -> Target:
    specs = {queue.name: queue.spec for queue in cluster.queues}
    names_gpu = any(
        GPU in (*queue.spec.deserved, *queue.spec.guarantee) for queue in cluster.queues
    )
    own = GPU in specs[name].deserved or GPU in specs[name].guarantee
    return Target(name, takes_gpu=own or not names_gpu, takes_cpu=not own or not names_gpu)


def drawn_load(
    mix: str, cluster: Cluster, *, seconds: float, seed: int, rate: float | None = None
) -> list[LoadJob]:
    """The jobs of the mix's stream that arrive in this time.

    The same as the live stream draws from the same seed.
    """
    drawn = MIXES[mix]
    targets = load_targets(cluster)
    jobs = []
    at = 0.0
    number = 0
    while at <= seconds:
        jobs.append(_draw_job(drawn, targets, cluster, seed, number, at))
        number += 1
        at += pause_before(drawn, rate or drawn.rate, seed, number)
    return jobs


def _draw_job(
    mix: Mix, targets: Sequence[Target], cluster: Cluster, seed: int, number: int, at: float
) -> LoadJob:
    manifest = draw_job(mix, targets, seed, number).manifest
    return job_from(manifest, at, priority_of(cluster))


def priority_of(cluster: Cluster) -> Callable[[str], int]:
    """The value of a priority class by name; without a name, of the default class."""

    def value(name: str) -> int:
        found = cluster.classes.get(name or DEFAULT_PRIORITY_CLASS)
        if found:
            return found.value
        return 0

    return value


def job_from(manifest: Mapping[str, Any], at: float, priority: Callable[[str], int]) -> LoadJob:
    """From a Volcano job with one task, as mixes draw it."""
    metadata = manifest["metadata"]
    spec = manifest["spec"]
    task = spec["tasks"][0]
    template = task["template"]
    return LoadJob(
        key=f"{metadata['namespace']}/{metadata['name']}",
        queue=spec["queue"],
        at=at,
        tasks=task["replicas"],
        minimum=spec["minAvailable"],
        request=Resources.parse(template["spec"]["containers"][0]["resources"]["requests"]),
        seconds=float(template["metadata"]["annotations"][RUN_SECONDS]),
        priority=priority(spec.get("priorityClassName", "")),
    )


def recorded_load(
    trace: Iterable[TraceJob], cluster: Cluster, *, seconds: float | None = None
) -> list[LoadJob]:
    """The jobs of a trace that arrive in this time, each in the queue that it names, or always the
    same other one.
    """
    targets = [Target(name) for name in leaf_queues(cluster)]
    priority = priority_of(cluster)("")
    found: list[LoadJob] = []
    for number, job in enumerate(trace):
        if seconds is None or job.at <= seconds:
            found.append(_recorded_job(job, number, targets, priority))
    return found


def _recorded_job(job: TraceJob, number: int, targets: Sequence[Target], priority: int) -> LoadJob:
    target = target_of(job, number, targets)
    amounts = {"cpu": job.cpu, "memory": job.memory, GPU: job.gpu}
    request = Resources.parse({name: amount for name, amount in amounts.items() if amount})
    return LoadJob(
        key=f"{target.namespace}/trace-{number}",
        queue=target.queue,
        at=job.at,
        tasks=job.tasks,
        minimum=job.tasks,
        request=request,
        seconds=job.duration,
        priority=priority,
    )
