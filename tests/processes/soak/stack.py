"""All processes of an installation, one by one, on a PostgreSQL and a Redis of their own.

with Stack(folder) as stack:
    stack.kill("web-1")
    stack.start("web-1")

Between the processes and their servers there are proxies that can be slow and cut connections. The
kernel ends what a thread has started with that thread: start and end it in the same one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from dashboard.worker.life import STOPPED_WORKING
from scheduler.supervisor.installation import Installation
from scheduler.supervisor.programs import (
    beat_program,
    scheduler_program,
    web_program,
    worker_program,
)
from tests.control_plane.fumarole import renamed
from tests.control_plane.process import Process
from tests.processes.faults.proxy import Proxy
from tests.processes.soak.servers import Postgres, Redis
from tests.running import BASE, clean_environment, random_port

WORKER = "worker"
BEAT = "beat"


class Stack:
    """`wraps` are words before the command of a process, such as those that put it on another
    machine. `listen` is where the servers are reached, past the proxies if it is not this machine.
    """

    def __init__(
        self,
        folder: Path,
        *,
        webs: int = 2,
        schedulers: int = 2,
        listen: str = "",
        wraps: Mapping[str, Sequence[str]] | None = None,
        **environment: str,
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._listen = listen
        self._wraps = wraps or {}
        self._given = environment
        self.web_ports = {f"web-{number}": random_port() for number in range(1, webs + 1)}
        self._schedulers = [f"scheduler-{number}" for number in range(1, schedulers + 1)]
        self._running: dict[str, Process] = {}
        self._open = ExitStack()

    def __enter__(self) -> Stack:
        self.var = self.data / "var"
        for place in (self.var, self.data / "postgres", self.folder / "logs"):
            place.mkdir(parents=True, exist_ok=True)
        self._open.callback(self.end)
        everywhere = "0.0.0.0" if self._listen else "127.0.0.1"
        self.postgres = Postgres(self.data / "postgres", self.log_of("postgres"), everywhere)
        self.redis = Redis(self.folder, self.log_of("redis"), everywhere)
        self.postgres.initialize()
        self.postgres.start()
        self.postgres.wait_until_it_answers()
        self.redis.start()
        self.database_proxy = self._open.enter_context(Proxy(self.postgres.port))
        self.redis_proxy = self._open.enter_context(Proxy(self.redis.port))
        self.environment = self._environment()
        self.manage("prepare")
        self._commands = self._all_commands()
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def end(self) -> None:
        for name in reversed(list(self._running)):
            self._running.pop(name).kill()
        self.redis.kill()
        self.postgres.kill()

    def _environment(self) -> dict[str, str]:
        if self._listen:
            database, redis = self.postgres.url(self._listen), self.redis.url(self._listen)
        else:
            database = self.postgres.url(port=self.database_proxy.port)
            redis = self.redis.url(port=self.redis_proxy.port)
        return {
            **clean_environment(self.var, 0),
            "PYTHONUNBUFFERED": "1",
            "SECRET_KEY": "a key of the tests" * 3,
            "DATABASE_URL": database,
            "REDIS_URL": redis,
            "ALLOWED_HOSTS": "127.0.0.1,localhost",
            "SECURE_COOKIES": "0",
            "SECURE_HSTS_SECONDS": "0",
            "SCHEDULER_LEASE_SECONDS": "6",
            "API_RATE_PER_MINUTE": "0",
            "LOG_LEVEL": "WARNING",
            **self._given,
        }

    def _all_commands(self) -> dict[str, list[str]]:
        here = Installation(self.var, 0)
        found: dict[str, list[str]] = {}
        for name, port in self.web_ports.items():
            found[name] = list(web_program(Installation(self.var, port)).command)
        for name in self._schedulers:
            found[name] = renamed(scheduler_program(here).command, f"{name}@%h")
        found[WORKER] = list(worker_program(here).command)
        found[BEAT] = list(beat_program().command)
        return found

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=BASE, env=self.environment, check=True, capture_output=True, text=True
        )
        return done.stdout

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._commands)

    @property
    def addresses(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.web_ports.values()]

    def start_all(self) -> None:
        for name in self.names:
            self.start(name)

    def start(self, name: str) -> None:
        command = [*self._wraps.get(name, ()), *self._commands[name]]
        self._running[name] = Process(
            name, command, self.log_of(name), self.environment, folder=BASE
        )

    def kill(self, name: str) -> None:
        """kill -9. What it had forked ends with it."""
        self._running.pop(name).kill()

    def stop(self, name: str, seconds: float) -> None:
        """As systemd does: SIGTERM, and SIGKILL if that does not help."""
        self._running.pop(name).stop(seconds)

    def pid_of(self, name: str) -> int:
        return self._running[name].pid

    def start_what_has_ended(self) -> list[str]:
        """As whoever looks after services does. Those that ended and should not have: a worker may
        end itself when it is stuck.
        """
        astray = []
        for name, process in list(self._running.items()):
            if process.has_ended:
                if process.exit_code != STOPPED_WORKING:
                    astray.append(f"{name} ended by itself with {process.exit_code}")
                self.start(name)
        if self.postgres.has_ended:
            self.postgres.start()
        return astray

    def log_of(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"
