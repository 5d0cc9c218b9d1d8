"""A whole Fumarole beside a control plane, without the web: real processes on a real database.

Each of them can be killed and started again, alone.

with Fumarole(folder, kubeconfig=plane.kubeconfig, database=address) as fumarole:
    fumarole.kill(WATCHER)
    fumarole.start(WATCHER)
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scheduler.supervisor.installation import Installation
from scheduler.supervisor.programs import (
    beat_program,
    scheduler_program,
    watcher_program,
    worker_program,
)
from tests.control_plane.process import Process
from tests.dashboard.conftest import RedisServer
from tests.running import BASE, clean_environment, descendants_of

WATCHER = "watcher"
WORKER = "worker"
SPARE_WORKER = "worker-2"
"""Not started at first."""
BEAT = "beat"
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def scheduler_name(number: int) -> str:
    """Of the first one: scheduler-1."""
    return f"scheduler-{number}"


class Fumarole:
    """The commands are those of `manage.py up`. `environment` is added to that of all processes.

    Whoever starts one alone may give it an environment of its own, such as another clock.
    """

    def __init__(
        self,
        folder: Path,
        *,
        kubeconfig: Path,
        database: str,
        schedulers: int = 1,
        **environment: str,
    ) -> None:
        self.folder = folder
        self._redis = RedisServer(folder)
        self._commands = _commands(Installation(folder / "var", 0), schedulers)
        self._running: dict[str, Process] = {}
        self._spent: dict[str, float] = {}  # processor seconds of those that were killed
        self._environment = {
            **clean_environment(folder / "var", 0),
            "PYTHONUNBUFFERED": "1",
            "SECRET_KEY": "a key of the tests",
            "DATABASE_URL": database,
            "REDIS_URL": self._redis.url,
            "SCHEDULER_CLUSTER": "kubernetes",
            "KUBERNETES_MODE": "schedule",
            "KUBECONFIG": str(kubeconfig),
            "LOG_LEVEL": "WARNING",
            **environment,
        }

    def __enter__(self) -> Fumarole:
        (self.folder / "var").mkdir(parents=True, exist_ok=True)
        self._redis.start()
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(migrate, cwd=BASE, env=self._environment, check=True)
        for name in self.names:
            self.start(name)
        return self

    def __exit__(self, *exception: object) -> None:
        for name in reversed(list(self._running)):
            self.kill(name)
        self._redis.stop()

    @property
    def names(self) -> tuple[str, ...]:
        """Of those that run from the start."""
        return tuple(name for name in self._commands if name != SPARE_WORKER)

    def start(self, name: str, environment: Mapping[str, str] | None = None) -> None:
        given = {**self._environment, **(environment or {})}
        self._running[name] = Process(
            name, self._commands[name], self.log_of(name), given, folder=BASE
        )

    def kill(self, name: str) -> None:
        """kill -9. What it had forked ends with it."""
        self._spent[name] = self.processor_seconds(name)
        self._running.pop(name).kill()

    def start_what_has_ended(self) -> list[str]:
        """As whoever looks after services does. The names of those that had ended by themselves."""
        ended = [name for name, process in self._running.items() if process.has_ended]
        for name in ended:
            self.start(name)
        return ended

    def log_of(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def pid_of(self, name: str) -> int:
        return self._running[name].pid

    @property
    def pid_of_redis(self) -> int:
        return self._redis.pid

    def processor_seconds(self, name: str) -> float:
        """Of the process, of those that were killed in its place, and of all that they forked."""
        spent = self._spent.get(name, 0.0)
        if name not in self._running:
            return spent
        pid = self.pid_of(name)
        living = {pid, *descendants_of(pid)}
        return spent + sum(processor_seconds_of(each) for each in living)


def _commands(installation: Installation, schedulers: int) -> dict[str, list[str]]:
    found = {WATCHER: list(watcher_program().command)}
    for number in range(1, schedulers + 1):
        command = scheduler_program(installation).command
        found[scheduler_name(number)] = renamed(command, f"scheduler{number}@%h")
    worker = worker_program(installation).command
    found[WORKER] = list(worker)
    found[SPARE_WORKER] = renamed(worker, "spare@%h")
    found[BEAT] = list(beat_program().command)
    return found


def renamed(command: Sequence[str], name: str) -> list[str]:
    """Two workers of one machine need two names."""
    given = list(command)
    given[given.index("-n") + 1] = name
    return given


def processor_seconds_of(pid: int) -> float:
    """With those of its children that have ended; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(each) for each in fields[11:15]) / _TICKS_A_SECOND
