"""The cluster at one instant, as tables: all that a session may know.

A small one is built from values (`Snapshot.build`), a large one from columns (`Snapshot(...)`), and
a resident one is kept between sessions: `add_pods`, `change_pods`, `remove_pods` and their likes
keep the sums in step, so that a refresh costs what changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any, Self

import numpy as np

from scheduler.domain.codes import StatusCode
from scheduler.domain.nodes import Node, NodeTable
from scheduler.domain.pod_rules import PodSelector, watched_keys, watched_labels
from scheduler.domain.queues import QueueSpec, QueueState
from scheduler.domain.resources import Resources
from scheduler.domain.tables import (
    LOST_NODE,
    MAX_MINIMUM,
    NO_NODE,
    NO_QUEUE,
    Aggregates,
    ClassTable,
    GroupTable,
    PodTable,
    Rows,
)
from scheduler.domain.workloads import Constraint, Pod, PodClass, PodGroup, PodStatus

BASE_RESOURCES = ("cpu", "memory", "pods")


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue with its state as it follows from the tree.

    `held_by` names the queue whose suspension holds scheduling here.
    """

    spec: QueueSpec
    state: QueueState = QueueState.OPEN
    held_by: str = ""
    created: float = 0.0

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def is_held(self) -> bool:
        return bool(self.held_by) or self.state is QueueState.SUSPENDED

    @property
    def schedules(self) -> bool:
        """Open and Closing queues give their jobs places, unless held."""
        return self.state in (QueueState.OPEN, QueueState.CLOSING) and not self.is_held


def resource_names(*amounts: Iterable[str]) -> tuple[str, ...]:
    """The columns of all amounts: cpu, memory, pods, then every other name in order."""
    others = set[str]().union(*amounts) - set(BASE_RESOURCES)
    return (*BASE_RESOURCES, *sorted(others))


def quotas_of(queues: Iterable[Queue]) -> Iterator[Resources]:
    """Capability, deserved and guarantee of each queue."""
    for queue in queues:
        yield queue.spec.capability
        yield queue.spec.deserved
        yield queue.spec.guarantee


