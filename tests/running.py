"""A real installation for tests: `manage.py up` in a folder and on a port of its own, watched from
outside.

with Running(tmp_path / "var", demo=False) as site: # started, and its web process answers
site.get("/accounts/login/").status_code site.kill("redis"); site.wait_until_sessions_run()
"""

from __future__ import annotations

import logging
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx

BASE = Path(__file__).resolve().parent.parent
PATIENCE_SECONDS = 150.0  # only how long a broken test may take, not a measurement
logging.getLogger("httpx").setLevel(logging.WARNING)  # polling would fill the report of a failure
_MARKS = {
    "redis": "redis-server",
    "web": "uvicorn",
    "scheduler": "scheduler@%h",
    "worker": "default@%h",
    "beat": " beat ",
}


class Running:
    def __init__(
        self,
        var: Path,
        *,
        command: tuple[str, ...] = (sys.executable, "manage.py", "up"),
        port: int | None = None,
        demo: bool = False,
        **environment: str,
    ) -> None:
        self.var = var
        self.command = command
        self.port = port or random_port()
        self.demo = demo
        self._environment = environment
        self.lines: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Running:
        self.start()
        self.wait_for_line("Ctrl-C stops it")
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self._reader.join(PATIENCE_SECONDS)

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command,
            cwd=BASE,
            env=clean_environment(self.var, self.port, demo=self.demo, **self._environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def output(self) -> str:
        return "\n".join(self.lines)

    def wait_for_line(self, text: str) -> None:
        self.wait(lambda: any(text in line for line in self.lines), f"the line “{text}”")

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            ended = self.process.poll() is not None and not condition()
            if ended or time.monotonic() > deadline:
                raise AssertionError(
                    f"waited in vain for {what}; exit code {self.process.poll()}; "
                    f"output:\n{self.output()}"
                )
            time.sleep(0.2)

    def wait_for_end(self) -> int:
        code = self.process.wait(PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        return code

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.address + path, timeout=10, follow_redirects=True)

    def is_ready(self) -> bool:
        try:
            return self.get("/readyz").status_code == 200
        except httpx.HTTPError:
            return False

    def wait_until_sessions_run(self) -> None:
        """Until everything is ready and a session has run that began after this call."""
        called_at = time.monotonic()
        self.wait(
            lambda: (
                self.is_ready() and self._seconds_since_session() < time.monotonic() - called_at
            ),
            "a session after now",
        )

    def _seconds_since_session(self) -> float:
        try:
            message = self.get("/readyz").json()["checks"]["sessions"]["message"]
        except httpx.HTTPError:
            return float("inf")
        found = re.search(r"([\d.]+) s ago", message)
        return float(found[1]) if found else float("inf")

    def children(self) -> dict[str, int]:
        """The pids of the processes directly under the supervisor, by their names."""
        commands = {pid: command_line(pid) for pid in children_of(self.process.pid)}
        return {
            name: pid
            for name, mark in _MARKS.items()
            for pid, command in commands.items()
            if mark in command
        }

    def processes(self) -> set[int]:
        """All below the supervisor, the pools of the workers too."""
        return descendants_of(self.process.pid)

    def pool_of(self, name: str) -> list[int]:
        """The pids of the processes that a worker has made."""
        return children_of(self.children().get(name, 0))

    def kill(self, name: str) -> None:
        """kill -9, and wait until another process has its place."""
        before = self.children()[name]
        os.kill(before, signal.SIGKILL)
        self.wait(lambda: self.children().get(name, before) != before, f"another {name}")


def clean_environment(var: Path, port: int, *, demo: bool = False, **more: str) -> dict[str, str]:
    """Nothing of the tests' own settings: what a user has who has set nothing."""
    plain = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {
        **plain,
        "HOME": str(var.parent),
        "FUMAROLE_VAR": str(var),
        "PORT": str(port),
        "DEMO": str(int(demo)),
        **more,
    }


def random_port() -> int:
    while True:
        port = random.randint(
            20000, 32000
        )  # below the ports that the kernel gives to outgoing connections
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


def children_of(pid: int) -> list[int]:
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except OSError:
        return []


def descendants_of(pid: int) -> set[int]:
    children = children_of(pid)
    return set(children).union(*(descendants_of(child) for child in children))


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def is_running(pid: int) -> bool:
    """A zombie does not run any more: it only waits for its parent, in a test container perhaps for
    ever.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
