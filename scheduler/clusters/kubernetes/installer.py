"""Puts Fumarole's definitions, rights and webhooks into a cluster, and takes them out again.

Each step is told as it is done. Doing it twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import NotFound
from scheduler.clusters.kubernetes.manifests import (
    Manifest,
    Wanted,
    definitions,
    everything_but_definitions,
    name_of,
    resource_of,
    rights,
    webhook_configurations,
)


class Done(StrEnum):
    APPLIED = "applied"
    KEPT = "kept"
    REMOVED = "removed"
    MISSING = "missing"
    PRESENT = "present"


@dataclass(frozen=True, slots=True)
class Step:
    """One object, what was done with it, and why if that is not plain."""

    what: str
    done: Done
    why: str = ""


def install(client: Client, wanted: Wanted, *, replace_definitions: bool = False) -> Iterator[Step]:
    """Apply all that is wanted. Definitions of others stay as they are, unless told otherwise."""
    for definition in definitions():
        yield _install_definition(client, definition, replaces=replace_definitions)
    for manifest in rights(wanted):
        yield _apply(client, manifest)
    if wanted.webhooks is not None:
        for manifest in webhook_configurations(wanted.webhooks):
            yield _apply(client, manifest)


def uninstall(client: Client) -> Iterator[Step]:
    """Take out rights and webhooks, the webhooks first: they would ask somebody who is gone.

    The definitions stay, because the cluster deletes all queues and jobs with them. So does the
    namespace, in which Fumarole itself may run.
    """
    for manifest in reversed(everything_but_definitions()):
        yield _remove(client, manifest)
    for definition in definitions():
        why = "to delete it would delete all its objects"
        yield Step(name_of(definition), Done.KEPT, why)


def status(client: Client) -> Iterator[Step]:
    """What is there, and what is missing."""
    for definition in definitions():
        stored = _stored(client, definition)
        if stored is None:
            yield Step(name_of(definition), Done.MISSING)
        else:
            yield Step(name_of(definition), Done.PRESENT, _shortcoming(definition, stored))
    for manifest in everything_but_definitions():
        if _stored(client, manifest) is None:
            yield Step(name_of(manifest), Done.MISSING)
        else:
            yield Step(name_of(manifest), Done.PRESENT)


def _install_definition(client: Client, definition: Manifest, *, replaces: bool) -> Step:
    stored = _stored(client, definition)
    if stored is None or replaces or _is_ours(stored):
        return _apply(client, definition)
    return Step(name_of(definition), Done.KEPT, _shortcoming(definition, stored))


def _is_ours(stored: Manifest) -> bool:
    fields = stored["metadata"].get("managedFields", ())
    return any(entry.get("manager") == "fumarole" for entry in fields)


def _shortcoming(definition: Manifest, stored: Manifest) -> str:
    """What a definition of Volcano's own lacks; empty if it lacks nothing."""
    if definition["spec"]["names"]["kind"] != "Queue" or _knows_state(stored):
        return ""
    return "it does not know spec.state, so a queue is suspended by an annotation"


def _knows_state(definition: Manifest) -> bool:
    for version in definition["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        spec = schema["properties"].get("spec", {})
        if "state" in spec.get("properties", {}):
            return True
    return False


def _apply(client: Client, manifest: Manifest) -> Step:
    metadata = manifest["metadata"]
    client.apply(
        resource_of(manifest),
        metadata["name"],
        manifest,
        metadata.get("namespace", ""),
        force=True,
    )
    return Step(name_of(manifest), Done.APPLIED)


def _remove(client: Client, manifest: Manifest) -> Step:
    if manifest["kind"] == "Namespace":
        return Step(name_of(manifest), Done.KEPT, "it may hold other objects")
    metadata = manifest["metadata"]
    try:
        client.delete(resource_of(manifest), metadata["name"], metadata.get("namespace", ""))
    except NotFound:
        return Step(name_of(manifest), Done.MISSING)
    return Step(name_of(manifest), Done.REMOVED)


def _stored(client: Client, manifest: Manifest) -> Manifest | None:
    metadata = manifest["metadata"]
    try:
        return client.get(resource_of(manifest), metadata["name"], metadata.get("namespace", ""))
    except NotFound:
        return None
