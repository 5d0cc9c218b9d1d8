"""Dominant resource fairness between gangs: whoever holds the smaller part of the cluster goes
first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Rows
from scheduler.engine.plugin import Column, Key, Plugin
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

_EQUAL_WITHIN = 1e-6


class Drf(Plugin):
    name = "drf"
    only_tightens = True

    def open(self, session: Session) -> None:
        super().open(session)
        dims = np.flatnonzero((session.total > 0) & session.queue_usage.dims)
        self._totals = [(int(dim), int(session.total[dim])) for dim in dims]

    def share(self, allocated: Amounts) -> float:
        """The largest part that these amounts are of any resource of the cluster."""
        amounts = allocated.tolist()
        return max([amounts[dim] / total for dim, total in self._totals], default=0.0)

    def job_key(self, gang: Gang) -> Key:
        return (self.share(gang.allocated),)

    def job_keys(self, rows: Rows) -> Sequence[Column]:
        """Division of plain numbers, as in `job_key`; most gangs that wait hold nothing."""
        allocated = self.session.allocated_by_gang[rows]
        shares = np.zeros(len(rows))
        for place in np.flatnonzero(allocated.any(axis=1)).tolist():
            shares[place] = self.share(allocated[place])
        return [shares]

    def may_preempt(self, taker: Gang, pod_class: int, victim: Gang, victim_class: int) -> bool:
        """The victim's gang still holds at least as much, without the victim, as the preemptor's
        would with the new pod.
        """
        request = self.session.request
        return (
            self.share(taker.allocated + request[pod_class])
            <= self.share(victim.allocated - request[victim_class]) + _EQUAL_WITHIN
        )

    def may_preempt_each(
        self, taker: Gang, pod_class: int, victims: Rows, victim_classes: Rows
    ) -> Mask:
        request = self.session.request
        left = self.session.allocated_by_gang[victims] - request[victim_classes]
        share = np.zeros(len(victims))
        if self._totals:
            share = np.max([left[:, dim] / total for dim, total in self._totals], axis=0)
        own: Mask = self.share(taker.allocated + request[pod_class]) <= share + _EQUAL_WITHIN
        return own
