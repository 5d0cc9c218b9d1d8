"""How many requests are taken: one that would wait for long is refused at once, and those that write never keep readers out."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import sync_to_async

_MEMORY = 0.1  # how much one request changes what is thought to be usual


class WaitedTooLong(Exception):
    """Nothing was done: whoever asked has most likely gone."""


class Lane:
    """Some threads, and those who wait for one. `usual_seconds` is how long a request takes, as long as none was seen."""

    def __init__(
        self,
        work: Callable[..., Any],
        threads: int,
        name: str,
        *,
        usual_seconds: float,
        longest_wait: float,
    ) -> None:
        self._work = work
        self._threads = threads
        self._arrivals: deque[_Arrival] = deque()  # of those that no thread has begun with
        self._usual_seconds = usual_seconds
        self._longest_wait = longest_wait
        self._in_thread = sync_to_async(
            self._begin, thread_sensitive=False, executor=ThreadPoolExecutor(threads, name)
        )

    def wait_ahead(self) -> float:
        """Seconds that one who comes now would wait for a thread, as far as that can be told."""
        expected = len(self._arrivals) * self._usual_seconds / self._threads
        return max(expected, self._first_has_waited())

    def is_full(self) -> bool:
        return self.wait_ahead() > self._longest_wait

    def _first_has_waited(self) -> float:
        try:
            return time.monotonic() - self._arrivals[0].at
        except IndexError:  # a thread has just begun with it
            return 0.0

    async def run(self, *arguments: Any) -> Any:
        """Raises `WaitedTooLong`."""
        arrival = _Arrival()
        self._arrivals.append(arrival)
        try:
            return await self._in_thread(arrival, *arguments)
        finally:
            self._leave(arrival)  # where it was given up before a thread began with it

    def _begin(self, arrival: _Arrival, *arguments: Any) -> Any:
        self._leave(arrival)
        began = time.monotonic()
        if began - arrival.at > 2 * self._longest_wait:  # it was thought to be less
            raise WaitedTooLong
        try:
            return self._work(*arguments)
        finally:
            self._usual_seconds += (time.monotonic() - began - self._usual_seconds) * _MEMORY

    def _leave(self, arrival: _Arrival) -> None:
        with contextlib.suppress(ValueError):
            self._arrivals.remove(arrival)


class _Arrival:
    def __init__(self) -> None:
        self.at = time.monotonic()


class Lanes:
    """Half of the threads for requests that write, half for those that read; those that ask after the health have one of their own."""

    def __init__(self, work: Callable[..., Any], threads: int, longest_wait: float) -> None:
        writing = max(1, threads // 2)
        reading = max(1, threads - writing)
        self._writing = Lane(
            work, writing, "web-writing", usual_seconds=0.2, longest_wait=longest_wait
        )
        self._reading = Lane(
            work, reading, "web-reading", usual_seconds=0.05, longest_wait=longest_wait
        )
        self._health = Lane(work, 1, "web-health", usual_seconds=0.0, longest_wait=longest_wait)

    def of(self, method: str, path: str) -> Lane:
        if path in ("/healthz", "/readyz"):
            return self._health
        return self._reading if method in ("GET", "HEAD", "OPTIONS") else self._writing
