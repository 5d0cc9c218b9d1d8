"""A program that follows a list, and knows of it what the events say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.dashboard.api.conftest import Caller

Event = tuple[str, str, Any]
"""Its name, its id and its data."""


def events_in(text: str) -> list[Event]:
    found = []
    for block in text.split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in block.splitlines() if line[:1] not in ("", ":")
        )
        if "event" in fields:
            found.append((fields["event"], fields.get("id", ""), json.loads(fields["data"])))
    return found


class Follower:
    """Strict: an object is added once, and only what is known is changed or deleted."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.version = ""
        self.end: dict[str, str] | None = None
        self.heard: list[str] = []

    def apply(self, text: str) -> None:
        for name, version, data in events_in(text):
            self.version = version or self.version
            if name == "END":
                self.end = data
            elif name != "BOOKMARK":
                self.heard.append(f"{name} {data['metadata']['name']}")
                self._take(name, data["metadata"]["uid"], data)

    def _take(self, name: str, uid: str, data: Any) -> None:
        assert (uid in self.objects) == (name != "ADDED"), f"{name} {data}"
        if name == "MODIFIED":
            assert self.objects[uid] != data
        if name == "DELETED":
            del self.objects[uid]
        else:
            self.objects[uid] = data


class Following(Follower):
    """Reads one piece of the answer at a time: each is one reading of the list."""

    def __init__(self, caller: Caller, path: str) -> None:
        super().__init__()
        self.caller = caller
        self.path = path
        self._answer: Any = None
        self._pieces: Iterator[bytes] = iter(())

    def connect(self, **headers: str) -> None:
        if self.version:
            headers = {"Last-Event-ID": self.version, **headers}
        address = f"/api/v1/{self.path}"
        self._answer = self.caller.client.get(
            address, headers={**self.caller.headers, "Accept": "text/event-stream", **headers}
        )
        assert self._answer.status_code == 200, self._answer.content
        self._pieces = iter(self._answer.streaming_content)
        next(self._pieces)
        self.look()

    def look(self) -> None:
        self.apply(next(self._pieces).decode())

    def leave(self) -> None:
        self._answer._iterator.close()

    def listed(self) -> dict[str, Any]:
        """The same list, read the usual way."""
        path = self.path.replace("watch=1", "page_size=1000")
        return {found["metadata"]["uid"]: found for found in self.caller.get(path)["results"]}
