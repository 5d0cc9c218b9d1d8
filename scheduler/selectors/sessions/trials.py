"""The cluster as it is now, to try something out on: a copy of a snapshot that this process keeps
and refreshes by what changed.

Reading everything takes a second and more where a hundred thousand pods run; bringing the kept
tables up to date and copying them takes what changed and a few milliseconds.
"""

from __future__ import annotations

import logging
from threading import Lock
from uuid import UUID

from django.utils import timezone

from scheduler.conf import conf
from scheduler.domain.queues import ROOT
from scheduler.domain.snapshot import Snapshot
from scheduler.models import ClusterState, Queue
from scheduler.selectors.sessions.snapshot_sums import SumsDiffer
from scheduler.selectors.sessions.snapshots import ResidentSnapshot

logger = logging.getLogger(__name__)


class Trials:
    """Gives copies away; whoever gets one may change it. For any number of threads."""

    def __init__(self) -> None:
        self._resident = ResidentSnapshot()
        self._root: UUID | None = (
            # tells whether it is still the same database: it may have been emptied or put back
            None
        )
        self._lock = Lock()
        self._given = 0

    def snapshot(self, label_keys: frozenset[str] | None = None) -> Snapshot:
        """As the next session would see it: with its number and the present time.

        The classes of pods have at least these labels.
        """
        with self._lock:
            self._bring_up_to_date()
            copy: Snapshot = self._resident.snapshot.copy()
        if label_keys is not None and not label_keys <= (copy.label_keys or frozenset()):
            copy = _with_labels(label_keys)
        state = ClusterState.objects.get(pk=1)
        copy.session = state.last_session + 1
        copy.paused = state.paused
        copy.taken_at = timezone.now().timestamp()
        return copy

    def _bring_up_to_date(self) -> None:
        root = Queue.objects.values_list("uid", flat=True).get(name=ROOT)
        if root != self._root:
            self._resident.position = None
            self._root = root
        self._given += 1
        try:
            self._resident.refresh(check_sums=self._given % conf().check_sums_every == 0)
        except SumsDiffer as difference:
            logger.error("%s; reading everything again", difference)
            self._resident.reload()


def _with_labels(label_keys: frozenset[str]) -> Snapshot:
    """Read anew: the classes that are kept do not have them."""
    resident = ResidentSnapshot(also_watched=label_keys)
    resident.refresh()
    return resident.snapshot


_of_this_process = Trials()


def cluster_now(label_keys: frozenset[str] | None = None) -> Snapshot:
    return _of_this_process.snapshot(label_keys)
