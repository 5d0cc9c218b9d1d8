"""Nodes as pages show them: what each has, what is in use, and where a pod would still fit.

A fixed number of queries.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.db.models import Count, QuerySet, TextField
from django.db.models.functions import Cast

from scheduler.domain.resources import NOTHING, Resources, units_per_one
from scheduler.models import Event, Node, Pod, PodClass, PodGroup
from scheduler.models.workload import LIVE_PHASES

PLACED = ("Binding", "Bound", "Running")
OCCUPYING = (*PLACED, "Releasing", "Unknown")


class NodeRow(NamedTuple):
    """One machine. A tuple, because pages make thousands of them.

    `used` is what its pods hold, those that are leaving included. `taken` is the part of it that
    pods of other schedulers hold, which are not among `pods`. `promised` is kept for pods that
    wait.
    """

    name: str
    kind: str
    ready: bool
    unschedulable: bool
    taints: tuple[Mapping[str, str], ...]
    labels: Mapping[str, str]
    allocatable: Resources
    used: Resources
    leaving: Resources
    promised: Resources
    pods: int
    taken: Resources = NOTHING

    @property
    def takes_pods(self) -> bool:
        return self.ready and not self.unschedulable

    @property
    def state(self) -> str:
        if not self.ready:
            return "Not ready"
        if self.unschedulable:
            return "Cordoned"
        return "Ready"

    def free(self, resource: str) -> int:
        """Nothing on a node that does not answer: no pod could be started there."""
        if not self.ready:
            return 0
        left = self.allocatable.amount(resource) - self.used.amount(resource)
        if self.promised:
            # what is promised where others leave is in use still
            left -= max(0, self.promised.amount(resource) - self.leaving.amount(resource))
        return max(0, left)


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """What the pods on a node hold, and how many there are.

    Also what of it is leaving, and what is reserved for pods that wait.
    """

    used: Resources = NOTHING
    pods: int = 0
    leaving: Resources = NOTHING
    promised: Resources = NOTHING


_COLUMNS: Final = ("pk", "name", "kind", "ready", "unschedulable")
_TEXTS: Final = ("taints", "labels", "allocatable", "taken")


def node_rows(names: Collection[str] | None = None) -> list[NodeRow]:
    """All nodes by name, or those named. Four queries."""
    nodes = Node.objects.order_by("name")
    if names is not None:
        nodes = nodes.filter(name__in=names)
    texts = {f"{name}_text": Cast(name, TextField()) for name in _TEXTS}
    found = list(nodes.values_list(*_COLUMNS, *texts.values()))
    loads = node_loads([columns[0] for columns in found], are_all=names is None)
    read = _Reader()
    return [read.row(columns, loads[columns[0]]) for columns in found]


class _Reader:
    """Makes rows of columns. Most nodes are like many others: equal texts are read once."""

    def __init__(self) -> None:
        self._amounts: dict[str, Resources] = {}
        self._taints: dict[str, tuple[Mapping[str, str], ...]] = {}

    def row(self, columns: tuple[Any, ...], load: NodeLoad) -> NodeRow:
        _, name, kind, ready, unschedulable, taints, labels, allocatable, taken = columns
        others = self.amounts(taken)
        return NodeRow(
            name=name,
            kind=kind,
            ready=ready,
            unschedulable=unschedulable,
            taints=self.taints(taints),
            labels=json.loads(labels),
            allocatable=self.amounts(allocatable),
            used=_all_in_use(load.used, others),
            leaving=load.leaving,
            promised=load.promised,
            pods=load.pods,
            taken=others,
        )

    def amounts(self, text: str) -> Resources:
        found = self._amounts.get(text)
        if found is None:
            found = self._amounts[text] = Resources(json.loads(text))
        return found

    def taints(self, text: str) -> tuple[Mapping[str, str], ...]:
        found = self._taints.get(text)
        if found is None:
            found = self._taints[text] = tuple(json.loads(text))
        return found


def _all_in_use(used: Resources, taken: Resources) -> Resources:
    if not taken:
        return used
    if not used:
        return taken
    return used + taken


def node_loads(ids: Sequence[int], *, are_all: bool = False) -> dict[int, NodeLoad]:
    """Of each of these nodes; when they are all there are, the pods need not be looked for by node.

    Three queries at most.
    """
    on_nodes = pods_on_nodes()
    waiting = _with_promise()
    if not are_all:
        on_nodes = on_nodes.filter(node__in=ids)
        waiting = waiting.filter(reserved_node__in=ids)
    held = _count_pods(on_nodes, "node")
    kept = _count_pods(waiting, "reserved_node")
    requests = _requests_by_class({kind for _, kind, _, _ in (*held, *kept)})
    used = _sums_by_node(held, requests)
    promised = _sums_by_node(kept, requests)
    leaving = _sums_by_node([count for count in held if count[2] not in PLACED], requests)
    pods: dict[int, int] = {}
    for node, _, _, number in held:
        pods[node] = pods.get(node, 0) + number
    found = dict.fromkeys(ids, NodeLoad())
    for pk in (used.keys() | promised.keys()) & found.keys():
        found[pk] = NodeLoad(
            used.get(pk, NOTHING),
            pods.get(pk, 0),
            leaving.get(pk, NOTHING),
            promised.get(pk, NOTHING),
        )
    return found


def pods_on_nodes() -> QuerySet[Pod]:
    """Those that hold something there.

    Found by their gangs: those that live are few beside all that have ended, and there the index
    is.
    """
    return Pod.objects.filter(
        podgroup__phase__in=LIVE_PHASES, phase__in=OCCUPYING, node__isnull=False
    )


def _with_promise() -> QuerySet[Pod]:
    return Pod.objects.filter(
        podgroup__phase__in=LIVE_PHASES, phase="Pending", reserved_node__isnull=False
    )


_Counts = list[tuple[int, int, str, int]]
"""Node, class of pods, phase and how many: counted by class, so that the number of pods does not
matter.
"""


def _count_pods(pods: QuerySet[Pod], node: str) -> _Counts:
    return list(
        pods.order_by().values_list(node, "pod_class", "phase").annotate(number=Count("pk"))
    )


def _requests_by_class(classes: Collection[int]) -> dict[int, Resources]:
    return dict(PodClass.objects.filter(pk__in=classes).values_list("pk", "requests"))


def _sums_by_node(counts: _Counts, requests: Mapping[int, Resources]) -> dict[int, Resources]:
    sums: dict[int, Resources] = {}
    for node, kind, _, number in counts:
        sums[node] = sums.get(node, NOTHING) + requests[kind] * number
    return sums


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """How the free room of one resource is spread.

    All that is free, the most on one node, and how many nodes could take a pod of each size.
    """

    resource: str
    whole: int
    free: int
    largest: int
    room_for: tuple[tuple[int, int], ...]  # size in base units, nodes with so much free

    @property
    def is_fragmented(self) -> bool:
        """Whether the largest pod that one node could take fits nowhere now.

        There is enough free for it on all nodes together.
        """
        return bool(self.room_for) and self.free >= self.room_for[-1][0] > self.largest


def fragmentation(nodes: Sequence[NodeRow], resource: str) -> Fragmentation:
    has, free = [], []
    for node in nodes:
        amount = node.allocatable.amount(resource)
        if amount and node.takes_pods:
            has.append(amount)
            free.append(node.free(resource))
    free.sort()
    room_for = []
    for size in _sizes_to_ask(resource, max(has, default=0)):
        room_for.append((size, len(free) - bisect_left(free, size)))
    return Fragmentation(
        resource=resource,
        whole=sum(has),
        free=sum(free),
        largest=max(free, default=0),
        room_for=tuple(room_for),
    )


def _sizes_to_ask(resource: str, biggest: int) -> list[int]:
    """1, 2, 4, 8 … of it up to what one node has; for bytes counted from 1 Gi in steps of four."""
    unit = units_per_one(resource)
    factor = 2
    if unit == 1:
        unit = 2**30
        factor = 4
    sizes = [unit]
    while sizes[-1] * factor <= biggest:
        sizes.append(sizes[-1] * factor)
    if biggest >= unit:
        return sizes
    return []


def pods_on(node: str, limit: int = 500) -> list[Pod]:
    pods = (
        pods_on_nodes()
        .filter(node__name=node)
        .select_related("podgroup__queue", "podgroup__job", "pod_class")
    )
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
    """Gangs with pods that a drain of this node sends away, or that are lost with it.

    Three queries.
    """
    here = Pod.objects.filter(node__name=name, phase__in=PLACED).order_by()
    counts = dict(here.values_list("podgroup").annotate(number=Count("pk")))
    staying = Pod.objects.filter(
        podgroup__in=list(counts), phase__in=(*PLACED, "Succeeded")
    ).exclude(node__name=name, phase__in=PLACED)
    left = dict(staying.order_by().values_list("podgroup").annotate(number=Count("pk")))
    gangs = (
        PodGroup.objects.filter(pk__in=list(counts))
        .select_related("queue")
        .order_by("namespace", "name")
    )
    found: list[GangOnNode] = []
    for gang in gangs:
        found.append(
            GangOnNode(
                gang.namespace,
                gang.name,
                gang.queue.name,
                gang.owner,
                counts[gang.pk],
                left.get(gang.pk, 0),
                gang.min_member,
            )
        )
    return tuple(found)
