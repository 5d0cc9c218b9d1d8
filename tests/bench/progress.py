"""What a run tells on the terminal: which part runs, for how long, and how far the whole is."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from time import monotonic

_SAYS_EVERY = 30.0  # seconds, where lines cannot be written over


class Progress:
    def __init__(self, seconds: Mapping[str, float]) -> None:
        """What each part may take, in the order in which they run."""
        self._seconds = seconds
        self._began = monotonic()
        self._said = 0.0
        self._name = ""

    def begin(self, name: str) -> None:
        self._name = name
        self._said = 0.0
        self.tell(0)

    def tell(self, passed: float) -> None:
        line = self._line(passed)
        if sys.stderr.isatty():
            print(f"\r{line:<78}", end="", file=sys.stderr, flush=True)
        elif not passed or passed - self._said >= _SAYS_EVERY:
            self._said = passed
            print(line, file=sys.stderr, flush=True)

    def end(self, how: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{'':<78}\r", end="", file=sys.stderr)
        print(f"{self._place()} {self._name:<16} {how}", file=sys.stderr, flush=True)

    def _line(self, passed: float) -> str:
        return (
            f"{self._place()} {self._name:<16} {passed:3.0f} s of {self._seconds[self._name]:.0f}; "
            f"in all {monotonic() - self._began:3.0f} s of {sum(self._seconds.values()):.0f}"
        )

    def _place(self) -> str:
        names = list(self._seconds)
        return f"{names.index(self._name) + 1:2}/{len(names)}"
