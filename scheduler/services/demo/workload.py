"""A stream of made-up jobs: the load of the demo and of benchmarks."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef

from scheduler.admission.violations import Rejected
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.jobs.policies import JobAction
from scheduler.domain.mixes import MIXES, Target, draw_job, pause_before
from scheduler.domain.reasons import ASKS_TOO_MUCH
from scheduler.domain.traces import TraceJob, manifest_of
from scheduler.models import Job, PodGroup, Queue, SimulatedCluster
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.cluster.connection import simulation
from scheduler.services.jobs.submit import command_job, submit_job

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 100
LONGEST_BACKLOG = 120.0
"""Simulated seconds that a stream makes up for, when it was held up."""
HOPELESS_KEPT = 5
"""So many jobs of a stream that can never start are left waiting, as examples."""


class UnknownMix(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(f"“{name}” is not a mix; there are {', '.join(MIXES)}.")


@dataclass(frozen=True, slots=True)
class Stream:
    """What to submit from now on.

    `count` jobs, or for `duration` simulated seconds, or until it is stopped.
    """

    mix: str
    rate: float | None = None  # jobs a simulated second; the mix's own if left out
    seed: int = 7
    targets: Sequence[Target] = ()
    most_waiting: int = 60
    count: int | None = None
    duration: float | None = None


def start_stream(stream: Stream) -> None:
    """Let jobs come from now on; the stream goes on with the simulated clock, through restarts.

    Raises `UnknownMix`.
    """
    if stream.mix not in MIXES:
        raise UnknownMix(stream.mix)
    with simulation():
        clock = SimulatedCluster.objects.get(pk=1).clock
    stored = {
        "mix": stream.mix,
        "rate": stream.rate or MIXES[stream.mix].rate,
        "seed": stream.seed,
        "number": 0,
        "next_at": clock,
        "most_waiting": stream.most_waiting,
        "targets": [_stored_target(target) for target in stream.targets],
        "last_number": stream.count,
        "last_at": None if stream.duration is None else clock + stream.duration,
    }
    SimulatedCluster.objects.filter(pk=1).update(workload=stored)


def stop_stream() -> bool:
    """False if there was none."""
    running = SimulatedCluster.objects.filter(pk=1).exclude(workload={})
    return bool(running.update(workload={}))


def current_stream() -> dict[str, Any]:
    """As stored; empty when none runs."""
    return dict(SimulatedCluster.objects.get(pk=1).workload)


def continue_stream() -> int:
    """Submit the jobs that are due. How many there were."""
    if running := current_stream():
        _give_up_hopeless(running["seed"])
    with transaction.atomic():
        state = SimulatedCluster.objects.select_for_update().get(pk=1)
        stream = state.workload
        due = _due_numbers(stream, state.clock)
        if stream:
            SimulatedCluster.objects.filter(pk=1).update(
                workload={} if _is_over(stream, state.clock) else stream
            )
    if due:
        return _submit_where_few_wait(stream, due)
    return 0


def _due_numbers(stream: dict[str, Any], clock: float) -> list[int]:
    """Numbers of the jobs whose time has come."""
    if not stream or stream.get("mix") not in MIXES:
        return []
    mix = MIXES[stream["mix"]]
    due: list[int] = []
    stream["next_at"] = max(stream["next_at"], clock - LONGEST_BACKLOG)
    while (
        stream["next_at"] <= clock
        and len(due) < MOST_AT_ONCE
        and not _is_over(stream, stream["next_at"])
    ):
        due.append(stream["number"])
        stream["number"] += 1
        stream["next_at"] += pause_before(mix, stream["rate"], stream["seed"], stream["number"])
    return due


def _is_over(stream: dict[str, Any], moment: float) -> bool:
    last_number = stream.get("last_number")
    last_at = stream.get("last_at")
    return (last_number is not None and stream["number"] >= last_number) or (
        last_at is not None and moment > last_at
    )


def _submit_where_few_wait(stream: dict[str, Any], due: Sequence[int]) -> int:
    """A demo must not drown: jobs for a queue are passed over while its share of `most_waiting`
    waits there; the others' go on.
    """
    targets = _stream_targets(stream)
    share = max(1, stream["most_waiting"] // max(1, len(targets)))
    waiting = _waiting_by_queue()
    submitted = 0
    for number in due:
        job = draw_job(MIXES[stream["mix"]], targets, stream["seed"], number)
        queue = job.manifest["spec"]["queue"]
        if waiting[queue] < share:
            waiting[queue] += 1
            submitted += _submit_job(job.user, job.manifest)
    return submitted


def _waiting_by_queue() -> Counter[str]:
    """By queue."""
    gangs = (
        PodGroup.objects.filter(phase__in=("Pending", "Inqueue"))
        .order_by()
        .values_list("queue__name")
    )
    return Counter(dict(gangs.annotate(number=Count("id"))))


def _give_up_hopeless(seed: int) -> None:
    """Made-up users withdraw their jobs that can never start, all but the newest few: one day
    nothing else would wait, and no more come.
    """
    made_up = Job.objects.filter(
        phase="Pending", name__regex=rf"-{seed % 1000}-[0-9]+$", labels__has_key="shape"
    )
    hopeless = made_up.filter(podgroup__reason_code__in=ASKS_TOO_MUCH).order_by(
        "-created_at", "-pk"
    )
    for job in hopeless[HOPELESS_KEPT:]:
        with suppress(NotPossible):  # it is on its way out already
            command_job(
                job.namespace,
                job.name,
                JobAction.TERMINATE,
                by=Actor(job.owner, Door.SYSTEM),
                reason="it can never start as it is",
            )


def submit_trace(
    jobs: Sequence[TraceJob],
    *,
    faster: float = 1.0,
    name: str = "trace",
) -> Iterator[tuple[int, int]]:
    """Submit recorded jobs as they came, `faster` times as fast.

    After each that is due, how many were submitted and refused so far.
    """
    targets = leaf_targets()
    begun = time.monotonic()
    submitted = refused = 0
    for number, job in enumerate(jobs):
        time.sleep(max(0.0, begun + job.at / faster - time.monotonic()))
        user, manifest = manifest_of(job, number, targets, name)
        done = _submit_job(user, manifest)
        submitted = submitted + done
        refused = refused + (not done)
        yield submitted, refused


def submit_numbers(
    mix: str,
    numbers: Sequence[int],
    *,
    seed: int,
    targets: Sequence[Target],
) -> int:
    """Submit these jobs of the stream.

    One that is refused (its queue is closed just now) is left out and said so.
    """
    drawn = []
    for number in numbers:
        drawn.append(draw_job(MIXES[mix], targets, seed, number))
    return sum(_submit_job(job.user, job.manifest) for job in drawn)


def _submit_job(user: str, manifest: dict[str, Any]) -> bool:
    try:
        submit_job(manifest, by=Actor(user, Door.SYSTEM))
    except Rejected as refusal:
        logger.info("made-up job %s was refused: %s", manifest["metadata"]["name"], refusal)
        return False
    return True


def _stream_targets(stream: dict[str, Any]) -> list[Target]:
    stored = []
    for target in stream["targets"]:
        stored.append(Target(**{**target, "users": tuple(target["users"])}))
    return stored or leaf_targets()


def leaf_targets() -> list[Target]:
    """Every leaf queue, for a stream that names none."""
    below = Queue.objects.filter(parent=OuterRef("pk"))
    names = (
        Queue.objects.filter(~Exists(below))
        .exclude(name="root")
        .order_by("name")
        .values_list("name", flat=True)
    )
    return [Target(name) for name in names]


def _stored_target(target: Target) -> dict[str, Any]:
    return {
        "queue": target.queue,
        "namespace": target.namespace,
        "users": list(target.users),
        "takes_gpu": target.takes_gpu,
        "takes_cpu": target.takes_cpu,
    }