@dataclass(eq=False)
class Snapshot:
    """Nodes are in name order, queues too; podgroups and pods in any.

    `session` is the number that reservations and grace count in.
    """

    resources: tuple[str, ...]
    nodes: NodeTable
    queues: tuple[Queue, ...]
    classes: ClassTable
    groups: GroupTable
    pods: PodTable
    taken_at: float = 0.0
    session: int = 0
    paused: bool = False
    is_watched: bool = False
    """Another scheduler decides: what this session decides is not done."""
    label_keys: frozenset[str] | None = None
    """The labels of pods that rules between pods look at; None where there are no rules."""

    def __post_init__(self) -> None:
        names = [queue.name for queue in self.queues]
        if any(left >= right for left, right in pairwise(names)):
            raise ValueError("queues must come in the order of their names, each once")

    @classmethod
    def build(
        cls,
        *,
        nodes: Iterable[Node] = (),
        queues: Iterable[Queue | QueueSpec] = (),
        podgroups: Iterable[PodGroup] = (),
        pods: Iterable[Pod] = (),
        taken_at: float = 0.0,
        session: int = 0,
        paused: bool = False,
    ) -> Self:
        """From values, in any order. A pod whose podgroup is not there is left out."""
        nodes = list(nodes)
        podgroups = list(podgroups)
        pods = list(pods)
        ordered = tuple(
            sorted((_as_queue(queue) for queue in queues), key=lambda queue: queue.name)
        )
        resources = _all_resources(nodes, ordered, podgroups, pods)
        node_table = NodeTable.build(nodes, resources)
        classes = ClassTable(resources)
        groups = group_table(
            podgroups,
            {queue.name: row for row, queue in enumerate(ordered)},
            resources,
        )
        label_keys = watched_keys(all_selectors((pod.constraint for pod in pods), nodes))
        pod_table = _pod_table(pods, groups, node_table, classes, label_keys)
        return cls(
            resources,
            node_table,
            ordered,
            classes,
            groups,
            pod_table,
            taken_at,
            session,
            paused,
            label_keys=label_keys,
        )

    def copy(self) -> Self:
        """To try something out on: its rows may be changed, this one stays as it is.

        Nodes and queues are values and are shared.
        """
        sums = self.aggregates
        other = replace(
            self,
            classes=self.classes.copy(),
            groups=self.groups.copy(),
            pods=self.pods.copy(),
        )
        other.__dict__["aggregates"] = sums.copy()
        return other

    @cached_property
    def queue_rows(self) -> dict[str, int]:
        return {queue.name: row for row, queue in enumerate(self.queues)}

    @property
    def found_of_queues(self) -> dict[object, Any]:
        """What others found out from the queues alone, kept for the next session; forgotten when
        the queues are replaced.
        """
        kept: tuple[object, dict[object, Any]] | None = self.__dict__.get("_found_of_queues")
        if kept is None or kept[0] is not self.queues:
            kept = self.__dict__["_found_of_queues"] = (self.queues, {})
        return kept[1]

    @property
    def found_of_nodes(self) -> dict[object, Any]:
        """The same from the nodes and the classes of pods; forgotten when the nodes are replaced.

        A class of pods never changes, so new ones are no reason to forget.
        """
        kept: tuple[object, object, dict[object, Any]] | None
        kept = self.__dict__.get("_found_of_nodes")
        if kept is None or kept[0] is not self.nodes or kept[1] is not self.classes:
            kept = self.__dict__["_found_of_nodes"] = (self.nodes, self.classes, {})
        return kept[2]

    @cached_property
    def aggregates(self) -> Aggregates:
        """Summed from scratch on first use; kept in step by the methods that change rows."""
        sums = Aggregates.empty(len(self.nodes), len(self.groups), len(self.resources))
        self._count(sums, np.arange(len(self.pods)), 1)
        return sums

    def _count(self, sums: Aggregates, rows: Rows, sign: int) -> None:
        """Free rows count for nothing, so that they may be used again by `change_pods`."""
        pods = self.pods
        rows = rows[pods.status[rows] != StatusCode.GONE]
        columns = {"group": pods.group[rows], "status": pods.status[rows], "node": pods.node[rows]}
        sums.count(columns, self.classes.request[pods.pod_class[rows]], sign)

    def change_pods(self, rows: Rows, **values: Any) -> None:
        """Writes the named columns of these pods (each row once) and moves them in the sums."""
        sums = self.aggregates
        self._count(sums, rows, -1)
        self.pods.set(rows, values)
        self._count(sums, rows, 1)

    def add_pods(self, **columns: Any) -> Rows:
        """Appends pods given as the columns of `PodTable.of`; answers their rows."""
        sums = self.aggregates
        new = PodTable.of(**columns)
        rows = np.arange(len(self.pods), len(self.pods) + len(new))
        self.pods.grow(new.take(np.arange(len(new))))
        self._count(sums, rows, 1)
        return rows

    def remove_pods(self, rows: Rows) -> None:
        """Frees these rows: they stay, with status GONE."""
        self._count(self.aggregates, rows, -1)
        self.pods.set(
            rows,
            {
                "status": PodStatus.GONE,
                "node": NO_NODE,
                "reserved_node": NO_NODE,
                "borrowed": False,
            },
        )

    def change_groups(self, rows: Rows, **values: Any) -> None:
        self.groups.set(rows, values)

    def add_groups(self, podgroups: Sequence[PodGroup]) -> Rows:
        """Appends podgroups; answers their rows."""
        new = group_table(podgroups, self.queue_rows, self.resources)
        rows = np.arange(len(self.groups), len(self.groups) + len(new))
        self.aggregates.grow_groups(len(new))
        self.groups.grow(new.take(np.arange(len(new))))
        return rows

    def remove_groups(self, rows: Rows) -> None:
        """Frees these rows; their pods must be removed too."""
        self.groups.set(rows, {"alive": False})

    def replace_nodes(self, nodes: NodeTable) -> None:
        """Other nodes, or other figures of the same: pods keep their node by name, those of a node
        that went become lost.
        """
        rows = [nodes.rows.get(name, LOST_NODE) for name in self.nodes.names]
        places = np.array(rows, dtype=np.int32)
        pods = self.pods
        pods.node = _moved(pods.node, places)
        pods.reserved_node = np.maximum(_moved(pods.reserved_node, places), NO_NODE)
        self.nodes = nodes
        self.__dict__.pop("aggregates", None)

    def replace_queues(self, queues: Iterable[Queue]) -> None:
        """Other queues, or other figures of the same: podgroups keep their queue by name."""
        old = self.queues
        self.queues = tuple(sorted(queues, key=lambda queue: queue.name))
        self.__dict__.pop("queue_rows", None)
        rows = [self.queue_rows.get(queue.name, NO_QUEUE) for queue in old]
        places = np.array(rows, dtype=np.int32)
        self.groups.queue = _moved(self.groups.queue, places)


class ClockedSnapshot(Snapshot):
    """A snapshot that notes whether anybody asked it for the time: the number of the session, or
    the moment it was taken at.

    A session is a function of what it reads. One that did not ask for the time comes to the same
    outcome at any other time.
    """

    clock_was_read = False

    @property
    def session(self) -> int:
        self.clock_was_read = True
        return self._session

    @session.setter
    def session(self, number: int) -> None:
        self._session = number

    @property
    def taken_at(self) -> float:
        self.clock_was_read = True
        return self._taken_at

    @taken_at.setter
    def taken_at(self, moment: float) -> None:
        self._taken_at = moment


