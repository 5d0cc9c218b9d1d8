"""Queue states, as they follow from the tree.

One pure function derives them. They are stored for filters and for others to read.

Whoever changes a podgroup calls `refresh_states` in the same transaction, so that a Closing queue
becomes Closed by itself. The order of locks is always: the tree (`services.locks`), then the
states, then anything else that many write.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Count
from django.utils import timezone

from scheduler import notify
from scheduler.domain.lifecycle import DerivedState, derive
from scheduler.domain.plans import Change, Load, changes_between
from scheduler.domain.queues import ROOT, QueueState, QueueTree
from scheduler.models import PlannedDeletion, PodGroup
from scheduler.models.bulk import as_parameter, execute, json_column, values_table
from scheduler.models.workload import LIVE_PHASES
from scheduler.selectors.queues.tree import StoredQueue, stored_queues, tree_of
from scheduler.services.notices.queues import say_states
from scheduler.services.records.events import EventNote, record_events

_STATES_LOCK = 7_320_001  # any number that nothing else locks
_COLUMNS = {
    "id": "bigint",
    "state": "text",
    "closed_by": "text",
    "suspended_by": "text",
    "held_by": "text",
    "conditions": "text",
    "turned": "boolean",
}


@dataclass(frozen=True, slots=True)
class StoredTree:
    """The tree of requested states, and the derived states that are stored with it."""

    queues: Mapping[str, StoredQueue]
    tree: QueueTree
    standings: Mapping[str, DerivedState]
    unknown: frozenset[str]


@dataclass(frozen=True, slots=True)
class Settled:
    """The queues that changed, as they are now; and how they came to it."""

    queues: Mapping[str, StoredQueue]
    changes: tuple[Change, ...]


def alone_with_states() -> None:
    """One transaction at a time derives states; held until it ends.

    So nobody derives from what another is just changing.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_STATES_LOCK])


def refresh_states() -> list[str]:
    """Derive every queue's state again and store what changed, in the current transaction.

    The names of those that changed.
    """
    alone_with_states()
    return list(settle_states(read_tree()).queues)


def settle_states(stored: StoredTree, *, silent: Collection[str] = ()) -> Settled:
    """Store what follows from the requested states of this tree, which nobody else may be changing.

    Of those that are `silent` somebody has told already what became of them, and why.
    """
    live = _live_where_it_counts(stored)
    standings = derive(stored.tree, live, stored.unknown)
    loads = {}
    for name, count in live.items():
        loads[name] = Load(running=count)
    changes = []
    for change in changes_between(stored.standings, standings, stored.tree, loads):
        if change.name != ROOT:
            changes.append(change)
    if not changes:
        return Settled({}, ())
    now = timezone.now()
    changed = {}
    for change in changes:
        changed[change.name] = _changed(stored, change, live, now)
    _store(changed, changes, now)
    kept = []
    for change in changes:
        if change.after.state not in (QueueState.CLOSING, QueueState.CLOSED):
            kept.append(change.name)
    drop_deletions(kept)
    _tell([change for change in changes if change.name not in silent], now)
    say_states(changes, now)
    notify.queues_changed(changed)
    return Settled(changed, tuple(changes))


def read_tree() -> StoredTree:
    queues = stored_queues(only_life=True)
    standings = {}
    for name, queue in queues.items():
        standings[name] = queue.standing
    return StoredTree(
        queues=queues,
        tree=tree_of(queues),
        standings=standings,
        unknown=frozenset(name for name, queue in queues.items() if queue.is_unknown),
    )


def _live_where_it_counts(stored: StoredTree) -> dict[str, int]:
    """The number of live podgroups of each queue that is wanted closed.

    No other state depends on it.
    """
    closing = set()
    for queue in stored.tree:
        if queue.state is QueueState.CLOSED:
            closing.add(queue.name)
    if not closing:
        return {}
    wanted = set(closing)
    for name in closing:
        wanted.update(below.name for below in stored.tree.descendants(name))
    keys = [stored.queues[name].pk for name in wanted]
    rows = PodGroup.objects.filter(queue_id__in=keys, phase__in=LIVE_PHASES)
    return dict(rows.values_list("queue__name").annotate(number=Count("id")).order_by())


def _changed(
    stored: StoredTree,
    change: Change,
    live: Mapping[str, int],
    now: datetime,
) -> StoredQueue:
    return replace(
        stored.queues[change.name],
        standing=change.after,
        conditions=_conditions(stored, change, live, now),
    )


def _store(changed: Mapping[str, StoredQueue], changes: list[Change], now: datetime) -> None:
    """All rows in one statement.

    Root is never among them: its row is the lock of others, and its state never changes.
    """
    rows = []
    for change in changes:
        rows.append(
            {
                "id": changed[change.name].pk,
                "state": change.after.state.value,
                "closed_by": change.after.closed_by,
                "suspended_by": change.after.suspended_by,
                "held_by": change.after.held_by,
                "conditions": json.dumps(changed[change.name].conditions),
                "turned": change.changes_state,
            }
        )
    execute(
        "UPDATE scheduler_queue SET state = d.state, closed_by = d.closed_by, "
        "suspended_by = d.suspended_by, held_by = d.held_by, "
        f"conditions = {json_column('d.conditions')}, "
        "state_since = CASE WHEN d.turned THEN %s ELSE scheduler_queue.state_since END "
        f"FROM {values_table('d', _COLUMNS)} WHERE scheduler_queue.id = d.id",
        [now, as_parameter(rows)],
    )


def drop_deletions(back: Iterable[str]) -> None:
    """A queue that takes jobs again is not to be deleted any more, whatever was planned."""
    names = list(back)
    if names:
        PlannedDeletion.objects.filter(queue__name__in=names).delete()


def _conditions(
    stored: StoredTree,
    change: Change,
    live: Mapping[str, int],
    now: datetime,
) -> list[dict[str, Any]]:
    """What must be remembered of a drain: how much there was to drain when it began.

    The rest is worked out when it is read.
    """
    others = []
    draining = []
    for condition in stored.queues[change.name].conditions:
        if condition.get("type") == "Draining":
            draining.append(condition)
        else:
            others.append(condition)
    if change.after.state is not QueueState.CLOSING:
        return others
    if not draining:
        below = []
        for queue in stored.tree.descendants(change.name):
            below.append(queue.name)
        total = sum(live.get(name, 0) for name in [change.name, *below])
        draining = [{"type": "Draining", "total": total, "since": now.isoformat()}]
    return others + draining


def _tell(changes: list[Change], now: datetime) -> None:
    notes = []
    for change in changes:
        if change.changes_state:
            notes.append(
                EventNote("Queue", change.name, _reason(change), change.sentence, queue=change.name)
            )
    record_events(notes, now)


def _reason(change: Change) -> str:
    """A queue that has drained ends the close that somebody asked for."""
    if change.after.state is QueueState.CLOSED:
        return "CloseQueue"
    return "SyncQueue"
