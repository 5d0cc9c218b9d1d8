"""Everything that can be done to a node: added, changed, cordoned, drained, taken away.

For operators of the whole cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from scheduler import notify
from scheduler.admission.reading.cluster import NodeManifest, read_node
from scheduler.admission.reading.queue import Reading
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.access import Permission
from scheduler.domain.plans import counted
from scheduler.models import Node, Pod
from scheduler.selectors.cluster.nodes import OCCUPYING, GangOnNode, gangs_on
from scheduler.selectors.files.manifests import stored_node
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.cluster.mirrored import changed_in_cluster
from scheduler.services.files.merge import merge_patch, readable
from scheduler.services.files.versions import Expected, check_version
from scheduler.services.jobs.pods import send_home
from scheduler.services.locks import alone_with_pods, lock_tree
from scheduler.services.queues.warnings import refresh_warnings
from scheduler.services.records import audit
from scheduler.services.records.events import EventNote, record_events
from scheduler.services.sessions.requests import want_session


@dataclass(frozen=True, slots=True)
class SavedNode:
    node: Node
    notices: tuple[Notice, ...] = ()
    created: bool = False
    changed: bool = True


@dataclass(frozen=True, slots=True)
class NodeCommandResult:
    node: Node
    changed: bool
    message: str
    gangs: tuple[GangOnNode, ...] = ()  # whose pods leave, or are lost

    @property
    def pods(self) -> int:
        return sum(gang.pods for gang in self.gangs)

    @property
    def users(self) -> list[str]:
        return sorted({gang.owner for gang in self.gangs if gang.owner})


@changed_in_cluster("Node")
def create_node(manifest: object, *, by: Actor = SYSTEM, dry_run: bool = False) -> SavedNode:
    access.require_cluster(by, doing="add nodes")
    reading = read_node(manifest)
    value = readable(reading)
    node = Node(name=value.metadata.name, created_at=timezone.now(), **node_columns(value))
    made = SavedNode(node, reading.notices, created=True)
    if dry_run:
        _refuse_taken_name(node.name)
        return made
    with transaction.atomic():
        lock_tree()
        _refuse_taken_name(node.name)
        node.save(force_insert=True)
        audit.record(by, "CreateNode", "Node", node.name, after=stored_node(node))
        _save_and_tell(node, by, "NodeAdded", "added")
    return made


def _refuse_taken_name(name: str) -> None:
    if not Node.objects.filter(name=name).exists():
        return
    message = f"There is already a node {name}."
    fix = "change the node that is there"
    raise Rejected([Violation("already_exists", "", "metadata.name", message, fix)], by_state=True)


@changed_in_cluster("Node")
def update_node(
    name: str,
    manifest: object,
    *,
    by: Actor = SYSTEM,
    merge: bool = False,
    expected_version: Expected = None,
    dry_run: bool = False,
) -> SavedNode:
    """Raises `Node.DoesNotExist`, `Stale`, `Rejected`."""
    access.require_cluster(by, doing="change nodes")
    if dry_run:
        node = Node.objects.get(name=name)
        check_version(f"The node {name}", node, expected_version)
        return _changed_in_memory(node, manifest, merge)
    with transaction.atomic():
        lock_tree()
        alone_with_pods()
        node = Node.objects.select_for_update().get(name=name)
        check_version(f"The node {name}", node, expected_version)
        before = stored_node(node)
        saved = _changed_in_memory(node, manifest, merge)
        if saved.changed:
            node.save()
            audit.record(by, "UpdateNode", "Node", name, before=before, after=stored_node(node))
            _save_and_tell(node, by, "NodeChanged", "changed")
    return saved


def _changed_in_memory(node: Node, manifest: object, merge: bool) -> SavedNode:
    """The node as the manifest wants it. Nothing is written."""
    if merge:
        manifest = merge_patch(stored_node(node), manifest)
    reading: Reading[NodeManifest] = read_node(manifest)
    value = readable(reading, node.name)
    columns = node_columns(value)
    changed = any(getattr(node, column) != new for column, new in columns.items())
    if changed:
        if node.ready is not value.ready:
            node.ready_since = timezone.now()
        for column, new in columns.items():
            setattr(node, column, new)
        node.resource_version += 1
    return SavedNode(node, reading.notices, changed=changed)


def node_columns(value: NodeManifest) -> dict[str, Any]:
    """The columns of a node as its manifest has it."""
    return {
        "labels": value.metadata.labels,
        "annotations": value.metadata.annotations,
        "allocatable": value.allocatable,
        "taints": [dict(taint) for taint in value.taints],
        "unschedulable": value.unschedulable,
        "ready": value.ready,
    }


def _save_and_tell(node: Node, by: Actor, reason: str, verb: str) -> None:
    """What follows: warnings of queues whose promises no longer fit, news, and a session."""
    record_events(
        [EventNote("Node", node.name, reason, f"{by.name} {verb} {node.name}.")], timezone.now()
    )
    refresh_warnings()
    notify.nodes_changed([node.name])
    want_session()


@changed_in_cluster("Node")
def delete_node(
    name: str, *, by: Actor = SYSTEM, expected_version: Expected = None, dry_run: bool = False
) -> None:
    """Only when no pod is on it: drain it first."""
    access.require_cluster(by, doing="take nodes away")
    if dry_run:
        _refuse_deletion(Node.objects.get(name=name), expected_version)
        return
    with transaction.atomic():
        lock_tree()
        alone_with_pods()
        node = Node.objects.select_for_update().get(name=name)
        _refuse_deletion(node, expected_version)
        audit.record(by, "DeleteNode", "Node", name, before=stored_node(node))
        node.delete()
        _save_and_tell(node, by, "NodeRemoved", "took away")


def _refuse_deletion(node: Node, expected_version: Expected) -> None:
    check_version(f"The node {node.name}", node, expected_version)
    pods = _pods_on(node).count()
    if not pods:
        return
    message = f"{node.name} still has {counted(pods, 'pod')} on it."
    fix = "drain it, and wait until they are gone"
    raise Rejected([Violation("node_has_pods", "", "metadata.name", message, fix)], by_state=True)


def _pods_on(node: Node) -> Any:
    return Pod.objects.filter(node=node, phase__in=OCCUPYING)


def cordon_node(
    name: str, *, by: Actor = SYSTEM, reason: str = "", dry_run: bool = False
) -> NodeCommandResult:
    """No new pods on it; those that are there go on."""
    return _set_schedulable(name, "cordon", True, by, reason, dry_run)


def uncordon_node(
    name: str, *, by: Actor = SYSTEM, reason: str = "", dry_run: bool = False
) -> NodeCommandResult:
    return _set_schedulable(name, "uncordon", False, by, reason, dry_run)


@changed_in_cluster("Node")
def _set_schedulable(
    name: str, verb: str, unschedulable: bool, by: Actor, reason: str, dry_run: bool
) -> NodeCommandResult:
    access.require_cluster(by, Permission.OPERATE, f"{verb} nodes")
    if dry_run:
        return _planned_turn(Node.objects.get(name=name), verb, unschedulable)
    with transaction.atomic():
        alone_with_pods()
        node = Node.objects.select_for_update().get(name=name)
        planned = _planned_turn(node, verb, unschedulable)
        if planned.changed:
            before = {"unschedulable": not unschedulable}
            after = {"unschedulable": unschedulable}
            _write_unschedulable(node, unschedulable)
            _write_audit(node, verb, by, reason, before, after)
    return planned


def _planned_turn(node: Node, verb: str, unschedulable: bool) -> NodeCommandResult:
    if node.unschedulable is unschedulable:
        message = f"{node.name} is {verb}ed already; nothing was changed."
        return NodeCommandResult(node, False, message)
    return NodeCommandResult(node, True, f"{node.name} was {verb}ed.")


def _write_unschedulable(node: Node, unschedulable: bool) -> None:
    Node.objects.filter(pk=node.pk).update(
        unschedulable=unschedulable, resource_version=F("resource_version") + 1
    )
    node.refresh_from_db()


def _write_audit(node: Node, verb: str, by: Actor, reason: str, before: Any, after: Any) -> None:
    word = verb.capitalize()
    message = f"{by.name}: {verb} {node.name}"
    if reason:
        message += f" ({reason})"
    record_events([EventNote("Node", node.name, f"{word}Node", message)], timezone.now())
    audit.record(by, f"{word}Node", "Node", node.name, before=before, after=after, reason=reason)
    notify.nodes_changed([node.name])
    want_session()


@changed_in_cluster("Node")
def drain_node(
    name: str, *, by: Actor = SYSTEM, reason: str = "", dry_run: bool = False
) -> NodeCommandResult:
    """Cordon it and send its pods home: they come back as new ones and find a place elsewhere."""
    access.require_cluster(by, Permission.OPERATE, "drain nodes")
    if dry_run:
        return _planned_drain(Node.objects.get(name=name))
    with transaction.atomic():
        alone_with_pods()
        node = Node.objects.select_for_update().get(name=name)
        planned = _planned_drain(node)
        if planned.changed:
            before = {"unschedulable": node.unschedulable}
            after = {"unschedulable": True, "podsToldToLeave": planned.pods}
            _write_unschedulable(node, True)
            send_home(Pod.objects.filter(node=node), f"{name} is being drained", timezone.now())
            _write_audit(node, "drain", by, reason, before, after)
            notify.jobs_changed()
    return planned


def _planned_drain(node: Node) -> NodeCommandResult:
    gangs = gangs_on(node.name)
    on_it = sum(gang.pods for gang in gangs)
    if not on_it and node.unschedulable:
        message = f"{node.name} is drained already; nothing was changed."
        return NodeCommandResult(node, False, message, gangs)
    message = f"{node.name} is cordoned, with {counted(on_it, 'pod')} told to leave."
    return NodeCommandResult(node, True, message, gangs)
