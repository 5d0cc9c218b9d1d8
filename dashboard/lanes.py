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


class Lane:
    """Some threads, and those who wait for one."""

    def __init__(self, work: Callable[..., Any], threads: int, name: str) -> None:
        self._work = work
        self._threads = threads
        self._arrivals: deque[_Arrival] = deque()  # of those that no thread has begun with
        self._usual_seconds = 0.0
        self._in_thread = sync_to_async(self._begin, thread_sensitive=False, executor=ThreadPoolExecutor(threads, name))

    def wait_ahead(self) -> float:
        """Seconds that one who comes now would wait for a thread, as far as that can be told."""
        expected = len(self._arrivals) * self._usual_seconds / self._threads
        return max(expected, self._longest_wait())

    def _longest_wait(self) -> float:
        try:
            return time.monotonic() - self._arrivals[0].at
        except IndexError:  # a thread has just begun with it
            return 0.0

    async def run(self, *arguments: Any) -> Any:
        arrival = _Arrival()
        self._arrivals.append(arrival)
        try:
            return await self._in_thread(arrival, *arguments)
        finally:
            self._leave(arrival)  # where it was given up before a thread began with it

    def _begin(self, arrival: _Arrival, *arguments: Any) -> Any:
        self._leave(arrival)
        began = time.monotonic()
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

    def __init__(self, work: Callable[..., Any], threads: int) -> None:
        writing = max(1, threads // 2)
        self._writing = Lane(work, writing, "web-writing")
        self._reading = Lane(work, max(1, threads - writing), "web-reading")
        self._health = Lane(work, 1, "web-health")

    def of(self, method: str, path: str) -> Lane:
        if path in ("/healthz", "/readyz"):
            return self._health
        return self._reading if method in ("GET", "HEAD", "OPTIONS") else self._writing
