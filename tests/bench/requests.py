"""What a request costs: processor time and statements, in the process that answers it.

The same requests as `api`, given to the site's own handler in one thread without a socket. Clocks
say little on a machine that others use too. Processor time does, in turns with an empty view.

A list is asked for in two ways: when nothing was written since it was asked for last, and right
after a job was submitted.
"""

from __future__ import annotations

import io
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from tests.bench.api import fill, job
from tests.bench.database import a_database

Row = dict[str, object]
Ask = Callable[[], int]
Seconds = tuple[float, float]

EMPTY = "an empty view with one SELECT 1"
SUBMIT = "submit a gang of 4"
LISTS = ("queues/, the first 100 of 1,000", "queues/?page_size=1000", "jobs/, a page of 100")
_BATCH = 10  # requests in one measurement: the clock of the processor is coarse


def requests(scale: float, repetitions: int) -> list[Row]:
    """Medians, with the ratio to the empty view batch by batch and how far it spreads."""
    os.environ |= {"ALLOWED_HOSTS": "127.0.0.1", "SECURE_COOKIES": "0"}
    os.environ["CONN_MAX_AGE"] = "86400"  # the server's process is the same throughout
    with a_database():
        asks = _asks(fill(scale))
        found: dict[str, list[Seconds]] = {name: [] for name in asks}
        for _ in range(2):
            for ask in asks.values():
                ask()
        for _ in range(3 * repetitions):
            for name, ask in asks.items():
                found[name].append(_cpu(ask))
        statements = {}
        for name, ask in asks.items():
            ask()
            statements[name] = _statements(ask)
        for name in LISTS:
            after = f"{name}, after a submit"
            found[after] = [_cpu(asks[name], asks[SUBMIT]) for _ in range(3 * repetitions)]
            asks[SUBMIT]()
            statements[after] = _statements(asks[name])
    return [_row(name, seconds, found[EMPTY], statements[name]) for name, seconds in found.items()]


def _asks(token: str) -> dict[str, Ask]:
    from tests.bench.site import application

    numbers = itertools.count()
    started = os.getpid()

    def ask(path: str, body: Callable[[], Any] | None = None, query: str = "") -> int:
        return _ask(application, token, path, query, body)

    return {
        EMPTY: lambda: ask("/bench/empty/"),
        "queues/, the first 100 of 1,000": lambda: ask("/api/v1/queues/"),
        "queues/?page_size=1000": lambda: ask("/api/v1/queues/", query="page_size=1000"),
        "jobs/, a page of 100": lambda: ask("/api/v1/jobs/"),
        SUBMIT: lambda: ask("/api/v1/jobs/", lambda: job(f"new-{started}-{next(numbers)}")),
        "explain": lambda: ask("/api/v1/podgroups/default/there-0/explain/"),
        "one queue": lambda: ask("/api/v1/queues/team-0-0/"),
    }


def _ask(
    application: Any, token: str, path: str, query: str, body: Callable[[], Any] | None
) -> int:
    sent = b"" if body is None else json.dumps(body()).encode()
    scope = {
        "type": "http",
        "method": "GET" if body is None else "POST",
        "path": path,
        "query_string": query.encode(),
        "headers": [
            (b"host", b"127.0.0.1"),
            (b"authorization", f"Bearer {token}".encode()),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(sent)).encode()),
            (b"accept", b"*/*"),
            (b"accept-encoding", b"gzip, deflate"),
            (b"user-agent", b"bench"),
        ],
    }
    answer = application._respond(scope, io.BytesIO(sent))
    assert answer.status_code < 300, (path, answer.status_code, answer.content[:500])
    return len(answer.content)


def _cpu(ask: Ask, before: Ask | None = None) -> Seconds:
    """Seconds of one request: of this process, and of the database server for it.

    `before` is done in front of each, and not measured. Without it nothing is written between them:
    the first is not measured, because something may have been written before that one.
    """
    if before is None:
        ask()
    ours = server = 0.0
    for _ in range(_BATCH):
        if before is not None:
            before()
        server -= _server_seconds()
        ours -= process_time()
        ask()
        ours += process_time()
        server += _server_seconds()
    return ours / _BATCH, server / _BATCH


def _server_seconds() -> float:
    """Processor time of the server's process that answers this connection."""
    from django.db import connection

    connection.ensure_connection()
    ran = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text()
    return int(ran.split()[0]) / 1e9


def _statements(ask: Ask) -> int:
    from django.db import connection

    asked = itertools.count()
    with connection.execute_wrapper(lambda execute, *given: (next(asked), execute(*given))[1]):
        ask()
    return next(asked)


def _row(name: str, found: list[Seconds], empty: list[Seconds], statements: int) -> Row:
    ours = [seconds for seconds, _ in found]
    ratios = sorted(sum(mine) / sum(floor) for mine, floor in zip(found, empty, strict=True))
    return {
        "what": name,
        "cpuMs": round(median(ours) * 1000, 3),
        "cpuMinMs": round(min(ours) * 1000, 3),
        "cpuMaxMs": round(max(ours) * 1000, 3),
        "serverCpuMs": round(median(server for _, server in found) * 1000, 3),
        "ofEmpty": round(median(ratios), 2),
        "ofEmptyMin": round(ratios[0], 2),
        "ofEmptyMax": round(ratios[-1], 2),
        "statements": statements,
        "requests": len(found) * _BATCH,
    }
