"""Gangs of alike pods that may take nothing, because their queue would be beyond its due: many are
told at once, and for none of them is anybody looked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Rows
from scheduler.engine.alike_gangs import AlikeNeeds, count_first_by_parts

if TYPE_CHECKING:
    from scheduler.engine.session import Session


class NoClaims:
    """The same as `Claim.may_take_anything` says of each."""

    def __init__(self, session: Session, needs: AlikeNeeds) -> None:
        self._session = session
        self._needs = needs
        # By class: how many changes of nodes there were by then, and the copies by resource.
        self._copies: dict[int, tuple[int, Amounts]] = {}

    def are_all(self, rows: Rows) -> bool:
        """Whether none of these podgroups may take anything, as things are now."""
        if self._session.quotas is None:
            return False
        return count_first_by_parts(rows, self._have_no_claim) == len(rows)

    def count_first(self, rows: Rows) -> int:
        """How many at the beginning of these podgroups of one queue may take nothing."""
        session = self._session
        if not len(rows) or session.quotas is None:
            return 0
        if session.is_strict(int(session.snapshot.groups.queue[rows[0]])):
            return 0  # the first that fails stops the line
        return count_first_by_parts(rows, self._have_no_claim)

    def _have_no_claim(self, rows: Rows) -> Mask:
        session = self._session
        assert session.quotas is not None  # asked before
        is_told = self._needs.counts[rows] > 0
        if not is_told[0]:
            return is_told
        queues = session.snapshot.groups.queue[rows]
        wanted = self._needs.amounts(rows)
        asked = (wanted > 0) & session.queue_usage.dims
        within = session.queue_usage.allocated[queues] + wanted <= session.quotas.deserved[queues]
        may_take: Mask = np.any(within & asked, axis=1)
        unsure = np.flatnonzero(is_told & may_take & ~(within | ~asked).all(axis=1))
        if len(unsure):
            short = self._short_of(rows[unsure], asked[unsure])
            may_take[unsure] = (within[unsure] | ~short).all(axis=1)
        return is_told & ~may_take

    def _short_of(self, rows: Rows, asked: Mask) -> Mask:
        """The resources of which there is not room enough on nodes, one by one; all that each gang
        asks for if each alone would do.
        """
        classes = self._needs.classes[rows]
        copies = np.array([self._copies_of(pod_class) for pod_class in classes.tolist()])
        short = asked & (copies < self._needs.counts[rows][:, None])
        is_short: Mask = np.any(short, axis=1)
        return np.where(is_short[:, None], short, asked)

    def _copies_of(self, pod_class: int) -> Amounts:
        """How many pods of the class all suitable nodes take, by resource, if the others did not
        count.
        """
        session = self._session
        changes = len(session.node_table.touched)
        found = self._copies.get(pod_class)
        if found is None or found[0] != changes:
            room = session.node_table.future()[:, session.node_scores(pod_class).suitable]
            each = room // np.maximum(session.request[pod_class], 1)[:, None]
            found = self._copies[pod_class] = (changes, np.maximum(0, each).sum(axis=1))
        return found[1]
