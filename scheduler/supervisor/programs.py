"""The processes of an installation: what is run, and in which order it is stopped."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from scheduler.supervisor.installation import HOST, Installation
from scheduler.supervisor.redis_server import OwnRedis, work_waits


class Stage(IntEnum):
    """Stopped from the highest down: first what makes work, then what does it, then what shows it, last what they all talk through."""

    REDIS = 0
    WEB = 1
    WORKER = 2
    BEAT = 3


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    command: tuple[str, ...]
    stage: Stage
    stop_seconds: float = 5.0  # from the request to stop until it is killed
    is_quiet: bool = False  # its output is shown only when it dies
    pulse: Path | None = None  # the file it counts in while it works (see pulse.py)
    work_waits: Callable[[], bool] = lambda: True  # whether it has a reason to count


# uvicorn passes the signal on to itself when it has shut down in good order, so it ends by SIGTERM.
CLEAN_EXITS = frozenset({0, -signal.SIGTERM})

_CELERY = (sys.executable, "-m", "celery", "--quiet", "--skip-checks", "-A", "dashboard")


def redis_program(server: OwnRedis) -> Program:
    return Program("redis", (server.binary, str(server.config)), Stage.REDIS, is_quiet=True)


def prepare_program() -> Program:
    return Program("setup", (sys.executable, "manage.py", "prepare"), Stage.WEB)


def web_program(installation: Installation) -> Program:
    listen = ("--host", HOST, "--port", str(installation.port))
    protocol = (
        "--loop",
        "uvloop",
        "--http",
        "dashboard.http.protocol:TimedProtocol",
        "--ws",
        "websockets-sansio",
    )
    # Compression costs more than it saves with a thousand open pages; open sockets must not hold up a stop.
    options = (
        "--ws-per-message-deflate",
        "false",
        "--timeout-graceful-shutdown",
        "2",
        "--no-access-log",
        "--lifespan",
        "off",
    )
    # Which proxies are believed is the setting TRUSTED_PROXIES; uvicorn would believe everything on this machine.
    proxies = ("--no-proxy-headers",)
    command = (
        sys.executable,
        "-m",
        "uvicorn",
        "dashboard.asgi:application",
        *listen,
        *protocol,
        *options,
        *proxies,
    )
    return Program("web", command, Stage.WEB)


def scheduler_program(installation: Installation) -> Program:
    """Sessions run one after the other in a process of their own, which keeps the snapshot between them."""
    return _worker_program(installation, "scheduler", queue="scheduler", concurrency=1)


def worker_program(installation: Installation) -> Program:
    return _worker_program(installation, "worker", queue="default", concurrency=2)


def beat_program() -> Program:
    return Program("beat", (*_CELERY, "beat", "--loglevel", "warning", "--pidfile", ""), Stage.BEAT)


def _worker_program(
    installation: Installation, name: str, *, queue: str, concurrency: int
) -> Program:
    pool = ("-Q", queue, "-n", f"{queue}@%h", "-P", "prefork", "-c", str(concurrency))
    alone = (
        "--without-gossip",
        "--without-mingle",
    )  # the workers need to know nothing of each other, and start sooner
    return Program(
        name,
        (*_CELERY, "worker", *pool, *alone, "--loglevel", "warning"),
        Stage.WORKER,
        pulse=installation.var / f"{name}-pulse",
        work_waits=lambda: work_waits(installation.redis_url(), queue),
    )
