"""The objects of the fake API server, and what happened to them, in order."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.control_plane.fake.refusals import already_exists, conflict, expired, not_found
from tests.control_plane.fake.resources import Resource

Object = dict[str, Any]
_FIRST_REVISION = 1000


@dataclass(frozen=True, slots=True)
class Change:
    revision: int
    kind: str  # ADDED, MODIFIED or DELETED
    resource: Resource
    object: Object


class Store:
    """Objects by resource, namespace and name. Watchers wait on `changed`."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.revision = _FIRST_REVISION
        self._objects: dict[tuple[Resource, str, str], Object] = {}
        self._changes: list[Change] = []
        self._oldest_known = _FIRST_REVISION

    def forget_history(self) -> None:
        """As etcd does when it compacts: watches from before are answered with 410."""
        with self.changed:
            self._changes.clear()
            self._oldest_known = self.revision
            self.changed.notify_all()

    def list(self, resource: Resource, namespace: str) -> tuple[list[Object], int]:
        """The objects, in the order of their keys, and the revision that they show."""
        with self.changed:
            found = []
            for (kind, its_namespace, _), each in sorted(self._objects.items(), key=_by_key):
                if kind == resource and namespace in ("", its_namespace):
                    found.append(deepcopy(each))
            return found, self.revision

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        with self.changed:
            return deepcopy(self._stored(resource, namespace, name))

    def changes_since(self, resource: Resource, namespace: str, revision: int) -> list[Change]:
        """Raises Refused with 410 if they are not known any more. The caller holds `changed`."""
        if self.has_forgotten(revision):
            raise expired(f"too old resource version: {revision} ({self._oldest_known})")
        return [
            change
            for change in self._changes
            if change.revision > revision
            and change.resource == resource
            and namespace in ("", change.object["metadata"].get("namespace", ""))
        ]

    def create(self, resource: Resource, namespace: str, given: Object) -> Object:
        made = deepcopy(given)
        metadata = made.setdefault("metadata", {})
        if "generateName" in metadata:
            metadata.setdefault("name", metadata["generateName"] + uuid.uuid4().hex[:5])
        name = metadata["name"]
        with self.changed:
            if (resource, namespace, name) in self._objects:
                raise already_exists(resource, name)
            if resource.is_namespaced:
                metadata["namespace"] = namespace
            metadata["uid"] = str(uuid.uuid4())
            metadata["creationTimestamp"] = _now()
            metadata["generation"] = 1
            made["apiVersion"] = resource.api_version
            made["kind"] = resource.kind
            if resource.plural == "pods":
                made.setdefault("status", {}).setdefault("phase", "Pending")
            return self._write(resource, namespace, name, made, "ADDED")

    def has_forgotten(self, revision: int) -> bool:
        return revision < self._oldest_known

    def change(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        how: Callable[[Object], Object],
        *,
        is_spec_counted: bool = True,
    ) -> Object:
        """Write what `how` makes of the object. Nothing is told if nothing differs."""
        with self.changed:
            before = self._stored(resource, namespace, name)
            after = how(deepcopy(before))
            wanted = after["metadata"].get("resourceVersion")
            if wanted not in (None, before["metadata"]["resourceVersion"]):
                raise conflict(resource, name)
            for fixed in ("uid", "creationTimestamp", "resourceVersion", "generation"):
                after["metadata"][fixed] = before["metadata"][fixed]
            if after == before:
                return deepcopy(before)
            if is_spec_counted and after.get("spec") != before.get("spec"):
                after["metadata"]["generation"] += 1
            return self._write(resource, namespace, name, after, "MODIFIED")

    def delete(self, resource: Resource, namespace: str, name: str) -> Object:
        with self.changed:
            gone = self._stored(resource, namespace, name)
            del self._objects[resource, namespace, name]
            return self._note(resource, deepcopy(gone), "DELETED")

    def _stored(self, resource: Resource, namespace: str, name: str) -> Object:
        found = self._objects.get((resource, namespace, name))
        if found is None:
            raise not_found(resource, name)
        return found

    def _write(
        self, resource: Resource, namespace: str, name: str, written: Object, what: str
    ) -> Object:
        self._objects[resource, namespace, name] = written
        return self._note(resource, written, what)

    def _note(self, resource: Resource, written: Object, what: str) -> Object:
        self.revision += 1
        written["metadata"]["resourceVersion"] = str(self.revision)
        copy = deepcopy(written)
        self._changes.append(Change(self.revision, what, resource, copy))
        self.changed.notify_all()
        return deepcopy(copy)


def _by_key(entry: tuple[tuple[Resource, str, str], Object]) -> tuple[str, str]:
    (_, namespace, name), _ = entry
    return namespace, name


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
