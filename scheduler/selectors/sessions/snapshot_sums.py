"""The net under the resident snapshot: its sums of each queue against those of the database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scheduler.domain.plans import counted
from scheduler.domain.snapshot import Queue, Snapshot
from scheduler.domain.workloads import PodClass
from scheduler.models.bulk import fetch

_PODS_ON_NODES = (
    "SELECT g.queue_id, p.pod_class_id, count(*) FROM scheduler_pod p "
    "JOIN scheduler_podgroup g ON g.id = p.podgroup_id "
    "WHERE g.phase <> 'Completed' AND p.phase IN ('Binding', 'Bound', 'Running') GROUP BY 1, 2"
)

Sums = dict[str, list[int]]
"""The amount of each resource, in the snapshot's order, by the name of the queue."""


class SumsDiffer(Exception):
    """The resident tables and the database do not agree: queue -> (resident, stored) amounts."""

    def __init__(self, differences: Mapping[str, Any]) -> None:
        self.differences = differences
        queues = counted(len(differences), "queue")
        names = ", ".join(sorted(differences)[:5])
        super().__init__(f"resident sums differ from the database in {queues}: {names}")


def compare_sums(
    snapshot: Snapshot,
    queues: Mapping[int, Queue],
    classes: Mapping[int, PodClass],
) -> None:
    """`queues` and `classes` are those of the snapshot by primary key. Raises `SumsDiffer`."""
    stored = _stored_sums(snapshot, queues, classes)
    resident = _resident_sums(snapshot)
    differences = {}
    for name in stored | resident:
        if resident.get(name) != stored.get(name):
            differences[name] = (resident.get(name), stored.get(name))
    if differences:
        raise SumsDiffer(differences)


def _stored_sums(
    snapshot: Snapshot,
    queues: Mapping[int, Queue],
    classes: Mapping[int, PodClass],
) -> Sums:
    sums: Sums = {}
    for queue_id, class_id, count in fetch(_PODS_ON_NODES):
        queue = ""
        if queue_id in queues:
            queue = queues[queue_id].name
        amounts = sums.setdefault(queue, [0] * len(snapshot.resources))
        if class_id in classes:
            request = classes[class_id].request
            for column, name in enumerate(snapshot.resources):
                amounts[column] += count * request.get(name, 0)
    return sums


def _resident_sums(snapshot: Snapshot) -> Sums:
    groups = snapshot.groups
    allocated = snapshot.aggregates.group_allocated
    busy = np.flatnonzero(groups.alive & (allocated.sum(axis=1) > 0))
    sums = np.zeros((len(snapshot.queues) + 1, len(snapshot.resources)), dtype=np.int64)
    np.add.at(sums, groups.queue[busy], allocated[busy])
    names = [*(queue.name for queue in snapshot.queues), ""]
    found: Sums = {}
    for name, row in zip(names, sums, strict=True):
        if row.any():
            found[name] = [int(amount) for amount in row]
    return found
