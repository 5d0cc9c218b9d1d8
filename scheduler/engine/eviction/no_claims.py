"""Gangs of alike pods that may take nothing, because their queue would be beyond its due: many are
told at once, and for none of them is anybody looked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows
from scheduler.engine.alike_gangs import AlikeNeeds, count_first_by_parts

if TYPE_CHECKING:
    from scheduler.engine.session import Session


class NoClaims:
    """The same as `Claim.may_take_anything` says of each."""

    def __init__(self, session: Session, needs: AlikeNeeds) -> None:
        self._session = session
        self._needs = needs

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
        if self._may_surely_take(int(rows[0])):
            return 0
        return count_first_by_parts(rows, self._have_no_claim)

    def _may_surely_take(self, row: int) -> bool:
        """Whether its queue stays within its due of all that it asks for. In plain numbers: asked
        for each gang that is next.
        """
        session = self._session
        assert session.quotas is not None  # asked before
        count = int(self._needs.counts[row])
        if not count:
            return True  # nothing is told of it
        queue = int(session.snapshot.groups.queue[row])
        allocated = session.queue_usage.allocated[queue].tolist()
        deserved = session.quotas.deserved_rows[queue]
        asked = session.asked(int(self._needs.classes[row]))
        is_within = [allocated[dim] + amount * count <= deserved[dim] for dim, amount in asked]
        return bool(asked) and all(is_within)

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
        classes = self._needs.classes[rows].tolist()
        scores = map(self._session.node_scores, classes)
        copies = np.array([found.copies_by_resource() for found in scores])
        short = asked & (copies < self._needs.counts[rows][:, None])
        is_short: Mask = np.any(short, axis=1)
        return np.where(is_short[:, None], short, asked)
