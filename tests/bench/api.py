"""The API at a steady rate on PostgreSQL: queue list, job list, submit and explain against a view
that does one SELECT 1.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

import httpx

from tests.bench.database import a_database

Row = dict[str, object]
Ask = Callable[[int], httpx.Response]
Found = dict[str, list[list[float]]]
"""Of each kind of request the seconds that it took, round by round."""

QUEUES = 1000
JOBS = 400
EMPTY = "an empty view with one SELECT 1"
_EVERY_SECONDS = 0.01  # one request of any kind each; the same rate for all
_IDLE_REQUESTS = 100  # of each kind in a round: p99 is the second slowest
_BUSY_REQUESTS = 50  # p99 is the slowest


def api(scale: float, repetitions: int) -> list[Row]:
    """p50 and p99 in milliseconds, idle and while sessions run, and how many times the empty
    view's: the median of all rounds, with the least and the most.
    """
    with a_database():
        token = fill(scale)
        with (
            _server() as address,
            httpx.Client(
                base_url=address,
                headers={"Authorization": f"Bearer {token}"},
                timeout=30,
                trust_env=False,
            ) as client,
        ):
            asks = _asks(client)
            idle = _steady(asks, repetitions, int(_IDLE_REQUESTS * scale))
            with _sessions():
                busy = _steady(asks, repetitions, int(_BUSY_REQUESTS * scale))
    return [*_rows("idle", idle, idle), *_rows("during sessions", busy, idle)]


def fill(scale: float) -> str:
    from django.contrib.auth import get_user_model

    from scheduler.domain.resources import Resources
    from scheduler.models import ClusterState, Queue, QueueFigures
    from scheduler.services.accounts.actors import SYSTEM
    from scheduler.services.accounts.tokens import create_token

    root = Queue.objects.get(name="root")
    amounts = Resources.parse({"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8"})
    teams = Queue.objects.bulk_create(
        Queue(name=f"team-{number}", parent=root, deserved=amounts)
        for number in range(int(QUEUES * scale / 10))
    )
    Queue.objects.bulk_create(
        Queue(name=f"{team.name}-{number}", parent=team, deserved=amounts, guarantee=amounts)
        for team in teams
        for number in range(9)
    )
    QueueFigures.objects.bulk_create(
        QueueFigures(
            queue=queue, allocated=amounts, deserved=amounts, request=amounts, nominal_share=amounts
        )
        for queue in Queue.objects.all()
    )
    ClusterState.objects.update(total=amounts)
    user = get_user_model().objects.create_superuser("bench")
    _submit_jobs(int(JOBS * scale))
    return create_token(user, "bench", ("admin",), by=SYSTEM).secret


def _submit_jobs(number: int) -> None:
    """Rows as a submit leaves them, all at once."""
    from scheduler.domain.resources import Resources
    from scheduler.models import Job, Pod, PodClass, PodGroup, Queue

    queue = Queue.objects.get(name="team-0-0")
    kind = PodClass.objects.create(
        digest="bench", requests=Resources.parse({"cpu": "1", "memory": "1Gi"})
    )
    tasks = [{**job("x")["spec"]["tasks"][0], "minAvailable": 4}]
    jobs = Job.objects.bulk_create(
        Job(namespace="default", name=f"there-{index}", queue=queue, min_available=4, tasks=tasks)
        for index in range(number)
    )
    groups = PodGroup.objects.bulk_create(
        PodGroup(namespace="default", name=job.name, queue=queue, job=job, min_member=4)
        for job in jobs
    )
    Pod.objects.bulk_create(
        Pod(
            namespace="default",
            name=f"{group.name}-{index}",
            podgroup=group,
            pod_class=kind,
            task="worker",
            index=index,
        )
        for group in groups
        for index in range(4)
    )


def job(name: str) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    tasks = [{"name": "worker", "replicas": 4, "template": {"spec": {"containers": [container]}}}]
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"queue": f"team-0-{random.randrange(9)}", "tasks": tasks},
    }


@contextmanager
def _server() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "tests.bench.site:application",
        "--port",
        str(port),
        "--log-level",
        "error",
        "--lifespan",
        "off",
    ]
    process = subprocess.Popen(
        command, env={**os.environ, "ALLOWED_HOSTS": "127.0.0.1", "SECURE_COOKIES": "0"}
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1200):
            try:
                httpx.get(f"{address}/bench/empty/", trust_env=False)
                break
            except httpx.TransportError:
                assert process.poll() is None, "the server did not start"
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _sessions() -> Iterator[None]:
    """Sessions one after the other, in a thread of this process, which is not the server's."""
    from scheduler.services.sessions.runner import SessionRunner

    stop = threading.Event()

    def work() -> None:
        runner = SessionRunner("bench")
        while not stop.is_set():
            runner.run()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stop.set()
    thread.join()


