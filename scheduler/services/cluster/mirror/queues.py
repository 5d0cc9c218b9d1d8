"""Queues of the cluster, imported as they are: what breaks a rule is a warning, never a refusal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial

from django.utils import timezone

from scheduler.admission.violations import Notice
from scheduler.clusters.kubernetes.queue_definition import ANNOTATIONS, STATE
from scheduler.clusters.kubernetes.values import QueueObject
from scheduler.conf import is_shadow
from scheduler.domain.queues import ROOT, QueueState
from scheduler.models import Grant, GroupMapping, PlannedDeletion, Queue, QueueFigures
from scheduler.models.bulk import execute
from scheduler.selectors.sessions.snapshot_rows import ids_parameter, one_of_ids
from scheduler.services.cluster.mirror.membership import BUILT_IN_QUEUES
from scheduler.services.cluster.mirror.object_rows import QUEUE_COLUMNS, queue_row
from scheduler.services.cluster.mirror.store import Store
from scheduler.services.cluster.mirror.table import Row, Table, stored_uid

_GOES_WITH_A_QUEUE = (GroupMapping, Grant, QueueFigures, PlannedDeletion)


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
        row = row_of(queue, _parent_id(store, table, queue))
        rows[queue.meta.name] = _with_version_kept(table.row(queue.meta.name), row)
    return written | table.write(rows)


def _with_version_kept(known: Row, row: Row) -> Row:
    """A new status makes a new version, but not for those who change what they have read here."""
    if {**row, "resource_version": known["resource_version"]} == known:
        return known
    return row


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


def queue_notices(store: Store, queue: QueueObject) -> list[Notice]:
    """What could not be taken over as it is, and what the cluster does not heed."""
    name = queue.meta.name
    notices = [Notice("not_taken_over", name, flaw, "spec") for flaw in queue.flaws]
    parent = queue.spec.parent or ROOT
    if name != ROOT and parent_in_tree(store, queue) != parent:
        message = f"Its parent {parent} does not exist or is below it; it is shown below root."
        notices.append(Notice("not_taken_over", name, message, "spec"))
    if queue.spec.state is QueueState.SUSPENDED:
        notices += _suspension_notices(queue)
    return notices


def _suspension_notices(queue: QueueObject) -> Iterator[Notice]:
    name = queue.meta.name
    if ANNOTATIONS[STATE] in queue.meta.annotations:
        message = (
            "This cluster's definition of queues does not know the state Suspended. "
            f"It is kept in the annotation {ANNOTATIONS[STATE]}, "
            "and kubectl and Volcano's vcctl show the queue as Open."
        )
        yield Notice("suspended_by_annotation", name, message, "spec.state")
    if is_shadow():
        message = (
            "Another scheduler places the pods of this cluster. "
            "It does not know the state Suspended, and may go on starting pods of this queue."
        )
        yield Notice("suspension_not_heeded", name, message, "spec.state")
