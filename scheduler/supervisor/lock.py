"""One supervisor per `var/`: a lock that ends with its holder, even if the holder is killed."""

from __future__ import annotations

import fcntl
import json
import os
from types import TracebackType

from scheduler.supervisor.installation import Installation
from scheduler.supervisor.problems import StartError

LOCK_FILE = "supervisor.lock"


class SupervisorLock:
    """Held while the block runs. The file says who holds it.

    The lock itself is the kernel's, so a killed holder leaves nothing behind.
    """

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._path = installation.var / LOCK_FILE

    def __enter__(self) -> SupervisorLock:
        # Children do not inherit the lock: Python opens files close-on-exec.
        self._file = self._path.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartError(self._already_running()) from None
        holder = {"pid": os.getpid(), "address": self._installation.address}
        self._write(json.dumps(holder))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._write("")
        self._file.close()

    def _write(self, text: str) -> None:
        self._file.truncate(0)
        self._file.write(text)
        self._file.flush()

    def _already_running(self) -> str:
        return (
            f"Fumarole is already running on {self._installation.var}: {self._holder()}. "
            "Stop it first, or give this one a folder and a port of its own: "
            "FUMAROLE_VAR=/path/to/folder PORT=…"
        )

    def _holder(self) -> str:
        self._file.seek(0)
        try:
            holder = json.loads(self._file.read())
            return f"process {holder['pid']}, at {holder['address']}"
        except (ValueError, KeyError, TypeError):
            return "a process that is just starting or stopping"
