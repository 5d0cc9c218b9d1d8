"""What can be done to the simulated machines and their clock, and to no real ones: lose a node,
bring it back, let time run faster.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from scheduler import notify
from scheduler.admission.violations import Rejected, Violation
from scheduler.clusters import SIMULATED
from scheduler.conf import conf
from scheduler.domain.plans import counted
from scheduler.models import Node, Pod, SimulatedCluster
from scheduler.selectors.cluster.nodes import gangs_on
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.cluster.connection import simulation
from scheduler.services.cluster.nodes import NodeCommandResult
from scheduler.services.locks import alone_with_pods, lock_tree
from scheduler.services.queues.warnings import refresh_warnings
from scheduler.services.records import audit
from scheduler.services.records.events import EventNote, record_events
from scheduler.services.sessions.requests import want_session

SLOWEST = 0.1
FASTEST = 1000.0


def lose_node(
    name: str, *, by: Actor = SYSTEM, reason: str = "", dry_run: bool = False
) -> NodeCommandResult:
    """The machine stops answering: its pods are Unknown until they are given up for lost."""
    access.require_cluster(by, doing="lose nodes")
    if dry_run:
        return _planned_loss(_simulated_node(name))
    with transaction.atomic():
        lock_tree()
        alone_with_pods()
        node = _simulated_node(name, locked=True)
        planned = _planned_loss(node)
        if planned.changed:
            _set_ready(name, False)
            with simulation(nodes=[name]) as cluster:
                cluster.lose_node(name)
            Pod.objects.filter(node=node, phase__in=("Bound", "Running")).update(
                phase="Unknown", message=f"{name} was lost"
            )
            _tell_and_record(name, "NodeLost", planned.message, by, reason)
    return planned


def _planned_loss(node: Node) -> NodeCommandResult:
    if not node.ready:
        message = f"{node.name} is lost already; nothing was changed."
        return NodeCommandResult(node, False, message)
    gangs = gangs_on(node.name)
    pods = counted(sum(gang.pods for gang in gangs), "pod")
    message = f"{node.name} does not answer any more; it had {pods}."
    return NodeCommandResult(node, True, message, gangs)


def bring_back_node(
    name: str, *, by: Actor = SYSTEM, reason: str = "", dry_run: bool = False
) -> NodeCommandResult:
    """It answers again, and is empty."""
    access.require_cluster(by, doing="bring nodes back")
    if dry_run:
        return _planned_return(_simulated_node(name))
    with transaction.atomic():
        lock_tree()
        planned = _planned_return(_simulated_node(name, locked=True))
        if planned.changed:
            _set_ready(name, True)
            _tell_and_record(name, "NodeReady", planned.message, by, reason)
    return planned


def _planned_return(node: Node) -> NodeCommandResult:
    if node.ready:
        message = f"{node.name} was there all the time; nothing was changed."
        return NodeCommandResult(node, False, message)
    return NodeCommandResult(node, True, f"{node.name} answers again.")


def _simulated_node(name: str, *, locked: bool = False) -> Node:
    nodes = Node.objects.all()
    if locked:
        nodes = nodes.select_for_update()
    node = nodes.get(name=name)
    if not nodes_are_simulated():
        message = f"{name} is a real machine: it cannot be lost or brought back by order."
        raise Rejected(
            [Violation("not_simulated", "", "metadata.name", message, "drain it instead")],
            by_state=True,
        )
    return node


def nodes_are_simulated() -> bool:
    return conf().cluster == SIMULATED


def _set_ready(name: str, ready: bool) -> None:
    """And warn the queues whose promises need it, or warn them no more."""
    Node.objects.filter(name=name).update(
        ready=ready, ready_since=timezone.now(), resource_version=F("resource_version") + 1
    )
    refresh_warnings()


def _tell_and_record(name: str, what: str, message: str, by: Actor, reason: str) -> None:
    record_events(
        [EventNote("Node", name, what, message, warning=what == "NodeLost")], timezone.now()
    )
    audit.record(by, what, "Node", name, message=message, reason=reason)
    notify.nodes_changed([name])
    notify.jobs_changed()
    want_session()


def set_speed(speed: float) -> None:
    """How many simulated seconds pass in a real one. Raises `ValueError` outside the bounds."""
    if not SLOWEST <= speed <= FASTEST:
        raise ValueError(f"a speed of {speed:g} is not possible; give {SLOWEST:g} to {FASTEST:g}")
    with transaction.atomic():
        with simulation():  # time so far passed at the old speed
            pass
        SimulatedCluster.objects.filter(pk=1).update(speed=speed)
