"""One terminal for all processes: every line says whose it is, in that one's colour."""

from __future__ import annotations

import os
import select
import sys
from typing import TextIO

OWN_NAME = "fumarole"
_COLOURS = {
    OWN_NAME: "1",
    "redis": "31",
    "web": "36",
    "scheduler": "32",
    "worker": "33",
    "beat": "35",
    "setup": "34",
}
_WIDTH = 9


class Console:
    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._coloured = self._stream.isatty() and "NO_COLOR" not in os.environ
        self._failed = False

    @property
    def is_terminal(self) -> bool:
        """Somebody looks at it. What is written to a file or a pipe may be kept, and be read by others."""
        return self._stream.isatty()

    @property
    def is_gone(self) -> bool:
        """Nobody reads any more, as in `make run | head` or after the terminal was closed."""
        return self._failed or _has_hung_up(self._stream)

    def line(self, name: str, text: str) -> None:
        self._write(f"{self._prefix(name)} {text}\n")

    def say(self, text: str) -> None:
        self.line(OWN_NAME, text)

    def alarm(self, text: str) -> None:
        """Something that somebody should see to: in red, every line of it."""
        for line in text.splitlines():
            self.say(f"\x1b[1;31m{line}\x1b[0m" if self._coloured else line)

    def _prefix(self, name: str) -> str:
        prefix = f"{name:<{_WIDTH}} |"
        return f"\x1b[{_COLOURS.get(name, '37')}m{prefix}\x1b[0m" if self._coloured else prefix

    def _write(self, text: str) -> None:
        if self._failed:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (BrokenPipeError, OSError):
            self._failed = True


def _has_hung_up(stream: TextIO) -> bool:
    """Asked without writing: a hang-up is not always told by a signal, as when `make` leads the session of the terminal."""
    poll = select.poll()
    try:
        poll.register(stream.fileno(), 0)
    except (OSError, ValueError):  # not a file, as in tests
        return False
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
