"""Nodes as pages show them: what each has, what is in use, where a pod of some size would still fit. A fixed number of queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from scheduler.domain.resources import NOTHING, Resources, units_per_one
from scheduler.models import Event, Node, Pod, PodClass, PodGroup
from scheduler.models.workload import LIVE_PHASES

PLACED = ("Binding", "Bound", "Running")
OCCUPYING = (*PLACED, "Releasing", "Unknown")


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One machine. `used` is what its pods ask for, those that are leaving included."""

    name: str
    kind: str
    ready: bool
    unschedulable: bool
    taints: tuple[Mapping[str, str], ...]
    labels: Mapping[str, str]
    allocatable: Resources
    used: Resources
    pods: int

    @property
    def takes_pods(self) -> bool:
        return self.ready and not self.unschedulable

    @property
    def state(self) -> str:
        return "Not ready" if not self.ready else "Cordoned" if self.unschedulable else "Ready"

    def free(self, resource: str) -> int:
        """Nothing on a node that does not answer: no pod could be started there."""
        if not self.ready:
            return 0
        return max(0, self.allocatable.amount(resource) - self.used.amount(resource))


def node_rows(names: Collection[str] | None = None) -> list[NodeRow]:
    """All nodes by name, or those named. Three queries."""
    nodes = Node.objects.order_by("name")
    if names is not None:
        nodes = nodes.filter(name__in=names)
    found = list(nodes)
    used, pods = _in_use(None if names is None else [node.pk for node in found])
    return [_row(node, used.get(node.pk, NOTHING), pods.get(node.pk, 0)) for node in found]


def _row(node: Node, used: Resources, pods: int) -> NodeRow:
    return NodeRow(node.name, node.kind, node.ready, node.unschedulable, tuple(node.taints), node.labels, node.allocatable, used, pods)


def _on_nodes() -> QuerySet[Pod]:
    """Found by their gangs: those that live are few beside all that have ended, and there the index is."""
    return Pod.objects.filter(podgroup__phase__in=LIVE_PHASES, phase__in=OCCUPYING, node__isnull=False)


def _in_use(ids: Iterable[int] | None) -> tuple[dict[int, Resources], dict[int, int]]:
    """By node: the sum of what its pods ask for, counted by class so that the number of pods does not matter."""
    occupying = _on_nodes()
    if ids is not None:
        occupying = occupying.filter(node__in=list(ids))
    counts = list(occupying.order_by().values_list("node", "pod_class").annotate(number=Count("pk")))
    requests = dict(PodClass.objects.filter(pk__in={kind for _, kind, _ in counts}).values_list("pk", "requests"))
    used: dict[int, Resources] = {}
    pods: dict[int, int] = {}
    for node, kind, number in counts:
        used[node] = used.get(node, NOTHING) + requests[kind] * number
        pods[node] = pods.get(node, 0) + number
    return used, pods


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """How one resource lies about: all that is free, the most on one node, and how many nodes could take a pod of each size."""

    resource: str
    whole: int
    free: int
    largest: int
    room_for: tuple[tuple[int, int], ...]  # size in base units, nodes with so much free

    @property
    def is_fragmented(self) -> bool:
        """There is enough in all for one of the largest pods that a node could take, and no node has it."""
        return bool(self.room_for) and self.free >= self.room_for[-1][0] > self.largest


def fragmentation(nodes: Sequence[NodeRow], resource: str) -> Fragmentation:
    taking = [node for node in nodes if node.takes_pods and node.allocatable.amount(resource)]
    free = [node.free(resource) for node in taking]
    biggest = max((node.allocatable.amount(resource) for node in taking), default=0)
    sizes = _sizes(resource, biggest)
    return Fragmentation(
        resource=resource,
        whole=sum(node.allocatable.amount(resource) for node in taking),
        free=sum(free),
        largest=max(free, default=0),
        room_for=tuple((size, sum(1 for amount in free if amount >= size)) for size in sizes),
    )


def _sizes(resource: str, biggest: int) -> list[int]:
    """1, 2, 4, 8 … of it up to what one node has; for bytes counted from 1 Gi in steps of four."""
    unit, factor = (2**30, 4) if units_per_one(resource) == 1 else (units_per_one(resource), 2)
    sizes = [unit]
    while sizes[-1] * factor <= biggest:
        sizes.append(sizes[-1] * factor)
    return sizes if biggest >= unit else []


def pods_on(node: str, limit: int = 500) -> list[Pod]:
    pods = _on_nodes().filter(node__name=node).select_related("podgroup__queue", "podgroup__job", "pod_class")
    return list(pods.order_by("podgroup_id", "index", "pk")[:limit])


def node_events(node: str, limit: int = 50) -> list[Event]:
    return list(Event.objects.filter(kind="Node", name=node)[:limit])


@dataclass(frozen=True, slots=True)
class GangOnNode:
    """What a gang would lose with its pods on one node, and whether enough of it would be left."""

    namespace: str
    name: str
    queue: str
    owner: str
    pods: int
    left: int
    needed: int

    @property
    def breaks(self) -> bool:
        return self.left < self.needed


def gangs_on(name: str) -> tuple[GangOnNode, ...]:
    """Gangs with pods that a drain of this node sends away, or that are lost with it. Three queries."""
    here = Pod.objects.filter(node__name=name, phase__in=PLACED).order_by()
    counts = dict(here.values_list("podgroup").annotate(number=Count("pk")))
    staying = Pod.objects.filter(podgroup__in=list(counts), phase__in=(*PLACED, "Succeeded")).exclude(node__name=name, phase__in=PLACED)
    left = dict(staying.order_by().values_list("podgroup").annotate(number=Count("pk")))
    gangs = PodGroup.objects.filter(pk__in=list(counts)).select_related("queue").order_by("namespace", "name")
    return tuple(
        GangOnNode(gang.namespace, gang.name, gang.queue.name, gang.owner, counts[gang.pk], left.get(gang.pk, 0), gang.min_member)
        for gang in gangs
    )
