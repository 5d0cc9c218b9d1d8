"""The cluster as the engine sees it, kept between sessions and refreshed by the rows that changed.

`ResidentSnapshot.refresh()` reads, in one transaction that sees one state of the database, the
change log since the last time and the rows it names. Everything else about the cluster is already
here. Now and then the sums of each queue are compared with the database's own (`snapshot_sums`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from scheduler.domain.nodes import Node, NodeTable
from scheduler.domain.pod_rules import watched_keys
from scheduler.domain.snapshot import (
    ClockedSnapshot,
    Queue,
    all_selectors,
    group_table,
    labelled_class,
    quotas_of,
    resource_names,
)
from scheduler.domain.tables import LOST_NODE, NO_NODE, ClassTable, GroupTable, PodTable
from scheduler.domain.workloads import PodClass, PodGroup, PodStatus
from scheduler.models.bulk import fetch
from scheduler.selectors.sessions.change_log import (
    Position,
    changes_since,
    one_state_of_the_database,
    untouched_since,
)
from scheduler.selectors.sessions.snapshot_rows import (
    CLASS_COLUMNS,
    NODE_COLUMNS,
    POD_STATUS,
    QUEUE_COLUMNS,
    class_of,
    group_columns,
    group_of,
    ids_parameter,
    is_stopping,
    node_of,
    one_of_ids,
    pod_columns,
    queue_of,
    said_of,
)
from scheduler.selectors.sessions.snapshot_sums import compare_sums

_LIVE = "phase <> 'Completed'"
_WORTH_COMPACTING = 4096


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh found: how many rows of each table it read, and whether it read everything."""

    reloaded: bool = False
    rows: Mapping[str, int] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        return sum(self.rows.values())


class _NewLabels(Exception):
    """Rules between pods look at a label that the classes of pods here do not have."""


class _NewResource(Exception):
    """Something names a resource that the tables have no column for."""


