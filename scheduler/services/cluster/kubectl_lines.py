"""What a page shows or does, as a line for kubectl. Only where the cluster is a real one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

from scheduler.clusters.kubernetes.queue_definition import (
    ANNOTATIONS,
    STATE,
    VOLCANO_FIELDS,
    with_annotations_for_fields,
)
from scheduler.clusters.kubernetes.resources import (
    COMMANDS,
    FOLLOWED,
    JOBS,
    NATIVE_PODGROUPS,
    QUEUES,
    Resource,
)
from scheduler.conf import is_kubernetes
from scheduler.domain.lifecycle import QueueCommand
from scheduler.domain.native_groups import native_name
from scheduler.domain.queues import ROOT, QueueState
from scheduler.models import Job, Mirror, Queue
from scheduler.yaml_texts import to_yaml

_STATES: Final = {
    "open": QueueState.OPEN,
    "resume": QueueState.OPEN,
    "close": QueueState.CLOSED,
    "suspend": QueueState.SUSPENDED,
}
_NODE_WORDS: Final = {
    "cordon": ["cordon"],
    "uncordon": ["uncordon"],
    "drain": ["drain", "--ignore-daemonsets", "--delete-emptydir-data"],
}
_COMMAND_NAMESPACE: Final = "default"


def here_document(text: str) -> str:
    """The text as standard input of a command, for any program.

    The word that ends it is no line of the text: the rest would be run.
    """
    end = "END"
    while end in text.splitlines():
        end += "_"
    return f" <<'{end}'\n{text}\n{end}"


def _line(*words: str) -> str:
    return shlex.join(["kubectl", *words])


def resource_of_kind(kind: str) -> Resource:
    """Of what is followed in a cluster."""
    return next(resource for resource in FOLLOWED if resource.kind == kind)


def place_of(kind: str, name: str) -> tuple[Resource, str]:
    """Where the cluster has it, and under which name. A podgroup may be Kubernetes' own."""
    if native := native_name(name):
        return NATIVE_PODGROUPS, native
    return resource_of_kind(kind), name


def get_line(kind: str, name: str, namespace: str = "") -> str:
    """Reads the object as YAML."""
    resource, name = place_of(kind, name)
    if namespace:
        return _line("get", resource.name, name, "-n", namespace, "-o", "yaml")
    return _line("get", resource.name, name, "-o", "yaml")


def node_line(verb: str, name: str) -> str:
    """ "" for what is only done to simulated nodes."""
    if not is_kubernetes() or verb not in _NODE_WORDS:
        return ""
    word, *options = _NODE_WORDS[verb]
    return _line(word, name, *options)


def queue_command_line(verb: str, name: str) -> str:
    """Opens, closes, suspends or resumes it, as this cluster holds states of queues."""
    if not is_kubernetes():
        return ""
    state = _STATES[verb]
    mirror = Mirror.objects.first()
    if mirror is not None and _volcano_carries_out(mirror, verb):
        uid = Queue.objects.values_list("uid", flat=True).filter(name=name).first()
        command = QueueCommand.CLOSE if verb == "close" else QueueCommand.OPEN
        body = _command(QUEUES, name, str(uid), command.value, f"{name}-{verb}-")
        return _create_lines(body, _COMMAND_NAMESPACE)
    if STATE in _known_fields(mirror):
        patch = json.dumps({"spec": {STATE: state.value}})
        return _line("patch", QUEUES.name, name, "--type", "merge", "-p", patch)
    note = f"{ANNOTATIONS[STATE]}={state.value}"
    return _line("annotate", "--overwrite", QUEUES.name, name, note)


def _volcano_carries_out(mirror: Mirror, verb: str) -> bool:
    """Its controller manager opens and closes queues. It does not know what suspended is."""
    return mirror.queue_controller == Mirror.VOLCANO and verb in ("open", "close")


def _known_fields(mirror: Mirror | None) -> frozenset[str]:
    if mirror is None:
        return VOLCANO_FIELDS
    return frozenset(mirror.queue_fields) or VOLCANO_FIELDS


def queue_delete_line(name: str) -> str:
    if not is_kubernetes():
        return ""
    return _line("delete", QUEUES.name, name)


def queue_apply_lines(manifest: object) -> str:
    """Creates or changes it, in the form that this cluster can hold.

    "" for what is no queue yet: somebody is still typing.
    """
    if not is_kubernetes() or not isinstance(manifest, Mapping):
        return ""
    metadata = manifest.get("metadata")
    spec = manifest.get("spec")
    if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping):
        return ""
    known = _known_fields(Mirror.objects.first())
    held = {key: value for key, value in spec.items() if not _goes_without_saying(key, value)}
    if not known.union(ANNOTATIONS).issuperset(held):
        return ""  # the form says which field is unknown
    return apply_lines(with_annotations_for_fields({**manifest, "spec": held}, known))


def _goes_without_saying(key: str, value: object) -> bool:
    """A cluster may have no queue root, and Volcano wants to find the parent that is named."""
    return (key, value) in (("parent", ROOT), ("type", ""))


def apply_lines(manifest: Mapping[str, Any]) -> str:
    if not is_kubernetes():
        return ""
    text = to_yaml(dict(manifest)).rstrip()
    return f"{_line('apply', '-f', '-')}{here_document(text)}"


def job_command_lines(job: Job, action: str) -> str:
    """Volcano's controllers carry it out."""
    if not is_kubernetes():
        return ""
    prefix = f"{job.name[:40]}-{action.lower()}-"
    body = _command(JOBS, job.name, str(job.uid), action, prefix)
    return _create_lines(body, job.namespace)


def _create_lines(body: Mapping[str, Any], namespace: str) -> str:
    """`create`, and not `apply`: the name is made by the API server."""
    text = to_yaml(dict(body)).rstrip()
    return f"{_line('create', '-n', namespace, '-f', '-')}{here_document(text)}"


def _command(resource: Resource, name: str, uid: str, action: str, prefix: str) -> dict[str, Any]:
    target = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {"generateName": prefix, "ownerReferences": [dict(target)]},
        "target": target,
        "action": action,
    }
