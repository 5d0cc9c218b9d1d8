"""The parts of the benchmark in the order in which they run, and what each may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.bench import engine
from tests.bench.api import api
from tests.bench.database import sessions_end_to_end
from tests.bench.database_growth import database_growth
from tests.bench.job_writes import job_writes
from tests.bench.large import large, large_database
from tests.bench.mirror import mirror
from tests.bench.noted import console
from tests.bench.quality import quality
from tests.bench.queue_writes import queue_writes
from tests.bench.requests import requests
from tests.bench.sockets import sockets
from tests.bench.start import start
from tests.bench.submits import submits

Rows = list[dict[str, object]]


@dataclass(frozen=True, slots=True)
class Part:
    measure: Callable[[float, int], Rows]
    """Takes the scale and the number of repetitions."""
    seconds: int
    """What it may take on 2 cores that have nothing else to do."""
    is_extra: bool = False
    """Measured only when it is asked for."""


PARTS: dict[str, Part] = {
    "sessions": Part(engine.sessions, 10),
    "twin": Part(engine.twin, 45),
    "growth": Part(engine.growth, 5),
    "actions": Part(engine.actions, 10),
    "crowds": Part(engine.crowds, 20),
    "alike": Part(engine.alike, 15),
    "memory": Part(engine.memory, 20),
    "requests": Part(requests, 30),
    "api": Part(api, 60),
    "queue-writes": Part(queue_writes, 40),
    "job-writes": Part(job_writes, 40),
    "submits": Part(submits, 75),
    "database": Part(sessions_end_to_end, 40),
    "database-growth": Part(database_growth, 40),
    "mirror": Part(mirror, 20),
    "console": Part(console, 70),
    "start": Part(start, 50),
    "sockets": Part(sockets, 120, is_extra=True),
    "large": Part(large, 300, is_extra=True),
    "large-database": Part(large_database, 400, is_extra=True),
    "quality": Part(quality, 1800, is_extra=True),
}
