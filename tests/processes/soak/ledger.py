"""What clients asked for and were told: what the checker holds against the database."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Deed:
    """One thing that somebody wanted, however often they had to ask.

    `mark` is a text of its own: the name of a job, or the reason of a command. `status` is of the
    last answer; 0 if there was none, and so nobody knows whether it was done.
    """

    kind: str
    mark: str
    target: str
    request_ids: list[str] = field(default_factory=list)
    status: int = 0
    is_over: bool = False  # nobody asks any more

    @property
    def is_done(self) -> bool:
        return 200 <= self.status < 400

    @property
    def is_refused(self) -> bool:
        return 400 <= self.status < 500


class Ledger:
    """Of all clients together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deeds: list[Deed] = []
        self.answers: Counter[str] = Counter()
        self.problems: list[str] = []
        self.last_done_at = 0.0

    def open(self, deed: Deed) -> Deed:
        with self._lock:
            self._deeds.append(deed)
        return deed

    def note_answer(self, kind: str, status: int) -> None:
        with self._lock:
            self.answers[f"{kind} {status or 'none'}"] += 1

    def note_problem(self, words: str) -> None:
        with self._lock:
            self.problems.append(words)

    def take_problems(self) -> list[str]:
        with self._lock:
            found, self.problems = self.problems, []
            return found

    def over(self, kind: str = "") -> Iterator[Deed]:
        """Those that are answered or given up, oldest first."""
        with self._lock:
            deeds = list(self._deeds)
        for deed in deeds:
            if deed.is_over and (not kind or deed.kind == kind):
                yield deed
