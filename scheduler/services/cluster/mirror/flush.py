"""One transaction: the news, what follows from them, and how far they go."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from scheduler import notify
from scheduler.admission.violations import Notice
from scheduler.clusters.kubernetes.resources import QUEUES
from scheduler.conf import is_shadow
from scheduler.selectors.queues.facts import room_for_queues
from scheduler.selectors.queues.tree import stored_queues, tree_of
from scheduler.services.cluster.mirror import state
from scheduler.services.cluster.mirror.queues import queue_notices
from scheduler.services.cluster.mirror.store import Store
from scheduler.services.cluster.mirror.writer import MirrorWriter
from scheduler.services.cluster.mirror.written import WrittenRows
from scheduler.services.locks import alone_with_pods, lock_tree
from scheduler.services.notices.gangs import say_mirrored
from scheduler.services.queues.states import refresh_states
from scheduler.services.queues.warnings import settle_warnings
from scheduler.services.sessions import lease
from scheduler.services.sessions.requests import want_session

WATCHER = "watcher"
"""The name of the lease."""


def flush(store: Store, writer: MirrorWriter, held: lease.Held) -> WrittenRows:
    """Write what the store has heard. Raises `LeaseLost`.

    If it fails, nothing is written, and the writer has to load what there is before the next try.
    """
    with transaction.atomic():
        lease.assert_held(held, WATCHER)
        lock_tree()
        alone_with_pods()
        written = writer.write()
        _settle(store, written)
        state.note_written(store.positions)
        _tell(written)
    store.clear_pending()
    return written


def _settle(store: Store, written: WrittenRows) -> None:
    """States of queues follow from their wishes and podgroups, warnings from nodes and queues."""
    if written.queues or written.podgroups:
        refresh_states()
    if written.queues or written.nodes:
        queues = stored_queues()
        settle_warnings(queues, tree_of(queues), room_for_queues(), also=_notices(store))


def _notices(store: Store) -> dict[str, list[Notice]]:
    found: dict[str, list[Notice]] = {}
    for queue in store.objects(QUEUES):
        notices = queue_notices(store, queue)
        if notices:
            found[queue.meta.name] = notices
    return found


def _tell(written: WrittenRows) -> None:
    if not written.anything:
        return
    if written.queues:
        notify.queues_changed(written.queues)
    if written.nodes:
        notify.nodes_changed(written.nodes)
    if written.podgroups:
        notify.jobs_changed(written.podgroups)
        say_mirrored(written.podgroups, timezone.now(), starts=is_shadow())
    want_session()
