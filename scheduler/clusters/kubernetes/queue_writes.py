"""Queues written to the API server: read, compared, and changed field by field.

Only the fields that somebody here changed are sent, so what others wrote into the same queue stays.
The queue is read just before. If a field that we change has another value by then, nothing is
written and `ChangedMeanwhile` says which field.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from scheduler.admission.reading.queue import queue_manifest
from scheduler.clusters.kubernetes.client import Client, Object
from scheduler.clusters.kubernetes.errors import (
    AlreadyExists,
    Conflict,
    NoAnswer,
    NotFound,
    ServerError,
    Unavailable,
)
from scheduler.clusters.kubernetes.queue_definition import (
    ANNOTATIONS,
    STATE,
    with_annotations_for_fields,
)
from scheduler.clusters.kubernetes.read.workloads import read_queue
from scheduler.clusters.kubernetes.resources import COMMANDS, QUEUES
from scheduler.clusters.kubernetes.values import QueueObject
from scheduler.domain.lifecycle import QueueCommand
from scheduler.domain.queues import ROOT, QueueSpec, QueueState

Patch = dict[str, Any]
_Path = tuple[str, ...]

_PATIENCE_SECONDS: Final = 5.0  # with others who write the same queue all the time
_PAUSE_SECONDS: Final = 0.02
_COMMAND_NAMESPACE: Final = "default"  # where Volcano's vcctl puts commands to queues


class ChangedMeanwhile(Exception):
    """Others have changed in the cluster what this write was decided on.

    `field` is such as "spec.weight"; `theirs` is its value there, None where it is not set.
    """

    def __init__(self, queue: str, field: str, ours: object, theirs: object) -> None:
        self.queue = queue
        self.field = field
        self.ours = ours
        self.theirs = theirs
        super().__init__(f"{field} of {queue} is {theirs} by now, and was {ours}")


class FieldDropped(Exception):
    """The API server took the queue and left this field out."""

    def __init__(self, queue: str, field: str) -> None:
        self.queue = queue
        self.field = field
        super().__init__(f"{field} of {queue} was left out by the API server")


@dataclass(frozen=True, slots=True)
class QueueWrite:
    """One queue, as it was when this was decided and as it is to be.

    Without `before` it is created, without `after` it is deleted. `uid` is what the queue's must
    be, "" for any.
    """

    name: str
    before: QueueSpec | None
    after: QueueSpec | None
    uid: str = ""


@dataclass(frozen=True, slots=True)
class QueueWriter:
    """Writes queues as this cluster can hold them.

    `known` are the fields of `spec` that the definition has. Where `volcano_decides`, Volcano's
    controller manager opens and closes queues: it is asked by a Command, as its vcctl does.
    """

    client: Client
    known: frozenset[str]
    volcano_decides: bool

    def write(self, change: QueueWrite) -> str:
        """The resourceVersion of the queue afterwards.

        "" for one that is gone, and "0" where a Command alone was to be sent.

        Raises `ApiError`, `ChangedMeanwhile` and `FieldDropped`.
        """
        if change.before is None:
            assert change.after is not None
            return self._create(change.after)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        lost: NoAnswer | None = None
        while True:
            try:
                return self._write_once(change, change.before)
            except Conflict:
                if time.monotonic() > deadline:
                    raise
            except NoAnswer as problem:
                lost = problem
                if time.monotonic() > deadline:
                    raise
            except ServerError as problem:
                raise lost or problem from None  # what was sent before may have been done
            time.sleep(random.uniform(0.0, _PAUSE_SECONDS))  # noqa: S311  (not a secret)

    def _write_once(self, change: QueueWrite, before: QueueSpec) -> str:
        """Raises `Conflict` if somebody wrote to the queue since it was read here."""
        if change.after is None:
            return self._delete(change)
        return self._change(change, before, change.after)

    # Create

    def _create(self, spec: QueueSpec) -> str:
        manifest = self._stored_form(spec)
        if spec.state is not QueueState.OPEN:
            _put(manifest, self._path_of_state(), self._named_state(spec.state))
        try:
            made = self.client.create(QUEUES, manifest)
        except NoAnswer:
            made = self._found_after_no_answer(spec)
        self._refuse_if_dropped(spec.name, manifest, made)
        if self.volcano_decides and spec.state is QueueState.CLOSED:
            self._send_command(QueueCommand.CLOSE, read_queue(made))
        return _version_of(made)

    def _found_after_no_answer(self, spec: QueueSpec) -> Object:
        """It may have been made all the same. Raises `ServerError`, or that another was there."""
        try:
            made = self.client.get(QUEUES, spec.name)
        except NotFound as error:
            message = "the connection broke before it was created"
            raise Unavailable(error.asked, 0, message) from error
        except ServerError as error:
            raise NoAnswer(error.asked, 0, error.message) from error
        live = self._stored_form(read_queue(made).spec)
        if live["spec"] != self._stored_form(spec)["spec"]:
            raise AlreadyExists(f"POST {QUEUES.path()}", 409, f"there is a queue {spec.name}")
        return made

    # Change

    def _change(self, change: QueueWrite, before: QueueSpec, after: QueueSpec) -> str:
        raw = self._read(change)
        live = read_queue(raw)
        patch = self._patch(before, after, live)
        if patch:
            patch.setdefault("metadata", {})["resourceVersion"] = _version_of(raw)
            raw = self.client.patch(QUEUES, change.name, patch)
            self._refuse_if_dropped(change.name, patch, raw)
        command = self._command_for(before, after, live)
        if command is not None:
            self._send_command(command, live)
        if not patch and replace(before, state=after.state) == after:
            return "0"
        return _version_of(raw)

    def _read(self, change: QueueWrite) -> Object:
        try:
            raw = self.client.get(QUEUES, change.name)
        except NoAnswer as error:
            raise Unavailable(error.asked, 0, error.message) from error
        uid = raw["metadata"]["uid"]
        if change.uid and uid != change.uid:
            raise ChangedMeanwhile(change.name, "metadata.uid", change.uid, uid)
        return raw

    def _patch(self, before: QueueSpec, after: QueueSpec, live: QueueObject) -> Patch:
        """What is to be sent; empty where the queue is as wanted. Raises `ChangedMeanwhile`."""
        was = self._stored_form(before)
        wanted = self._stored_form(after)
        now = self._stored_form(live.spec)
        patch: Patch = {}
        for path, value in _differences(was, wanted):
            theirs = _at(now, path)
            if theirs == value:
                continue
            if theirs != _at(was, path):
                raise ChangedMeanwhile(before.name, ".".join(path), _at(was, path), theirs)
            _put(patch, path, value)
        if before.state is not after.state:
            self._patch_state(patch, before, after, live)
        return patch

    def _patch_state(
        self, patch: Patch, before: QueueSpec, after: QueueSpec, live: QueueObject
    ) -> None:
        state = live.requested_state(follows_status=self.volcano_decides)
        if state not in (before.state, after.state):
            raise ChangedMeanwhile(before.name, "spec.state", before.state.value, state.value)
        named = self._named_state(after.state)
        path = self._path_of_state()
        if named != live.named_state:
            _put(patch, path, named)
        other = ("metadata", "annotations", ANNOTATIONS[STATE])
        if path != other and ANNOTATIONS[STATE] in live.meta.annotations:
            _put(patch, other, None)  # from a time when the definition did not know the field

    def _named_state(self, state: QueueState) -> str | None:
        """What the queue itself says. Volcano keeps Open and Closed in the status."""
        if self.volcano_decides and state is not QueueState.SUSPENDED:
            return None
        return state.value

    def _path_of_state(self) -> _Path:
        if STATE in self.known:
            return ("spec", STATE)
        return ("metadata", "annotations", ANNOTATIONS[STATE])

    def _command_for(
        self, before: QueueSpec, after: QueueSpec, live: QueueObject
    ) -> QueueCommand | None:
        """The command that Volcano has to carry out, if any."""
        if not self.volcano_decides or before.state is after.state:
            return None
        is_closed = live.is_closed_in_status
        if after.state is QueueState.CLOSED and not is_closed:
            return QueueCommand.CLOSE
        if after.state is not QueueState.CLOSED and is_closed:
            return QueueCommand.OPEN
        return None

    def _send_command(self, command: QueueCommand, queue: QueueObject) -> None:
        target = {
            "apiVersion": QUEUES.api_version,
            "kind": QUEUES.kind,
            "name": queue.meta.name,
            "uid": queue.meta.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        body = {
            "apiVersion": COMMANDS.api_version,
            "kind": COMMANDS.kind,
            "metadata": {
                "generateName": f"{queue.meta.name}-{command.verb}-",
                "ownerReferences": [target],
            },
            "target": target,
            "action": command.value,
        }
        self.client.create(COMMANDS, body, _COMMAND_NAMESPACE)

    # Delete

    def _delete(self, change: QueueWrite) -> str:
        assert change.before is not None
        try:
            raw = self._read(change)
            self._refuse_if_reopened(change.before, read_queue(raw))
            self.client.delete(
                QUEUES,
                change.name,
                uid=raw["metadata"]["uid"],
                resource_version=_version_of(raw),
            )
        except NotFound:
            pass  # somebody else was faster, or the answer to our own was lost
        return ""

    def _refuse_if_reopened(self, before: QueueSpec, live: QueueObject) -> None:
        state = live.requested_state(follows_status=self.volcano_decides)
        if state is not before.state:
            raise ChangedMeanwhile(before.name, "spec.state", before.state.value, state.value)

    # Forms

    def _stored_form(self, spec: QueueSpec) -> Patch:
        """Without the state, which is handled for itself, and without what goes without saying.

        A queue of its own for root may be missing in a cluster, and Volcano's controllers do not
        open a queue whose parent they cannot find.
        """
        manifest: Patch = queue_manifest(spec)
        fields = manifest["spec"]
        del fields[STATE]
        for key, usual in (("parent", ROOT), ("type", "")):
            if fields.get(key) == usual:
                del fields[key]
        return with_annotations_for_fields(manifest, self.known)

    def _refuse_if_dropped(self, name: str, sent: Patch, stored: Object) -> None:
        for key, value in sent.get("spec", {}).items():
            if value not in (None, "", {}) and key not in stored.get("spec", {}):
                raise FieldDropped(name, f"spec.{key}")


def _differences(
    before: Mapping[str, Any], after: Mapping[str, Any], path: _Path = ()
) -> Iterator[tuple[_Path, Any]]:
    """The leaves that differ, with the value afterwards; None for one that is gone."""
    for key in sorted({*before, *after}):
        was = before.get(key)
        wanted = after.get(key)
        if was == wanted:
            continue
        inner = (*path, key)
        if isinstance(was, Mapping) or isinstance(wanted, Mapping):
            yield from _differences(was or {}, wanted or {}, inner)
        else:
            yield inner, wanted


def _at(manifest: Mapping[str, Any], path: _Path) -> Any:
    value: Any = manifest
    for key in path:
        value = (value or {}).get(key)
    return value


def _put(manifest: Patch, path: _Path, value: object) -> None:
    inner = manifest
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = value


def _version_of(raw: Object) -> str:
    return str(raw["metadata"]["resourceVersion"])
