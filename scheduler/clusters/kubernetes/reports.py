"""What we tell the cluster: conditions of pods, events, and the status of queues and podgroups.

The caller writes only what has changed. Each raises `NotFound` if the object is gone, and
`Conflict` if it has changed or been replaced meanwhile.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import Conflict, Invalid
from scheduler.clusters.kubernetes.resources import PODGROUPS, PODS, QUEUES, Resource
from scheduler.clusters.kubernetes.values import Condition, ObjectMeta

EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event", namespaced=True)
CONTROLLER: Final = "fumarole.io/scheduler"
VOLCANO_STATE_MANAGER: Final = "queue-controller"
"""The name under which Volcano's queue controller applies `status.state`."""
_LONGEST_NOTE: Final = 1024
_LONGEST_NAME: Final = 253 - 17  # a dot and 16 hexadecimal digits follow


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an object. `type` is Normal or Warning."""

    resource: Resource
    about: ObjectMeta
    reason: str  # one word: "Scheduled"
    note: str
    action: str = "Scheduling"
    type: str = "Normal"
    at: datetime | None = None  # now, if it is not given


def set_pod_condition(client: Client, pod: ObjectMeta, condition: Condition) -> None:
    """Sets this condition and leaves the others of the pod alone."""
    change = {
        "metadata": {"uid": pod.uid},
        "status": {"conditions": [_condition_of(condition)]},
    }
    try:
        client.patch(PODS, pod.name, change, pod.namespace, "status", merges_lists=True)
    except Invalid as error:
        if not _is_about_uid(error):
            raise
        message = "another pod has its name now"
        raise Conflict(error.asked, error.status, message, error.reason) from error


def _is_about_uid(error: Invalid) -> bool:
    """The server takes another uid for an attempt to change it."""
    causes = error.details.get("causes") or ()
    return any(cause.get("field") == "metadata.uid" for cause in causes)


def _condition_of(condition: Condition) -> dict[str, str]:
    since = condition.since or datetime.now(UTC)
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def send_event(client: Client, event: Event, instance: str) -> None:
    """`instance` is which of our processes reports, such as the name of its machine."""
    about = event.about
    namespace = about.namespace or "default"
    moment = (event.at or datetime.now(UTC)).astimezone(UTC)
    body: dict[str, Any] = {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": _event_name(about), "namespace": namespace},
        "eventTime": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": CONTROLLER,
        "reportingInstance": instance,
        "action": event.action,
        "reason": event.reason,
        "note": event.note[:_LONGEST_NOTE],
        "type": event.type,
        "regarding": {
            "apiVersion": event.resource.api_version,
            "kind": event.resource.kind,
            "name": about.name,
            "namespace": about.namespace,
            "uid": about.uid,
        },
    }
    client.create(EVENTS, body, namespace)


def _event_name(about: ObjectMeta) -> str:
    return f"{about.name[:_LONGEST_NAME]}.{uuid.uuid4().hex[:16]}"


def set_queue_status(client: Client, queue: ObjectMeta, status: Mapping[str, Any]) -> None:
    """These fields of the status, if nobody has changed the queue since it was read."""
    versions = _versions_of(queue)
    others = dict(status)
    state = others.pop("state", None)
    if state is not None:
        versions["resourceVersion"] = _apply_queue_state(client, queue, state)
    if others:
        change = {"metadata": versions, "status": others}
        client.patch(QUEUES, queue.name, change, subresource="status")


def _apply_queue_state(client: Client, queue: ObjectMeta, state: str) -> str:
    """Gives the version that the queue has then.

    Volcano's controller applies the state without force. If we owned the field under a name of
    our own, Volcano could never again open a queue that we closed, even with Fumarole gone. So we
    apply it under Volcano's name. That name owns nothing but the state: each apply by Volcano
    names only the state, and would remove everything else that the name owns.
    """
    body = {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": queue.name, **_versions_of(queue)},
        "status": {"state": state},
    }
    applied = client.apply(
        QUEUES,
        queue.name,
        body,
        subresource="status",
        field_manager=VOLCANO_STATE_MANAGER,
        force=True,  # somebody may have set it by hand
    )
    return str(applied["metadata"]["resourceVersion"])


def set_podgroup_status(client: Client, group: ObjectMeta, status: Mapping[str, Any]) -> None:
    """The same. A podgroup has no subresource for its status: it is a field as any other."""
    change = {"metadata": _versions_of(group), "status": dict(status)}
    client.patch(PODGROUPS, group.name, change, group.namespace)


def set_native_conditions(
    client: Client, resource: Resource, group: ObjectMeta, conditions: Sequence[Condition]
) -> None:
    """Sets these conditions of a podgroup of Kubernetes, and leaves the others alone.

    `resource` says in which version the API server has it.
    """
    told = []
    for condition in conditions:
        told.append({**_condition_of(condition), "observedGeneration": group.generation})
    change = {"metadata": _versions_of(group), "status": {"conditions": told}}
    client.patch(resource, group.name, change, group.namespace, "status", merges_lists=True)


def _versions_of(meta: ObjectMeta) -> dict[str, str]:
    return {"uid": meta.uid, "resourceVersion": meta.resource_version}