def _asks(client: httpx.Client) -> dict[str, Ask]:
    numbers = itertools.count()
    return {
        EMPTY: lambda _: client.get("/bench/empty/"),
        "queues/, the first 100 of 1,000": lambda _: client.get("/api/v1/queues/"),
        "queues/?page_size=1000": lambda _: client.get("/api/v1/queues/?page_size=1000"),
        "jobs/, a page of 100": lambda _: client.get("/api/v1/jobs/"),
        "submit a gang of 4": lambda _: client.post(
            "/api/v1/jobs/", json=job(f"new-{next(numbers)}")
        ),
        "explain": lambda number: client.get(
            f"/api/v1/podgroups/default/there-{number % 100}/explain/"
        ),
    }


def _steady(asks: Mapping[str, Ask], rounds: int, requests: int) -> Found:
    """Each contestant in turn, a request every so many seconds, whatever the last one took."""
    for ask in asks.values():
        ask(0)
    found: Found = {name: [] for name in asks}
    for _ in range(rounds):
        for name, seconds in _round(asks, requests).items():
            found[name].append(seconds)
    return found


def _round(asks: Mapping[str, Ask], requests: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in asks}
    due = time.perf_counter()
    for number in range(requests):
        for name, ask in asks.items():
            due += _EVERY_SECONDS
            time.sleep(max(0.0, due - time.perf_counter()))
            begin = time.perf_counter()
            ask(number).raise_for_status()
            found[name].append(time.perf_counter() - begin)
            due = max(due, time.perf_counter())
    return found


def _rows(when: str, found: Found, idle: Found) -> list[Row]:
    return [
        {
            "what": f"{when}: {name}",
            **_milliseconds(rounds, 0.5, "p50"),
            **_milliseconds(rounds, 0.99, "p99"),
            **_ratios(rounds, found[EMPTY], 0.5, "p50OfEmpty"),
            **_ratios(rounds, found[EMPTY], 0.99, "p99OfEmpty"),
            **_ratios(rounds, idle[name], 0.99, "p99OfIdle"),
            "requests": sum(map(len, rounds)),
        }
        for name, rounds in found.items()
    ]


def _milliseconds(rounds: Sequence[list[float]], part: float, name: str) -> Row:
    values = [_part(seconds, part) * 1000 for seconds in rounds]
    return {f"{name}Ms": round(median(values), 2), **_least_and_most(values, name, "Ms")}


def _ratios(
    rounds: Sequence[list[float]], floor: Sequence[list[float]], part: float, name: str
) -> Row:
    pairs = zip(rounds, floor, strict=True)
    values = [_part(mine, part) / _part(other, part) for mine, other in pairs]
    return {name: round(median(values), 2), **_least_and_most(values, name)}


def _least_and_most(values: Sequence[float], name: str, unit: str = "") -> Row:
    return {
        f"{name}Min{unit}": round(min(values), 2),
        f"{name}Max{unit}": round(max(values), 2),
    }


def _part(seconds: list[float], part: float) -> float:
    ordered = sorted(seconds)
    return ordered[math.ceil(part * len(ordered)) - 1]
