"""The processes of an installation: their commands, and the order in which they are stopped."""

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
    """The highest stage is stopped first.

    First what creates work, then what does it, then what shows it, and last what they all use.
    """

    REDIS = 0
    WEB = 1
    WORKER = 2
    BEAT = 3


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    command: tuple[str, ...]
    stage: Stage
    stop_seconds: float = 5.0  # from SIGTERM until it is killed
    is_quiet: bool = False  # its output is shown only when it dies
    pulse: Path | None = None  # the file in which it counts while it works (see pulse.py)
    work_waits: Callable[[], bool] = lambda: True  # whether there is work for it


# After an orderly shutdown uvicorn sends itself the signal again, so it ends by SIGTERM.
CLEAN_EXITS = frozenset({0, -signal.SIGTERM})

_CELERY = (sys.executable, "-m", "dashboard.worker")


def redis_program(server: OwnRedis) -> Program:
    return Program("redis", (server.binary, str(server.config)), Stage.REDIS, is_quiet=True)


def prepare_program() -> Program:
    return Program("setup", (sys.executable, "manage.py", "prepare"), Stage.WEB)


def web_program(installation: Installation) -> Program:
    uvicorn = (sys.executable, "-m", "uvicorn", "dashboard.asgi:application")
    options = (
        *("--host", HOST),
        *("--port", str(installation.port)),
        *("--loop", "uvloop"),
        *("--http", "dashboard.http.protocol:TimedProtocol"),
        *("--ws", "websockets-sansio"),
        # With a thousand open pages, compression costs more than it saves.
        *("--ws-per-message-deflate", "false"),
        *("--timeout-graceful-shutdown", "2"),  # open sockets must not delay a stop
        "--no-access-log",
        *("--lifespan", "off"),
        # The setting TRUSTED_PROXIES decides. uvicorn would trust everything on this machine.
        "--no-proxy-headers",
    )
    return Program("web", (*uvicorn, *options), Stage.WEB)


def scheduler_program(installation: Installation) -> Program:
    """Runs sessions one after the other, and keeps the snapshot between them."""
    return _worker_program(installation, "scheduler", queue="scheduler", concurrency=1)


def worker_program(installation: Installation) -> Program:
    return _worker_program(installation, "worker", queue="default", concurrency=2)


def watcher_program() -> Program:
    """Mirrors a Kubernetes cluster. Killed at any moment, it begins anew."""
    return Program("watcher", (sys.executable, "manage.py", "watcher"), Stage.WORKER)


def beat_program() -> Program:
    return Program("beat", (*_CELERY, "beat"), Stage.BEAT)


def _worker_program(
    installation: Installation,
    name: str,
    *,
    queue: str,
    concurrency: int,
) -> Program:
    command = (*_CELERY, "worker", "-Q", queue, "-n", f"{queue}@%h", "-c", str(concurrency))
    return Program(
        name,
        command,
        Stage.WORKER,
        pulse=installation.var / f"{name}-pulse",
        work_waits=lambda: work_waits(installation.redis_url(), queue),
    )
