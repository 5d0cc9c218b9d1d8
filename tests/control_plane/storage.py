"""What etcd holds: remembered once, and put back between tests.

A namespace that is deleted through the API server takes seconds, and needs a controller. So what a
test has left is taken out of etcd itself. The API server watches etcd: its caches and its clients
see ordinary deletions.
"""

from __future__ import annotations

import json
import urllib.request
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any

_FIRST_KEY = b"/registry/"
_AFTER_LAST_KEY = b"/registry0"
_NOT_OURS = (  # the servers write these all the time, for themselves
    b"/registry/apiregistration.k8s.io/",
    b"/registry/leases/kube-system/",  # a node's lease goes: the next KWOK would wait for its end
    b"/registry/masterleases/",
    b"/registry/ranges/",
    b"/registry/services/",
)
_EVENTS = b"/registry/events/"  # deleted with the rest, but never put back: they expire


@dataclass(frozen=True, slots=True)
class Remembered:
    """Values by key, and in which revision each was written."""

    values: dict[bytes, bytes]
    revisions: dict[bytes, int]


class Storage:
    """One etcd, spoken to over its HTTP gateway."""

    def __init__(self, address: str) -> None:
        self._address = address

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._address}/health", timeout=5) as answer:
                return bool(json.load(answer)["health"] == "true")
        except (OSError, ValueError):
            return False

    def remember(self) -> Remembered:
        values = {}
        revisions = {}
        for row in self._rows():
            key = b64decode(row["key"])
            if key.startswith(_EVENTS):
                continue
            values[key] = b64decode(row["value"])
            revisions[key] = int(row["mod_revision"])
        return Remembered(values, revisions)

    def put_back(self, before: Remembered) -> tuple[Remembered, list[bytes]]:
        """Delete what is new, restore what was changed or deleted.

        The answer is the state as it is then, and the keys that were restored.
        """
        now = self._revisions()
        changes = []
        for key in now.keys() - before.values.keys():
            changes.append({"requestDeleteRange": {"key": _encoded(key)}})
        restored = [key for key in before.values if now.get(key) != before.revisions[key]]
        for key in restored:
            value = before.values[key]
            changes.append({"requestPut": {"key": _encoded(key), "value": _encoded(value)}})
        if not changes:
            return before, []
        self._write(changes)
        return Remembered(before.values, self._revisions()), restored

    def _revisions(self) -> dict[bytes, int]:
        rows = self._rows(keys_only=True)
        return {b64decode(row["key"]): int(row["mod_revision"]) for row in rows}

    def _rows(self, *, keys_only: bool = False) -> list[dict[str, Any]]:
        question = {
            "key": _encoded(_FIRST_KEY),
            "range_end": _encoded(_AFTER_LAST_KEY),
            "keys_only": keys_only,
        }
        rows = self._ask("range", question).get("kvs", [])
        return [row for row in rows if not b64decode(row["key"]).startswith(_NOT_OURS)]

    def _write(self, changes: list[dict[str, Any]]) -> None:
        """In transactions of at most 100 keys: etcd takes no more than 128."""
        for start in range(0, len(changes), 100):
            self._ask("txn", {"success": changes[start : start + 100]})

    def _ask(self, what: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            f"{self._address}/v3/kv/{what}", data=json.dumps(body).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


def _encoded(value: bytes) -> str:
    return b64encode(value).decode()
