"""Made-up work: named mixes of gang jobs, drawn from a seed.

The same seed and number give the same job, whenever it is drawn.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

GPU: Final = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of job.

    Ranges are inclusive; `elastic` is the share of replicas above the minimum.
    """

    name: str
    replicas: tuple[int, int]
    cpu: tuple[int, ...]  # cores a pod
    memory: tuple[int, ...]  # GiB a pod
    seconds: tuple[float, float]
    gpus: tuple[int, ...] = (0,)
    elastic: float = 0.0
    priority: tuple[str, ...] = ("",)


SHAPES: Final = {
    shape.name: shape
    for shape in (
        Shape(
            "train",
            (2, 8),
            (6, 8),
            (48, 60),
            (60, 240),
            gpus=(1, 2, 4),
            priority=("", "", "high"),
        ),
        Shape("finetune", (1, 4), (6,), (40,), (30, 120), gpus=(1, 2)),
        Shape("pretrain", (4, 8), (7,), (60,), (120, 300), gpus=(8,), priority=("high",)),
        Shape("etl", (4, 16), (2, 4), (8, 16), (30, 120), elastic=0.4),
        Shape("report", (1, 6), (2, 4), (4, 8), (15, 60)),
        Shape("sweep", (8, 32), (1, 2), (2, 4), (20, 90), elastic=0.75, priority=("low",)),
        Shape("gang", (8, 24), (4,), (8,), (40, 120)),
        Shape("tiny", (1, 1), (1,), (1, 2), (2, 10)),
    )
}


@dataclass(frozen=True, slots=True)
class Mix:
    """Shapes with how often they come.

    `favourite` gives one queue this share of all jobs; `burst` jobs come at a time.
    """

    name: str
    about: str
    shapes: Mapping[str, float]
    rate: float  # jobs a second
    favourite: float = 0.0
    burst: int = 1


MIXES: Final = {
    mix.name: mix
    for mix in (
        Mix(
            "steady",
            "a bit of everything, about as much as the sample cluster can take",
            {"train": 2, "finetune": 2, "pretrain": 0.4, "etl": 3, "report": 4, "sweep": 2},
            0.55,
        ),
        Mix(
            "burst",
            "the same work, thirty jobs at a time",
            {"train": 2, "finetune": 2, "etl": 3, "report": 4, "sweep": 2},
            0.55,
            burst=30,
        ),
        Mix("gang-heavy", "wide gangs that must start whole", {"gang": 4, "etl": 1}, 0.5),
        Mix(
            "gpu-contention",
            "more training than there are GPUs",
            {"train": 5, "pretrain": 2, "finetune": 2},
            0.5,
        ),
        Mix(
            "one-greedy-team",
            "one queue submits most of the work",
            {"etl": 2, "sweep": 3, "report": 1},
            0.8,
            favourite=0.8,
        ),
        Mix("many-tiny-jobs", "single pods that run for seconds", {"tiny": 1}, 20.0),
    )
}


@dataclass(frozen=True, slots=True)
class Target:
    """A queue that takes jobs, where its jobs live, and whose they are."""

    queue: str
    namespace: str = "default"
    users: tuple[str, ...] = ("alice",)
    takes_gpu: bool = True
    takes_cpu: bool = True


@dataclass(frozen=True, slots=True)
class DrawnJob:
    user: str
    manifest: dict[str, Any] = field(default_factory=dict)


def draw_job(mix: Mix, targets: Sequence[Target], seed: int, number: int) -> DrawnJob:
    """Job `number` of the stream: the seed alone settles its shape, queue and owner."""
    chance = random.Random(f"{seed}:{mix.name}:{number}")  # noqa: S311 - made-up work
    shape = SHAPES[_weighted_choice(chance, mix.shapes)]
    target = _choose_target(chance, mix, shape, targets)
    user = chance.choice(target.users)
    name = f"{shape.name}-{seed % 1000}-{number}"
    return DrawnJob(user, manifest_of(chance, shape, name, target))


def pause_before(mix: Mix, rate: float, seed: int, number: int) -> float:
    """Seconds between this job and the one before it."""
    if number % mix.burst:
        return 0.0
    return random.Random(f"{seed}:pause:{number}").expovariate(rate / mix.burst)  # noqa: S311


def _weighted_choice(chance: random.Random, weights: Mapping[str, float]) -> str:
    return chance.choices(list(weights), list(weights.values()))[0]


def _choose_target(
    chance: random.Random,
    mix: Mix,
    shape: Shape,
    targets: Sequence[Target],
) -> Target:
    wants_gpu = max(shape.gpus) > 0
    if wants_gpu:
        fitting = [target for target in targets if target.takes_gpu]
    else:
        fitting = [target for target in targets if target.takes_cpu]
    fitting = fitting or list(targets)
    if mix.favourite and chance.random() < mix.favourite:
        return fitting[0]
    return chance.choice(fitting)


def manifest_of(chance: random.Random, shape: Shape, name: str, target: Target) -> dict[str, Any]:
    """A Volcano job of this shape."""
    replicas = chance.randint(*shape.replicas)
    least = max(1, round(replicas * (1 - shape.elastic)))
    requests = {"cpu": str(chance.choice(shape.cpu)), "memory": f"{chance.choice(shape.memory)}Gi"}
    gpus = chance.choice(shape.gpus)
    if gpus:
        requests[GPU] = str(gpus)
    seconds = round(chance.uniform(*shape.seconds), 1)
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": target.namespace, "labels": {"shape": shape.name}},
        "spec": {
            "queue": target.queue,
            "minAvailable": least,
            "maxRetry": 2,
            "ttlSecondsAfterFinished": 3600,
            "priorityClassName": chance.choice(shape.priority),
            "policies": [{"event": "PodFailed", "action": "RestartJob"}],
            "tasks": [_task_manifest(replicas, least, requests, seconds)],
        },
    }


def _task_manifest(
    replicas: int,
    least: int,
    requests: Mapping[str, str],
    seconds: float,
) -> dict[str, Any]:
    return {
        "name": "worker",
        "replicas": replicas,
        "minAvailable": least,
        "template": {
            "metadata": {"annotations": {"fumarole.io/run-seconds": str(seconds)}},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "busybox",
                        "command": ["work"],
                        "resources": {"requests": dict(requests)},
                    }
                ]
            },
        },
    }
