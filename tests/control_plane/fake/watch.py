"""One watch of the fake API server: events as they come, one line of JSON in each chunk."""

from __future__ import annotations

import json
import threading
from time import monotonic
from typing import IO, Any

from tests.control_plane.fake.faults import Broken, Expired, Fault, Silent
from tests.control_plane.fake.refusals import Refused, expired
from tests.control_plane.fake.resources import Target
from tests.control_plane.fake.store import Change, Store

_LONGEST_WATCH_SECONDS = 1800


class BreakConnection(Exception):
    """The connection is to be reset."""


class Watch:
    def __init__(
        self, store: Store, target: Target, question: dict[str, str], fault: Fault | None
    ) -> None:
        self._store = store
        self._target = target
        self._fault = fault
        self._wants_bookmarks = question.get("allowWatchBookmarks") in ("1", "true")
        self._wants_initial = question.get("sendInitialEvents") in ("1", "true")
        self._seconds = float(question.get("timeoutSeconds") or _LONGEST_WATCH_SECONDS)
        self._revision = int(question.get("resourceVersion") or 0)
        self._sent = 0

    def serve(self, output: IO[bytes], is_over: threading.Event) -> None:
        """Write events until the time that the client gave is up, or the server ends."""
        self._output = output
        self._is_over = is_over
        self._deadline = monotonic() + self._seconds
        try:
            if self._revision == 0 or self._wants_initial:
                self._send_initial_events()
            self._send_changes()
        except Refused as refused:
            self._send_chunk(_line("ERROR", refused.status()))
        self._send_chunk(b"")

    def _send_initial_events(self) -> None:
        found, self._revision = self._store.list(self._target.resource, self._target.namespace)
        for each in found:
            self._send_event("ADDED", each)
        if self._wants_bookmarks:
            self._send_bookmark({"k8s.io/initial-events-end": "true"})

    def _send_changes(self) -> None:
        while not self._is_at_its_end():
            self._fail_if_it_is_time()
            for change in self._next_changes():
                self._revision = change.revision
                self._send_event(change.kind, change.object)
        if self._wants_bookmarks and not self._is_over.is_set():
            self._send_bookmark({})

    def _next_changes(self) -> list[Change]:
        """Wait for changes; none if the watch is at its end."""
        resource = self._target.resource
        namespace = self._target.namespace
        with self._store.changed:
            while True:
                changes = self._store.changes_since(resource, namespace, self._revision)
                if changes or self._is_at_its_end():
                    return changes
                self._store.changed.wait(max(0.0, self._deadline - monotonic()))

    def _is_at_its_end(self) -> bool:
        return self._is_over.is_set() or monotonic() >= self._deadline

    def _fail_if_it_is_time(self) -> None:
        fault = self._fault
        if not isinstance(fault, Expired | Silent) or self._sent < fault.after_events:
            return
        if isinstance(fault, Expired):
            raise expired("The resourceVersion for the provided watch is too old.")
        self._is_over.wait()
        raise BreakConnection

    def _send_event(self, kind: str, what: dict[str, Any]) -> None:
        self._fail_if_it_is_time()
        line = _line(kind, what)
        if isinstance(self._fault, Broken) and self._sent >= self._fault.after_events:
            self._send_chunk(line[: len(line) // 2])
            raise BreakConnection
        self._send_chunk(line)
        self._sent += 1

    def _send_bookmark(self, annotations: dict[str, str]) -> None:
        metadata: dict[str, Any] = {"resourceVersion": str(self._revision)}
        if annotations:
            metadata["annotations"] = annotations
        resource = self._target.resource
        bookmark = {"kind": resource.kind, "apiVersion": resource.api_version}
        self._send_event("BOOKMARK", {**bookmark, "metadata": metadata})

    def _send_chunk(self, content: bytes) -> None:
        self._output.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        self._output.flush()


def _line(kind: str, what: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": what}).encode() + b"\n"
