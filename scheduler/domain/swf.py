"""The Standard Workload Format of the Parallel Workloads Archive: one job a line, eighteen numbers,
-1 where nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.domain.traces import MOST_PROBLEMS, MOST_TASKS, TraceError, TraceJob, from_the_first

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
    if problems or not jobs:
        raise TraceError("\n".join(problems) or f"{source}: there is no job in it.")
    return from_the_first(jobs)


def _read_job(fields: list[str]) -> TraceJob | None:
    if len(fields) < _FIELDS:
        raise ValueError(f"has {len(fields)} fields; a job of this format has {_FIELDS}")
    numbers = [float(field) for field in fields[:_FIELDS]]
    seconds = numbers[_RUN_TIME]
    processors = int(
        numbers[_PROCESSORS] if numbers[_PROCESSORS] > 0 else numbers[_ASKED_PROCESSORS]
    )
    if seconds <= 0 or processors <= 0:
        return None
    if processors > MOST_TASKS:
        raise ValueError(f"asks for {processors} processors; at most {MOST_TASKS} are taken")
    queue = next(
        (
            f"{name}-{int(numbers[place])}"
            for name, place in (("queue", _QUEUE), ("partition", _PARTITION))
            if numbers[place] > 0
        ),
        "",
    )
    return TraceJob(
        at=numbers[_SUBMIT],
        tasks=processors,
        cpu="1",
        duration=seconds,
        user=f"user-{int(numbers[_USER])}",
        queue=queue,
    )
