"""One supervised process, in a process group of its own. Its output is read line by line."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections import deque
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from scheduler.supervisor.orphans import die_with_parent
from scheduler.supervisor.programs import Program
from scheduler.supervisor.pulse import PULSE_FILE_VARIABLE

LAST_LINES = 20
_CHUNK = 65536


class Child:
    """Create it in the main thread: the kernel ties its life to the thread that started it."""

    def __init__(self, program: Program, environment: Mapping[str, str], folder: Path) -> None:
        self.program = program
        self.last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self._unfinished = b""
        self._process = subprocess.Popen(  # noqa: S603 - the commands are our own
            program.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_with_pulse(environment, program),
            cwd=folder,
            process_group=0,
            umask=0o077,  # other users of this machine must not read the database
            preexec_fn=partial(die_with_parent, os.getpid()),  # noqa: PLW1509 - one thread
        )
        os.set_blocking(self.output, False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> int:
        """The file descriptor its output is read from."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def exit_code(self) -> int | None:
        """None while it runs. A negative number is the signal that ended it."""
        return self._process.poll()

    def read_lines(self) -> list[str]:
        """The lines it has finished since the last call."""
        *lines, self._unfinished = (self._unfinished + self._read()).split(b"\n")
        return self._remember(lines)

    def close(self) -> list[str]:
        """After its end: kill what it left behind. Gives the lines that were not read yet."""
        self.signal(signal.SIGKILL)
        lines = (self._unfinished + self._read()).split(b"\n")
        self._unfinished = b""
        assert self._process.stdout is not None
        self._process.stdout.close()
        return self._remember([line for line in lines if line])

    def signal(self, number: signal.Signals) -> None:
        """SIGKILL goes to the whole group, other signals to the process itself."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if number == signal.SIGKILL:
                os.killpg(self.pid, number)
            elif self._process.poll() is None:
                os.kill(self.pid, number)

    def _read(self) -> bytes:
        parts = []
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self.output, _CHUNK):
                parts.append(part)
        return b"".join(parts)

    def _remember(self, raw: list[bytes]) -> list[str]:
        lines = [line.decode(errors="replace").rstrip() for line in raw]
        self.last_lines.extend(lines)
        return lines


def _with_pulse(environment: Mapping[str, str], program: Program) -> dict[str, str]:
    if program.pulse is None:
        return dict(environment)
    return {**environment, PULSE_FILE_VARIABLE: str(program.pulse)}


def how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"
