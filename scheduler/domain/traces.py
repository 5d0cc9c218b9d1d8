"""A recorded load from a CSV file: when jobs came, how large they were, how long they ran."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from scheduler.domain.mixes import GPU, Target
from scheduler.domain.resources import parse_quantity

COLUMNS: Final = {
    "submit": ("submit", "submit_time", "submitted", "time", "timestamp"),
    "tasks": ("tasks", "replicas", "instances", "num_tasks"),
    "cpu": ("cpu", "cpus", "plan_cpu"),
    "memory": ("memory", "mem", "plan_mem"),
    "gpu": ("gpu", "gpus", "plan_gpu"),
    "duration": ("duration", "runtime", "run_time"),
    "user": ("user", "user_id"),
    "queue": ("queue", "group", "partition", "cluster"),
    "devices": ("num_gpus",),
}
"""What a column may be called.

Submit and duration must be there, and cpu or the GPUs of a whole job.
"""
_RESOURCES: Final = {"cpu": "cpu", "memory": "memory", "gpu": GPU}
NEEDED: Final = ("submit", "cpu", "duration")
GPUS_OF_A_NODE: Final = 8
"""A job of more GPUs than this is a gang of pods that have so many each."""
CPUS_OF_A_GPU: Final = 4
"""What is taken for a job of which only the GPUs are known."""
MOST_PROBLEMS = 10
MOST_TASKS = 10_000
LATEST: Final = 1e11
"""Seconds. No clock of a recorded load goes further."""
A_MOMENT: Final = "seconds or a time like 2026-05-04T12:00:00"


class TraceError(ValueError):
    """The file cannot be used.

    The message names each line and column, as far as there are not too many.
    """


@dataclass(frozen=True, slots=True)
class TraceJob:
    """`at` is seconds after the first job; amounts are a task's, as Kubernetes quantities."""

    at: float
    tasks: int
    cpu: str
    duration: float
    memory: str = ""
    gpu: str = ""
    user: str = ""
    queue: str = ""


def read_trace(lines: Iterable[str], source: str) -> list[TraceJob]:
    """Jobs in the order of their coming. Raises `TraceError`."""
    reader = csv.DictReader(lines, strict=True)
    problems: list[str] = []
    jobs: list[TraceJob] = []
    try:
        names = _column_names(reader.fieldnames or (), source)
        for row in reader:
            try:
                jobs.append(_read_row(row, names))
            except ValueError as error:
                problems.append(f"{source}, line {reader.line_num}: {error}")
            if len(problems) == MOST_PROBLEMS:
                break
    except csv.Error as error:
        problems.append(f"{source}, line {reader.line_num}: this is not CSV: {error}")
    return usable_jobs(jobs, problems, source)


def usable_jobs(jobs: Sequence[TraceJob], problems: Sequence[str], source: str) -> list[TraceJob]:
    """In order, with time counted from the first of them.

    Raises `TraceError` if there are problems or no jobs.
    """
    if problems:
        raise TraceError("\n".join(problems))
    if not jobs:
        raise TraceError(f"{source}: there is no job in it.")
    return from_the_first(jobs)


def from_the_first(jobs: Sequence[TraceJob]) -> list[TraceJob]:
    """In order, with time counted from the first of them."""
    first = min(job.at for job in jobs)
    return sorted((replace(job, at=job.at - first) for job in jobs), key=lambda job: job.at)


def _column_names(header: Sequence[str], source: str) -> dict[str, str]:
    """The name of each column as the file spells it."""
    given = {}
    for name in header:
        if name:
            given[name.strip().lower()] = name
    found = {}
    for column, others in COLUMNS.items():
        for name in reversed(others):
            if name in given:
                found[column] = given[name]
    missing = []
    for column in NEEDED:
        if column not in found and not (column == "cpu" and "devices" in found):
            missing.append(column)
    if missing:
        wanted = "; ".join(f"{column} (or {', '.join(COLUMNS[column][1:])})" for column in missing)
        raise TraceError(f"{source}: the first line must name the columns; missing: {wanted}.")
    return found


def _read_row(row: Mapping[str | None, Any], names: Mapping[str, str]) -> TraceJob:
    """A row has a field for each column of the first line: no more, no fewer."""
    surplus = row.get(None) or ()
    found = sum(1 for value in row.values() if isinstance(value, str)) + len(surplus)
    wanted = len(row) - (None in row)
    if found != wanted:
        raise ValueError(f"has {found} fields; the first line names {wanted} columns")
    return _read_job({column: row[name].strip() for column, name in names.items()})


