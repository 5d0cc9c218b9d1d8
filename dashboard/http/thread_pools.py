"""Threads for requests: reads and writes have threads of their own, and long waits are refused."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import sync_to_async

_NEW_SHARE = 0.1
"""How much one request changes the average of their duration."""


class WaitedTooLong(Exception):
    """Nothing was done: the client has most likely gone."""


class ThreadPool:
    """Some threads, and the requests that wait for one.

    `usual_seconds` is how long a request is thought to take before any was seen.
    """

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
        self._waiting: deque[_Arrival] = deque()  # no thread has started with these
        self._usual_seconds = usual_seconds
        self._longest_wait = longest_wait
        self._in_thread = sync_to_async(
            self._work_on, thread_sensitive=False, executor=ThreadPoolExecutor(threads, name)
        )

    def expected_wait(self) -> float:
        """Seconds that a new request would wait for a thread, as far as can be known."""
        expected = len(self._waiting) * self._usual_seconds / self._threads
        return max(expected, self._first_has_waited())

    def is_full(self) -> bool:
        return self.expected_wait() > self._longest_wait

    def _first_has_waited(self) -> float:
        try:
            return time.monotonic() - self._waiting[0].at
        except IndexError:  # a thread has just started with it
            return 0.0

    async def run(self, *arguments: Any) -> Any:
        """Raises `WaitedTooLong`."""
        arrival = _Arrival()
        self._waiting.append(arrival)
        try:
            return await self._in_thread(arrival, *arguments)
        finally:
            self._stop_waiting(arrival)  # if it was given up before a thread started with it

    def _work_on(self, arrival: _Arrival, *arguments: Any) -> Any:
        self._stop_waiting(arrival)
        started = time.monotonic()
        if started - arrival.at > 2 * self._longest_wait:  # less was expected
            raise WaitedTooLong
        try:
            return self._work(*arguments)
        finally:
            seconds = time.monotonic() - started
            self._usual_seconds += (seconds - self._usual_seconds) * _NEW_SHARE

    def _stop_waiting(self, arrival: _Arrival) -> None:
        with contextlib.suppress(ValueError):
            self._waiting.remove(arrival)


class _Arrival:
    def __init__(self) -> None:
        self.at = time.monotonic()


class ThreadPools:
    """Half of the threads for writes and half for reads; health checks have one of their own."""

    def __init__(self, work: Callable[..., Any], threads: int, longest_wait: float) -> None:
        writing = max(1, threads // 2)
        reading = max(1, threads - writing)
        self._writing = ThreadPool(
            work, writing, "web-writing", usual_seconds=0.2, longest_wait=longest_wait
        )
        self._reading = ThreadPool(
            work, reading, "web-reading", usual_seconds=0.05, longest_wait=longest_wait
        )
        self._health = ThreadPool(
            work, 1, "web-health", usual_seconds=0.0, longest_wait=longest_wait
        )

    def pool_for(self, method: str, path: str) -> ThreadPool:
        if path in ("/healthz", "/readyz"):
            return self._health
        if method in ("GET", "HEAD", "OPTIONS"):
            return self._reading
        return self._writing