class ResidentSnapshot:
    """`snapshot` is what the engine is given; `pod_ids` and `group_ids` translate its rows back to
    primary keys.

    `also_watched` are labels that a rule about to come looks at.
    """

    def __init__(self, also_watched: frozenset[str] | None = None) -> None:
        self._also_watched = also_watched
        self.position: Position | None = None
        self._clear()

    def forget(self) -> None:
        """The next refresh reads everything again."""
        self.position = None

    def _clear(self) -> None:
        self.queues: dict[int, Queue] = {}
        self.nodes: dict[int, Node] = {}
        self.classes: dict[int, PodClass] = {}
        self._class_numbers: dict[tuple[int, str, str], int] = {}
        self._watched: frozenset[str] | None = None  # labels that rules between pods look at
        self._classes_at_first = 0
        self.pod_rows: dict[int, int] = {}
        self.group_rows: dict[int, int] = {}
        self.pod_ids: list[int] = []
        self.group_ids: list[int] = []
        self._stopping: set[int] = set()
        self.node_ids: dict[str, int] = {}
        self._places: dict[int | None, int] = {}
        self.snapshot = ClockedSnapshot.build()

    def refresh(self, *, check_sums: bool = False) -> Refreshed:
        """Bring the tables up to the database.

        With `check_sums` its sums are compared with the database's own. Raises `SumsDiffer`.
        """
        if not check_sums and (here := untouched_since(self.position)) is not None:
            self.position = here
            return Refreshed()
        with one_state_of_the_database():
            position, changes = changes_since(self.position)
            refreshed = self._reload() if changes is None else self._apply(changes)
            self.position = position
            if check_sums:
                compare_sums(self.snapshot, self.queues, self.classes)
        self._compact()
        return refreshed

    def reload(self) -> Refreshed:
        """Forget everything and read it again."""
        self.forget()
        return self.refresh()

    # Reading everything

    def _reload(self) -> Refreshed:
        self._clear()
        self.queues = {row[0]: queue_of(row) for row in _queue_rows()}
        nodes = fetch(f"SELECT {NODE_COLUMNS} FROM scheduler_node")
        self.nodes = {row[0]: node_of(row) for row in nodes}
        classes = fetch(f"SELECT {CLASS_COLUMNS} FROM scheduler_podclass")
        self.classes = {row[0]: class_of(row) for row in classes}
        groups = fetch(
            f"SELECT {group_columns()} FROM scheduler_podgroup WHERE {_LIVE} ORDER BY id"
        )
        pods = fetch(
            f"SELECT {pod_columns()} FROM scheduler_pod p "
            "JOIN scheduler_podgroup g ON g.id = p.podgroup_id "
            f"WHERE g.{_LIVE} AND NOT (g.stopping AND p.phase = 'Pending') ORDER BY p.id"
        )
        self._build(groups, pods)
        counts = {
            "queue": len(self.queues),
            "node": len(self.nodes),
            "podgroup": len(groups),
            "pod": len(pods),
        }
        return Refreshed(reloaded=True, rows=counts)

    def _build(self, groups: Sequence[Sequence[Any]], pods: Sequence[Sequence[Any]]) -> None:
        names = {pk: queue.name for pk, queue in self.queues.items()}
        values = [group_of(row, names) for row in groups]
        resources = self._resources(values)
        self._watched = self._watched_keys()
        queues = tuple(sorted(self.queues.values(), key=lambda queue: queue.name))
        queue_rows = {queue.name: row for row, queue in enumerate(queues)}
        nodes = NodeTable.build(self.nodes.values(), resources)
        self._number_nodes(nodes)
        self.group_ids = [row[0] for row in groups]
        self.group_rows = {pk: row for row, pk in enumerate(self.group_ids)}
        self._note_stopping(groups)
        empty = PodTable.of(key=[], group=[], pod_class=[], status=[], node=[])
        table = group_table(values, queue_rows, resources)
        table.said[:] = [said_of(row) for row in groups]
        self.snapshot = ClockedSnapshot(
            resources,
            nodes,
            queues,
            ClassTable(resources),
            table,
            empty,
            label_keys=self._watched,
        )
        self.snapshot.pods = PodTable.of(**self._pod_columns(pods))
        self.pod_ids = [row[0] for row in pods]
        self.pod_rows = {pk: row for row, pk in enumerate(self.pod_ids)}
        self._classes_at_first = len(self._class_numbers)

    def _number_nodes(self, table: NodeTable) -> None:
        self.node_ids = {node.name: pk for pk, node in self.nodes.items()}
        self._places = {None: NO_NODE}
        for pk, node in self.nodes.items():
            self._places[pk] = table.rows.get(node.name, LOST_NODE)

    def _resources(self, groups: Iterable[PodGroup]) -> tuple[str, ...]:
        return resource_names(
            *(node.allocatable for node in self.nodes.values()),
            *quotas_of(self.queues.values()),
            *(group.min_resources or () for group in groups),
            *(pod_class.request for pod_class in self.classes.values()),
        )

    def _pod_columns(self, pods: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Columns for `PodTable.of`, one comprehension a column: this runs over every pod of a cold
        start.
        """
        if not pods:
            return {"key": [], "group": [], "pod_class": [], "status": [], "node": []}
        (
            _,
            keys,
            groups,
            classes,
            tasks,
            phases,
            nodes,
            created,
            borrowed,
            reserved,
            until,
            started,
        ) = zip(*pods, strict=True)
        return {
            "key": list(keys),
            "group": [self.group_rows[pk] for pk in groups],
            "pod_class": self._numbers_of_classes(keys, classes, tasks),
            "status": [POD_STATUS[phase] for phase in phases],
            "node": [self._places.get(pk, LOST_NODE) for pk in nodes],
            "created": created,
            "borrowed": borrowed,
            "reserved_node": [self._places.get(pk, NO_NODE) for pk in reserved],
            "reserved_until": [-1 if session is None else session for session in until],
            "started": np.array(started, dtype=np.float64),  # NaN where it is None
        }

    def _numbers_of_classes(
        self, keys: Sequence[str], classes: Sequence[int], tasks: Sequence[str]
    ) -> list[int]:
        if self._watched is None:
            return [
                self._class_number(pk, task, "") for pk, task in zip(classes, tasks, strict=True)
            ]
        namespaces = [key.partition("/")[0] for key in keys]
        given = zip(classes, tasks, namespaces, strict=True)
        return [self._class_number(pk, task, namespace) for pk, task, namespace in given]

    def _class_number(self, class_id: int, task: str, namespace: str) -> int:
        number = self._class_numbers.get((class_id, task, namespace))
        if number is None:
            stored = self.classes[class_id]
            plain = replace(stored, role=task, labels=())
            pod_class = labelled_class(plain, namespace, dict(stored.labels), self._watched)
            number = self.snapshot.classes.number(pod_class)
            self._class_numbers[class_id, task, namespace] = number
        return number

    # Rules between pods

    def _watched_keys(self) -> frozenset[str] | None:
        constraints = (pod_class.constraint for pod_class in self.classes.values())
        keys = watched_keys(all_selectors(constraints, self.nodes.values()))
        if self._also_watched is None:
            return keys
        return self._also_watched | (keys or frozenset())

    def _still_watched(self) -> None:
        """Raises `_NewLabels` if rules look at more labels than the classes here have."""
        keys = self._watched_keys()
        if keys is not None and (self._watched is None or not keys <= self._watched):
            raise _NewLabels

    # Reading what changed

    def _apply(self, changes: Mapping[str, set[int]]) -> Refreshed:
        try:
            return Refreshed(rows=self._apply_tables(changes))
        except (_NewResource, _NewLabels):
            return self._reload()

    def _apply_tables(self, changes: Mapping[str, set[int]]) -> dict[str, int]:
        read = {}
        for table, apply in self._appliers():
            if changes.get(table):
                read[table] = apply(changes[table])
        return read

    def _appliers(self) -> list[tuple[str, Any]]:
        """In the order in which rows refer to each other."""
        return [
            ("queue", self._apply_queues),
            ("node", self._apply_nodes),
            ("podclass", self._apply_classes),
            ("podgroup", self._apply_groups),
            ("pod", self._apply_pods),
        ]

    def _known(self, *amounts: Iterable[str]) -> None:
        if not set(resource_names(*amounts)) <= set(self.snapshot.resources):
            raise _NewResource

    def _apply_queues(self, ids: set[int]) -> int:
        rows = {row[0]: queue_of(row) for row in _queue_rows(ids)}
        for queue in rows.values():
            self._known(queue.spec.capability, queue.spec.deserved, queue.spec.guarantee)
        _replace(self.queues, ids, rows)
        self.snapshot.replace_queues(self.queues.values())
        return len(ids)

    def _apply_nodes(self, ids: set[int]) -> int:
        found = fetch(
            f"SELECT {NODE_COLUMNS} FROM scheduler_node WHERE {one_of_ids('id')}",
            [ids_parameter(ids)],
        )
        rows = {row[0]: node_of(row) for row in found}
        self._known(*(node.allocatable for node in rows.values()))
        _replace(self.nodes, ids, rows)
        if any(node.foreign for node in rows.values()):
            self._still_watched()
        table = NodeTable.build(self.nodes.values(), self.snapshot.resources)
        self._number_nodes(table)
        self.snapshot.replace_nodes(table)
        return len(ids)

    def _apply_classes(self, ids: set[int]) -> int:
        found = fetch(
            f"SELECT {CLASS_COLUMNS} FROM scheduler_podclass WHERE {one_of_ids('id')}",
            [ids_parameter(ids)],
        )
        rows = {row[0]: class_of(row) for row in found}
        self._known(*(pod_class.request for pod_class in rows.values()))
        self.classes.update(rows)
        if any(pod_class.constraint.rules for pod_class in rows.values()):
            self._still_watched()
        return len(ids)

    def _apply_groups(self, ids: set[int]) -> int:
        found = fetch(
            f"SELECT {group_columns()} FROM scheduler_podgroup "
            f"WHERE {_LIVE} AND {one_of_ids('id')}",
            [ids_parameter(ids)],
        )
        names = {pk: queue.name for pk, queue in self.queues.items()}
        values = {row[0]: group_of(row, names) for row in found}
        self._known(*(group.min_resources or () for group in values.values()))
        gone = ids - values.keys()
        self._remove_groups([pk for pk in gone if pk in self.group_rows])
        stopped = self._stopping & ids
        self._stopping.difference_update(ids)
        self._note_stopping(found)
        known: dict[int, PodGroup] = {}
        new: dict[int, PodGroup] = {}
        for pk, group in values.items():
            place = known if pk in self.group_rows else new
            place[pk] = group
        self._change_groups(known)
        self._remove_waiting_pods([pk for pk in self._stopping & ids if pk in self.group_rows])
        self._add_groups(new)
        self._bring_waiting_pods_back((stopped - self._stopping) & values.keys())
        return len(ids)

    def _remove_groups(self, ids: list[int]) -> None:
        if not ids:
            return
        rows = np.array([self.group_rows.pop(pk) for pk in ids], dtype=np.intp)
        pods = self.snapshot.pods
        members = np.isin(pods.group, rows) & (pods.status != 0)
        self._remove_pod_rows(np.flatnonzero(members))
        self.snapshot.remove_groups(rows)

    def _note_stopping(self, rows: Iterable[Sequence[Any]]) -> None:
        self._stopping.update(row[0] for row in rows if is_stopping(row))

    def _remove_waiting_pods(self, groups: list[int]) -> None:
        """Of podgroups whose pods are being stopped: no session places those that wait."""
        if not groups:
            return
        rows = np.array([self.group_rows[pk] for pk in groups], dtype=np.intp)
        pods = self.snapshot.pods
        waiting = np.isin(pods.group, rows) & (pods.status == PodStatus.PENDING)
        self._remove_pod_rows(np.flatnonzero(waiting))

    def _bring_waiting_pods_back(self, groups: set[int]) -> None:
        """Of podgroups whose job was made smaller, and lives on."""
        if groups:
            self._load_pods(one_of_ids("p.podgroup_id"), groups)

    def _change_groups(self, groups: Mapping[int, PodGroup]) -> None:
        if not groups:
            return
        rows = np.array([self.group_rows[pk] for pk in groups], dtype=np.intp)
        values = list(groups.values())
        table = group_table(values, self.snapshot.queue_rows, self.snapshot.resources)
        new = table.take(np.arange(len(groups)))
        del new["said"], new["alive"]
        self.snapshot.change_groups(rows, **new)

    def _add_groups(self, groups: Mapping[int, PodGroup]) -> None:
        """New podgroups, and finished ones that live again: their pods are read with them, changed
        or not.
        """
        if not groups:
            return
        rows = self.snapshot.add_groups(list(groups.values()))
        self.group_ids.extend(groups)
        self.group_rows.update(zip(groups, rows.tolist(), strict=True))
        self._load_pods(one_of_ids("p.podgroup_id"), groups)

    def _apply_pods(self, ids: set[int]) -> int:
        found = self._load_pods(one_of_ids("p.id"), ids)
        gone = [self.pod_rows[pk] for pk in ids - found if pk in self.pod_rows]
        self._remove_pod_rows(np.array(gone, dtype=np.intp))
        return len(ids)

    def _load_pods(self, condition: str, ids: Iterable[int]) -> set[int]:
        """Read these pods and put them in place.

        Answers the ids of those that a session may see.
        """
        sql = f"SELECT {pod_columns()} FROM scheduler_pod p WHERE {condition} ORDER BY p.id"
        pods = [row for row in fetch(sql, [ids_parameter(ids)]) if self._may_be_seen(row)]
        self._load_missing_classes({row[3] for row in pods} - self.classes.keys())
        known = [row for row in pods if row[0] in self.pod_rows]
        new = [row for row in pods if row[0] not in self.pod_rows]
        if known:
            rows = np.array([self.pod_rows[row[0]] for row in known], dtype=np.intp)
            self.snapshot.change_pods(rows, **self._pod_columns(known))
        if new:
            rows = self.snapshot.add_pods(**self._pod_columns(new))
            ids_of_new = [row[0] for row in new]
            self.pod_ids.extend(ids_of_new)
            self.pod_rows.update(zip(ids_of_new, rows.tolist(), strict=True))
        return {row[0] for row in pods}

    def _may_be_seen(self, pod: Sequence[Any]) -> bool:
        """Those of live podgroups, but not those that wait in one whose pods are being stopped."""
        group = pod[2]
        if group not in self.group_rows:
            return False
        return group not in self._stopping or pod[5] != "Pending"

    def _load_missing_classes(self, ids: set[int]) -> None:
        if ids:
            self._apply_classes(ids)

    def _remove_pod_rows(self, rows: Any) -> None:
        if not len(rows):
            return
        self.snapshot.remove_pods(rows)
        for row in rows:
            self.pod_rows.pop(self.pod_ids[row], None)

    # Keeping it small and right

    def _compact(self) -> None:
        """Throw out free rows once they outnumber the used ones."""
        pods = len(self.snapshot.pods)
        groups = len(self.snapshot.groups)
        if pods > 2 * len(self.pod_rows) + _WORTH_COMPACTING:
            self._compact_pods()
        if groups > 2 * len(self.group_rows) + _WORTH_COMPACTING:
            self._compact_groups()
        if len(self._class_numbers) > 2 * self._classes_at_first + _WORTH_COMPACTING:
            self.forget()  # most classes may be of pods that are gone

    def _compact_pods(self) -> None:
        kept = np.flatnonzero(self.snapshot.pods.status != 0)
        self.snapshot.aggregates  # noqa: B018 - summed before the rows move
        self.snapshot.pods = PodTable(**self.snapshot.pods.take(kept))
        self.pod_ids = [self.pod_ids[row] for row in kept]
        self.pod_rows = {pk: row for row, pk in enumerate(self.pod_ids)}

    def _compact_groups(self) -> None:
        kept = np.flatnonzero(self.snapshot.groups.alive)
        places = np.zeros(len(self.snapshot.groups), dtype=np.int32)
        places[kept] = np.arange(len(kept))
        sums = self.snapshot.aggregates
        self.snapshot.groups = GroupTable(**self.snapshot.groups.take(kept))
        self.snapshot.pods.group = places[self.snapshot.pods.group]
        sums.group_counts = sums.group_counts[kept]
        sums.group_allocated = sums.group_allocated[kept]
        sums.group_pending = sums.group_pending[kept]
        self.group_ids = [self.group_ids[row] for row in kept]
        self.group_rows = {pk: row for row, pk in enumerate(self.group_ids)}


def _replace(kept: dict[int, Any], ids: Iterable[int], found: Mapping[int, Any]) -> None:
    """Take over what was found; what was asked for and not found is gone."""
    for pk in ids:
        kept.pop(pk, None)
    kept.update(found)


def _queue_rows(ids: Iterable[int] | None = None) -> list[tuple[Any, ...]]:
    sql = (
        f"SELECT {QUEUE_COLUMNS} FROM scheduler_queue q "
        "LEFT JOIN scheduler_queue p ON p.id = q.parent_id WHERE q.deleted_at IS NULL"
    )
    if ids is None:
        return fetch(sql)
    return fetch(f"{sql} AND {one_of_ids('q.id')}", [ids_parameter(ids)])
