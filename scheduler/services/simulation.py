"""What can be done to the simulated machines and their clock, and to no real ones: lose a node, bring it back, let time run faster."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from scheduler import notify
from scheduler.models import Node, Pod, SimulatedCluster
from scheduler.services import access, audit
from scheduler.services.actors import SYSTEM, Actor
from scheduler.services.clusters import simulation
from scheduler.services.events import EventNote, record_events
from scheduler.services.locks import alone_with_pods
from scheduler.services.scheduling import want_session

SLOWEST, FASTEST = 0.1, 1000.0


@transaction.atomic
def lose_node(name: str, *, by: Actor = SYSTEM) -> int:
    """The machine stops answering: its pods are Unknown until they are given up for lost. How many there were."""
    access.require_cluster(by, doing="lose nodes")
    alone_with_pods()
    if not Node.objects.filter(name=name).exists():
        raise Node.DoesNotExist(f"There is no node {name}.")
    Node.objects.filter(name=name, ready=True).update(ready=False, resource_version=F("resource_version") + 1)
    with simulation(nodes=[name]) as cluster:
        cluster.lose_node(name)
    lost = Pod.objects.filter(node__name=name, phase__in=("Bound", "Running")).update(phase="Unknown", message=f"{name} was lost")
    _tell(name, "NodeLost", f"{name} does not answer any more; {lost} pods were on it.", by, warning=True)
    return lost


@transaction.atomic
def bring_back_node(name: str, *, by: Actor = SYSTEM) -> bool:
    """It answers again, and is empty. False if it was there all the time."""
    access.require_cluster(by, doing="bring nodes back")
    if not Node.objects.filter(name=name).exists():
        raise Node.DoesNotExist(f"There is no node {name}.")
    if not Node.objects.filter(name=name, ready=False).update(ready=True, resource_version=F("resource_version") + 1):
        return False
    _tell(name, "NodeReady", f"{name} answers again.", by)
    return True


def _tell(name: str, reason: str, message: str, by: Actor, *, warning: bool = False) -> None:
    record_events([EventNote("Node", name, reason, message, warning=warning)], timezone.now())
    audit.record(by, reason, "Node", name, message=message)
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
