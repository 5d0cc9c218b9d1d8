"""One program of the control plane as a process that cannot outlive the tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic, sleep

from scheduler.supervisor.orphans import die_with_parent

_PATIENCE_SECONDS = 300.0  # how long a broken start may take; a swamped machine is slow
_STOP_SECONDS = 3.0  # with open watches the API server would take a minute


class NotStarted(Exception):
    """The program ended, or did not become ready; the text has its last lines."""


class Process:
    """Started, watched and stopped. The kernel kills it if this process is killed."""

    def __init__(
        self,
        name: str,
        command: list[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.name = name
        self._log = log
        parent = os.getpid()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509 no lock is taken there
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def wait_until(self, is_ready: Callable[[], bool]) -> None:
        deadline = monotonic() + _PATIENCE_SECONDS
        while not is_ready():
            if self._process.poll() is not None:
                raise NotStarted(f"{self.name} ended. {self._last_lines()}")
            if monotonic() > deadline:
                raise NotStarted(f"{self.name} did not become ready. {self._last_lines()}")
            sleep(0.05)

    def wait_for_end(self) -> None:
        self._process.wait(_PATIENCE_SECONDS)

    def stop(self, seconds: float = _STOP_SECONDS) -> None:
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _last_lines(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "Its last lines:\n" + "\n".join(lines[-20:])
