"""One terminal for all processes: every line begins with the name of its process, in its colour."""

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
_OTHER_COLOUR = "37"
_ALARM_COLOUR = "1;31"
_WIDTH = 9


class Console:
    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._coloured = self._stream.isatty() and "NO_COLOR" not in os.environ
        self._failed = False

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads it. A file or a pipe may be kept, and be read by others."""
        return self._stream.isatty()

    @property
    def is_gone(self) -> bool:
        """Nobody reads it any more, as in `make run | head` or after the terminal was closed."""
        return self._failed or _has_hung_up(self._stream)

    def line(self, name: str, text: str) -> None:
        self._write(f"{self._prefix(name)} {text}\n")

    def say(self, text: str) -> None:
        self.line(OWN_NAME, text)

    def alarm(self, text: str) -> None:
        """Something that needs attention: every line in red."""
        for line in text.splitlines():
            self.say(self._in_colour(line, _ALARM_COLOUR))

    def _prefix(self, name: str) -> str:
        return self._in_colour(f"{name:<{_WIDTH}} |", _COLOURS.get(name, _OTHER_COLOUR))

    def _in_colour(self, text: str, colour: str) -> str:
        if not self._coloured:
            return text
        return f"\x1b[{colour}m{text}\x1b[0m"

    def _write(self, text: str) -> None:
        if self._failed:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (BrokenPipeError, OSError):
            self._failed = True


def _has_hung_up(stream: TextIO) -> bool:
    """Whether the other end has gone. Finds out without writing.

    There is not always a signal, for example when `make` leads the terminal's session.
    """
    poll = select.poll()
    try:
        poll.register(stream.fileno(), 0)
    except (OSError, ValueError):  # not a file, as in tests
        return False
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
