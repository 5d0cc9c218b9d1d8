"""What large submits cost: a job of 100,000 pods and 1,000 jobs, by one POST each, on PostgreSQL.

Requests are given to the site's own handler, as in `requests`. `serverCpuMs` is what the database
server took for them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from typing import Any

from tests.bench.api import fill, job
from tests.bench.database import a_database, server_seconds
from tests.bench.requests import _ask

Row = dict[str, object]
Spent = tuple[float, float, float]
Submit = Callable[[Any], object]

PODS = 100_000
JOBS = 1_000
_STEPS = 10  # of a hundred that make the pods of one job


def job_writes(scale: float, repetitions: int) -> list[Row]:
    os.environ |= {
        "ALLOWED_HOSTS": "127.0.0.1",
        "SECURE_COOKIES": "0",
        "CONN_MAX_AGE": "86400",
        "MAX_WAITING_PODS_PER_QUEUE": "0",
        "MAX_WAITING_PODS_PER_USER": "0",
    }
    with a_database():
        submit = _submitter(fill(scale))
        submit(job("first"))
        jobs, pods = int(JOBS * scale), int(PODS * scale)
        return [
            _many_jobs(submit, jobs, repetitions),
            _many_pods(submit, pods, repetitions),
            _making_pods(pods),
        ]


def _submitter(token: str) -> Submit:
    from tests.bench.site import application

    return lambda body: _ask(application, token, "/api/v1/jobs/", "", lambda: body)


def _many_jobs(submit: Submit, jobs: int, repetitions: int) -> Row:
    found = []
    for turn in range(repetitions):
        names = [f"many-{turn}-{number}" for number in range(jobs)]
        body = [job(name) for name in names]
        found.append(_spent(lambda body=body: submit(body)))
    return _row(f"{jobs} jobs by one POST", found)


def _many_pods(submit: Submit, pods: int, repetitions: int) -> Row:
    found = []
    for turn in range(repetitions):
        body = _large_job(f"large-{turn}", pods)
        found.append(_spent(lambda body=body: submit(body)))
    return _row(f"a job of {pods} pods by one POST", found)


def _large_job(name: str, pods: int) -> dict[str, Any]:
    body = job(name)
    body["spec"]["tasks"][0]["replicas"] = pods
    return body


def _making_pods(pods: int) -> Row:
    """What a worker does afterwards, a thousand pods at a time, while others take their turns."""
    from scheduler.models import UnmadePods
    from scheduler.services.jobs.pod_steps import create_next_pods

    unmade = UnmadePods.objects.earliest("pk")
    found = [_spent(lambda: create_next_pods(unmade.pk)) for _ in range(_STEPS)]
    return _row(f"the next of {pods} pods made, a step", found)


def _spent(work: Callable[[], object]) -> Spent:
    """Seconds by the clock, of our own process, and of the database server."""
    server = server_seconds()
    own = process_time()
    clock = perf_counter()
    work()
    return perf_counter() - clock, process_time() - own, server_seconds() - server


def _row(what: str, found: list[Spent]) -> Row:
    clock, own, server = ([seconds * 1000 for seconds in each] for each in zip(*found, strict=True))
    return {
        "what": what,
        "medianMs": round(median(clock), 1),
        "minMs": round(min(clock), 1),
        "maxMs": round(max(clock), 1),
        "cpuMs": round(median(own), 1),
        "cpuMinMs": round(min(own), 1),
        "cpuMaxMs": round(max(own), 1),
        "serverCpuMs": round(median(server), 1),
        "repetitions": len(found),
    }