def _read_job(row: Mapping[str, str]) -> TraceJob:
    if "devices" in row:
        return _job_of_gpus(row)
    return TraceJob(
        at=_read_moment(row["submit"]),
        tasks=_read_count("tasks", row.get("tasks") or "1"),
        cpu=_read_amount("cpu", row["cpu"]),
        duration=_read_number("duration", row["duration"]),
        memory=_read_amount("memory", row.get("memory", "")),
        gpu=_read_amount("gpu", row.get("gpu", "")),
        user=row.get("user", ""),
        queue=row.get("queue", ""),
    )


def _job_of_gpus(row: Mapping[str, str]) -> TraceJob:
    """As Microsoft's Philly trace has it: a number of GPUs for the whole job."""
    gpus = _read_count("num_gpus", row["devices"])
    tasks = -(-gpus // GPUS_OF_A_NODE)
    per_task = -(-gpus // tasks)
    return TraceJob(
        at=_read_moment(row["submit"]),
        tasks=tasks,
        cpu=_read_amount("cpu", row.get("cpu", "")) or str(per_task * CPUS_OF_A_GPU),
        duration=_read_number("duration", row["duration"]),
        memory=_read_amount("memory", row.get("memory", "")),
        gpu=str(per_task),
        user=row.get("user", ""),
        queue=row.get("queue", ""),
    )


def _read_moment(text: str) -> float:
    try:
        moment = float(text)
    except ValueError:
        moment = _read_date(text)
    if not abs(moment) < LATEST:
        raise ValueError(f"submit is “{text}”; it must be {A_MOMENT}")
    return moment


def _read_date(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"submit is “{text}”; it must be {A_MOMENT}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def _read_number(column: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{column} is “{text}”; it must be a number of seconds") from None
    if not 0 <= number < 1e9:
        raise ValueError(f"{column} is {text}; it must be 0 or more")
    return number


def _read_count(column: str, text: str) -> int:
    try:
        count = float(text)
    except ValueError:
        count = 0.5
    if not count.is_integer() or not 1 <= count <= MOST_TASKS:
        raise ValueError(f"{column} is “{text}”; it must be a whole number from 1 to {MOST_TASKS}")
    return int(count)


def _read_amount(column: str, text: str) -> str:
    """A Kubernetes quantity, "" for none."""
    if not text or text in ("0", "0.0"):
        return ""
    try:
        amount = parse_quantity(_RESOURCES[column], text)
    except ValueError:
        raise ValueError(
            f"{column} is “{text}”; it must be an amount like 2, 500m or 4Gi"
        ) from None
    if amount < 0:
        raise ValueError(f"{column} is {text}; it must be 0 or more")
    return text


def target_of(job: TraceJob, number: int, targets: Sequence[Target]) -> Target:
    """The queue that the job names, with or without `vc-` in front.

    Otherwise one of the targets, always the same for the same name.
    """
    for target in targets:
        if job.queue and target.queue in (job.queue, f"vc-{job.queue}"):
            return target
    name = job.queue or job.user or str(number)
    return targets[zlib.crc32(name.encode()) % len(targets)]


def manifest_of(
    job: TraceJob,
    number: int,
    targets: Sequence[Target],
    name: str = "trace",
) -> tuple[str, dict[str, Any]]:
    """Its owner and the job."""
    target = target_of(job, number, targets)
    requests = {}
    for key, amount in {"cpu": job.cpu, "memory": job.memory, GPU: job.gpu}.items():
        if amount:
            requests[key] = amount
    task = {
        "name": "task",
        "replicas": job.tasks,
        "minAvailable": job.tasks,
        "template": {
            "metadata": {"annotations": {"fumarole.io/run-seconds": f"{job.duration:g}"}},
            "spec": {
                "containers": [
                    {"name": "main", "image": "busybox", "resources": {"requests": requests}}
                ]
            },
        },
    }
    return job.user or "trace", {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": f"{name}-{number}", "namespace": target.namespace},
        "spec": {
            "queue": target.queue,
            "minAvailable": job.tasks,
            "ttlSecondsAfterFinished": 3600,
            "tasks": [task],
        },
    }
