"""One turn of a dispatcher: whether what it has claimed may still be begun."""

from __future__ import annotations

import threading
import time

from scheduler.clusters.kubernetes.binding import BINDING_THREADS, BindAnswer
from scheduler.clusters.kubernetes.eviction import EvictAnswer

BEGIN_WITHIN_SECONDS = 10.0
"""Nodes are looked at when decisions are claimed, and a claim lasts three times as long: what is
begun later would go by old news, or do what another dispatcher does already."""
MOST_DOUBTS = BINDING_THREADS
"""In a row: then the server is left alone for a while."""


class Turn:
    """Begins with the claim. Many threads ask it."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._doubts = 0
        self.pause: float | None = None
        """Seconds that the server asked for."""

    @property
    def is_in_trouble(self) -> bool:
        """The server says nothing of use."""
        return self._doubts >= MOST_DOUBTS

    def may_begin(self) -> bool:
        return not self.is_in_trouble and time.monotonic() - self._began < BEGIN_WITHIN_SECONDS

    def note(self, answer: BindAnswer | EvictAnswer, *, is_doubt: bool) -> None:
        with self._lock:
            if self.is_in_trouble:
                return  # others were under way when it began
            if not is_doubt:
                self._doubts = 0
                return
            self._doubts += 1
            self.pause = answer.retry_after
