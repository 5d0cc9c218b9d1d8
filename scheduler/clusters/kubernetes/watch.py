"""List, then watch: what is in the cluster, and every change to it, as an iterator of values.

A watch never ends by itself. It connects again after every loss, and lists again when the server no
longer has the changes since the last one.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import urllib3
from urllib3.exceptions import HTTPError

from scheduler.clusters.kubernetes.client import PAGE_SIZE, Client
from scheduler.clusters.kubernetes.credentials import CredentialsError
from scheduler.clusters.kubernetes.errors import ApiError, Expired, NoAnswer, error_of_status
from scheduler.clusters.kubernetes.resources import Resource
from scheduler.clusters.kubernetes.watch_events import (
    Bookmark,
    Changed,
    Listed,
    Lost,
    Removed,
    Unreadable,
    WatchEvent,
    WatchTimes,
)

T = TypeVar("T")

_CHUNK: Final = 64 * 1024
_SHORT_SECONDS: Final = 1.0
_LOSSES: Final = (ApiError, HTTPError, OSError, CredentialsError, ValueError, KeyError)
"""The last two: something in between sends lines that are no events."""

UNREADABLE: Final = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError)


@dataclass(eq=False)
class Watch(Generic[T]):
    """Follows one resource.

    Iterate over it in a thread of its own. `since` is the version that was stored with the last
    event: the watch goes on from there without a list if the server still can. `heard_at` is when
    anything last came from the server, by `time.monotonic()`.
    """

    client: Client
    resource: Resource
    read: Callable[[Any], T]
    since: str = ""
    times: WatchTimes = field(default_factory=WatchTimes)
    heard_at: float | None = None
    _failures: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stream: urllib3.BaseHTTPResponse | None = None

    def stop(self) -> None:
        """End the iterator, from any thread.

        It ends at once while it waits for events or before it tries again, and otherwise when the
        server has answered the request that is under way, or its timeout is over.
        """
        self._stopping.set()
        with self._lock:
            if self._stream is not None:
                self._stream.shutdown()

    def __iter__(self) -> Iterator[WatchEvent[T]]:
        while not self._stopping.is_set():
            problem: Exception | None = None
            try:
                if not self.since:
                    yield self._list_all()
                yield from self._follow_changes()
            except Expired as error:
                self.since = ""
                if self._failures:  # the first time it is the usual course: list again at once
                    problem = error
                self._failures += 1
            except _LOSSES as error:
                problem = error
                self._failures += 1
            if self._stopping.is_set():
                return
            if problem is not None:
                lost = Lost(self.resource, problem, self._back_off(problem))
                yield lost
                self._stopping.wait(lost.retry_seconds)

    def _back_off(self, problem: Exception) -> float:
        """Twice as long each time, with some chance in it, so that not all come back at once."""
        doubled = self.times.first_back_off * float(1 << min(self._failures - 1, 16))
        chosen = min(doubled, self.times.longest_back_off) * random.uniform(0.75, 1.25)  # noqa: S311
        if isinstance(problem, ApiError) and problem.retry_after:
            return max(chosen, problem.retry_after)
        return chosen

    def _list_all(self) -> Listed[T]:
        try:
            listed = self._list_in_pages(PAGE_SIZE)
        except Expired:  # it took so long that the server forgot the rest
            listed = self._list_in_pages(0)
        self.since = listed.resource_version
        return listed

    def _list_in_pages(self, page_size: int) -> Listed[T]:
        version = ""
        values: list[T] = []
        unreadable: list[Unreadable] = []
        for page in self.client.pages(self.resource, page_size=page_size):
            self.heard_at = time.monotonic()
            version = page.resource_version
            for item in page.items:
                value = self._read_object(item)
                if isinstance(value, Unreadable):
                    unreadable.append(value)
                else:
                    values.append(value)
            if self._stopping.is_set():
                break
        return Listed(self.resource, version, tuple(values), tuple(unreadable))

    def _follow_changes(self) -> Iterator[WatchEvent[T]]:
        """Until the server ends the watch, which it does in due time."""
        stream = self.client.open_watch(
            self.resource,
            self.since,
            server_timeout=self.times.server_timeout,
            silence=self.times.silence,
        )
        began = time.monotonic()
        told = False
        try:
            for line in self._lines(stream):
                event = self._event(json.loads(line))
                told = True
                self._failures = 0
                yield event
        finally:
            self._close_stream(stream)
        if not told and time.monotonic() - began < _SHORT_SECONDS:
            raise NoAnswer(f"WATCH {self.resource.path()}", 200, "ended as soon as it began")

    def _lines(self, stream: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
        with self._lock:
            self._stream = stream
        rest = b""
        if self._stopping.is_set():
            return
        for chunk in stream.stream(_CHUNK):
            self.heard_at = time.monotonic()
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if self._stopping.is_set():
                    return
                if line:
                    yield line

    def _close_stream(self, stream: urllib3.BaseHTTPResponse) -> None:
        with self._lock:
            self._stream = None
        stream.close()

    def _event(self, event: dict[str, Any]) -> WatchEvent[T]:
        item = event["object"]
        if event["type"] == "ERROR":
            raise error_of_status(f"WATCH {self.resource.path()}", item)
        version = item["metadata"]["resourceVersion"]
        self.since = version
        if event["type"] == "BOOKMARK":
            return Bookmark(self.resource, version)
        value = self._read_object(item)
        if isinstance(value, Unreadable):
            return value
        if event["type"] == "DELETED":
            return Removed(self.resource, version, value)
        return Changed(self.resource, version, value)

    def _read_object(self, item: dict[str, Any]) -> T | Unreadable:
        try:
            return self.read(item)
        except UNREADABLE as error:
            return _unreadable(self.resource, item, error)


def _unreadable(resource: Resource, item: object, error: Exception) -> Unreadable:
    metadata: Any = {}
    if isinstance(item, dict):
        metadata = item.get("metadata") or {}
    parts = [metadata.get("namespace"), metadata.get("name")]
    key = "/".join(str(part) for part in parts if part)
    version = str(metadata.get("resourceVersion", ""))
    return Unreadable(resource, version, key, f"{type(error).__name__}: {error}")
