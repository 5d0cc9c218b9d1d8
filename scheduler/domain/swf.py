"""The Standard Workload Format of the Parallel Workloads Archive.

It has one job a line with eighteen numbers, and -1 where nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from scheduler.domain.traces import LATEST, MOST_PROBLEMS, MOST_TASKS, TraceJob, usable_jobs

_FIELDS = 18
_SUBMIT = 1
_RUN_TIME = 3
_PROCESSORS = 4
_ASKED_PROCESSORS = 7
_USER = 11
_QUEUE = 14
_PARTITION = 15


def read_swf(lines: Iterable[str], source: str) -> list[TraceJob]:
    """Jobs in the order of their coming: a processor is a pod with one CPU. Raises `TraceError`.

    Jobs that never ran are left out, as the archive advises.
    """
    jobs: list[TraceJob] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith(";"):
            continue
        try:
            job = _read_job(line.split())
        except ValueError as error:
            problems.append(f"{source}, line {number}: {error}")
            if len(problems) == MOST_PROBLEMS:
                break
            continue
        if job is not None:
            jobs.append(job)
    return usable_jobs(jobs, problems, source)


def _read_job(fields: list[str]) -> TraceJob | None:
    if len(fields) < _FIELDS:
        raise ValueError(f"has {len(fields)} fields; a job of this format has {_FIELDS}")
    numbers = []
    for place, field in enumerate(fields[:_FIELDS], start=1):
        numbers.append(_read_number(place, field))
    seconds = numbers[_RUN_TIME]
    processors = _processors(numbers)
    if seconds <= 0 or processors <= 0:
        return None
    if processors > MOST_TASKS:
        raise ValueError(f"asks for {processors} processors; at most {MOST_TASKS} are taken")
    return TraceJob(
        at=numbers[_SUBMIT],
        tasks=processors,
        cpu="1",
        duration=seconds,
        user=f"user-{int(numbers[_USER])}",
        queue=_queue_name(numbers),
    )


def _read_number(place: int, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not abs(number) < LATEST:
        raise ValueError(f"field {place} is “{text}”; it must be a number")
    return number


def _processors(numbers: list[float]) -> int:
    """What it had; if that is not known, what it asked for."""
    if numbers[_PROCESSORS] > 0:
        return int(numbers[_PROCESSORS])
    return int(numbers[_ASKED_PROCESSORS])


def _queue_name(numbers: list[float]) -> str:
    """Queues and partitions have numbers; "" if neither is known."""
    if numbers[_QUEUE] > 0:
        return f"queue-{int(numbers[_QUEUE])}"
    if numbers[_PARTITION] > 0:
        return f"partition-{int(numbers[_PARTITION])}"
    return ""
