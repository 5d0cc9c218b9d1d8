"""Queues of the cluster, imported as they are: what breaks a rule is a warning, never a refusal."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from django.utils import timezone

from scheduler.clusters.kubernetes.values import QueueObject
from scheduler.domain.queues import ROOT
from scheduler.models import Grant, PlannedDeletion, Queue, QueueFigures
from scheduler.models.bulk import execute
from scheduler.selectors.sessions.snapshot_rows import ids_parameter, one_of_ids
from scheduler.services.cluster.mirror.membership import BUILT_IN_QUEUES
from scheduler.services.cluster.mirror.object_rows import QUEUE_COLUMNS, queue_row
from scheduler.services.cluster.mirror.store import Store
from scheduler.services.cluster.mirror.table import Table, stored_uid

_GOES_WITH_A_QUEUE = (Grant, QueueFigures, PlannedDeletion)


def queue_table() -> Table:
    """By name: `root` and `default` are there before the cluster is heard of."""
    return Table(
        Queue,
        "name",
        QUEUE_COLUMNS,
        fixed={
            "state": "Open",
            "closed_by": "",
            "suspended_by": "",
            "held_by": "",
            "conditions": [],
            "warnings": [],
            "updated_at": timezone.now(),
            "updated_by": "kubernetes",
        },
    )


def remove_queues(store: Store, table: Table, names: Iterable[str]) -> set[str]:
    """Those that are gone, or that another queue has taken the name of.

    Their rows stay for the records that refer to them. Roles go: who had one on the old queue has
    none on the new one.
    """
    gone = {name for name in names if name in table and _is_gone(store, table, name)}
    if not gone:
        return set()
    ids = [table.ids[name] for name in gone]
    for model in _GOES_WITH_A_QUEUE:
        model.objects.filter(queue__in=ids).delete()
    execute(
        f"UPDATE scheduler_queue SET deleted_at = %s, updated_by = %s WHERE {one_of_ids('id')}",
        [timezone.now(), "kubernetes", ids_parameter(ids)],
    )
    table.forget(gone)
    return gone


def _is_gone(store: Store, table: Table, name: str) -> bool:
    if name in BUILT_IN_QUEUES:
        return False
    queue = store.queue(name)
    return queue is None or table.row(name)["uid"] != stored_uid(queue.meta.uid)


def write_queues(
    store: Store, table: Table, names: Collection[str], *, follows_status: bool
) -> set[str]:
    """New ones below root first: the parent of one may be as new as the queue itself."""
    found = [queue for name in names if (queue := store.queue(name)) is not None]
    root = table.ids[ROOT]
    new = [queue for queue in found if queue.meta.name not in table]
    row_of = partial(queue_row, follows_status=follows_status)
    written = table.write({queue.meta.name: row_of(queue, root) for queue in new})
    rows = {}
    for queue in found:
        rows[queue.meta.name] = row_of(queue, _parent_id(store, table, queue))
    return written | table.write(rows)


def _parent_id(store: Store, table: Table, queue: QueueObject) -> int | None:
    if queue.meta.name == ROOT:
        return None
    return table.ids[parent_in_tree(store, queue)]


def parent_in_tree(store: Store, queue: QueueObject) -> str:
    """Root for one whose parent is missing, or is below the queue itself."""
    parent = queue.spec.parent or ROOT
    if store.queue(parent) is None and parent not in BUILT_IN_QUEUES:
        return ROOT
    if queue.meta.name in _names_above(store, queue):
        return ROOT
    return parent


def _names_above(store: Store, queue: QueueObject) -> set[str]:
    """Up to root, or as far as the parents are known."""
    above: set[str] = set()
    name = queue.spec.parent or ROOT
    while name != ROOT and name not in above:
        above.add(name)
        known = store.queue(name)
        if known is None:
            break
        name = known.spec.parent or ROOT
    return above


def import_problems(store: Store, queue: QueueObject) -> list[str]:
    """What could not be taken over as it is, each in a sentence."""
    problems = list(queue.flaws)
    parent = queue.spec.parent or ROOT
    if queue.meta.name != ROOT and parent_in_tree(store, queue) != parent:
        problems.append(
            f"Its parent {parent} does not exist or is below it; it is shown below root."
        )
    return problems