def _moved(column: Any, places: Any) -> Any:
    """The column with row numbers replaced by their new ones; negative marks stay."""
    moved = column.copy()
    known = column >= 0
    moved[known] = places[column[known]]
    return moved


def _as_queue(queue: Queue | QueueSpec) -> Queue:
    if isinstance(queue, Queue):
        return queue
    held_by = ""
    if queue.state is QueueState.SUSPENDED:
        held_by = queue.name
    return Queue(queue, queue.state, held_by)


def _all_resources(
    nodes: list[Node],
    queues: Sequence[Queue],
    podgroups: list[PodGroup],
    pods: list[Pod],
) -> tuple[str, ...]:
    return resource_names(
        *(node.allocatable for node in nodes),
        *quotas_of(queues),
        *(group.min_resources or () for group in podgroups),
        *(pod.request for pod in pods),
    )


def group_table(
    podgroups: Sequence[PodGroup],
    queue_rows: Mapping[str, int],
    resources: Sequence[str],
) -> GroupTable:
    """Columns from values."""
    queues = [queue_rows.get(group.queue, NO_QUEUE) for group in podgroups]
    has_minimum = [group.min_resources is not None for group in podgroups]
    minimums = [_minimum_row(group, resources) for group in podgroups]
    shape = (len(podgroups), len(resources))

    def column(attribute: str, dtype: Any) -> Any:
        """None becomes NaN in columns of floats."""
        return np.array([*map(attrgetter(attribute), podgroups)], dtype=dtype)

    return GroupTable(
        key=[group.key for group in podgroups],
        queue=np.array(queues, dtype=np.int32),
        min_member=column("min_member", np.int32),
        priority=column("priority", np.int64),
        phase=column("phase", np.int8),
        created=column("created", np.float64),
        min_resources=np.array(minimums, dtype=np.int64).reshape(shape),
        has_min_resources=np.array(has_minimum, dtype=np.bool_),
        role_minimums=[tuple(sorted(group.role_minimums.items())) for group in podgroups],
        starving_since=column("starving_since", np.int32),
        sla_waiting_time=column("sla_waiting_time", np.float64),
        on_hold=[group.on_hold for group in podgroups],
        not_permitted=[group.not_permitted for group in podgroups],
        evictions=column("evictions", np.int32),
        expected_seconds=column("expected_seconds", np.float64),
        said=np.zeros(len(podgroups), dtype=np.int64),
        alive=np.ones(len(podgroups), dtype=np.bool_),
    )


def _minimum_row(group: PodGroup, resources: Sequence[str]) -> list[int]:
    if group.min_resources is None:
        return [0] * len(resources)
    amounts = map(group.min_resources.amount, resources)
    return [min(amount, MAX_MINIMUM) for amount in amounts]


def _or_nan(value: float | None) -> float:
    if value is not None:
        return value
    return float("nan")


def _row_of_node(pod: Pod, nodes: NodeTable) -> int:
    if not pod.node:
        return NO_NODE
    return nodes.rows.get(pod.node, LOST_NODE)


def all_selectors(
    constraints: Iterable[Constraint], nodes: Iterable[Node]
) -> Iterator[PodSelector]:
    """Of the rules of all pods, those of others included."""
    for constraint in constraints:
        yield from constraint.rules.selectors
    for node in nodes:
        for pods in node.foreign:
            for term in pods.anti_affinity:
                yield term.selector


def labelled_class(
    pod_class: PodClass, namespace: str, labels: Mapping[str, str], keys: frozenset[str] | None
) -> PodClass:
    """With what the rules of some pod look at; `keys` is None where there are no rules."""
    if keys is None:
        return pod_class
    return replace(pod_class, namespace=namespace, labels=watched_labels(labels, keys))


def _pod_table(
    pods: Iterable[Pod],
    groups: GroupTable,
    nodes: NodeTable,
    classes: ClassTable,
    keys: frozenset[str] | None,
) -> PodTable:
    members = [pod for pod in pods if pod.podgroup in groups.rows]
    return PodTable.of(
        key=[pod.key for pod in members],
        group=[groups.rows[pod.podgroup] for pod in members],
        pod_class=[
            classes.number(labelled_class(pod.pod_class(), pod.namespace, pod.labels, keys))
            for pod in members
        ],
        status=[pod.status for pod in members],
        node=[_row_of_node(pod, nodes) for pod in members],
        created=[pod.created for pod in members],
        borrowed=[pod.borrowed for pod in members],
        reserved_node=[nodes.rows.get(pod.reserved_node, NO_NODE) for pod in members],
        reserved_until=[pod.reserved_until for pod in members],
        started=[_or_nan(pod.started) for pod in members],
    )
