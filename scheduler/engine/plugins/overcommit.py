"""Overcommit: not many more gangs are admitted than the cluster could run, but a queue's own share
is always open to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.tables import Rows, length_before
from scheduler.engine.arguments import fraction
from scheduler.engine.plugin import Plugin, Vote
from scheduler.engine.refusals import Refusal, Shortfall
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.queue_usage import inqueue_amounts

_DEFAULT_FACTOR = Fraction(6, 5)


class Overcommit(Plugin):
    """Argument: `overcommit-factor`, 1.2 unless given; below 1 it is read as 1.2."""

    name = "overcommit"
    refuses_by_minimum = True

    def __init__(self, arguments: Mapping[str, object]) -> None:
        super().__init__(arguments)
        factor = fraction(arguments, "overcommit-factor", _DEFAULT_FACTOR)
        self.factor = factor if factor >= 1 else _DEFAULT_FACTOR

    def open(self, session: Session) -> None:
        super().open(session)
        used = session.node_table.used.sum(axis=1)
        stretched = [int(int(amount) * self.factor) for amount in session.total]
        self.idle: Amounts = np.array(stretched, dtype=np.int64) - used
        self._idle: list[int] = self.idle.tolist()
        rows = np.flatnonzero(session.snapshot.groups.alive)
        self.inqueue: Amounts = inqueue_amounts(session.snapshot, rows).sum(axis=0)

    def job_enqueueable(self, gang: Gang) -> Vote | Refusal:
        groups = self.session.snapshot.groups
        if not groups.has_min_resources[gang.row]:
            return Vote.PERMIT
        needed = groups.min_resources[gang.row]
        short = self._short_of(needed.tolist())
        if not short or self._within_own_share(gang, needed):
            return Vote.PERMIT
        return self._refusal(needed, short)

    def count_enqueueable(self, rows: Rows) -> int:
        """Those for whom enough is left; a queue's own share is for the others."""
        groups = self.session.snapshot.groups
        amounts = groups.min_resources[rows]
        needed = np.where(groups.has_min_resources[rows][:, None], amounts, 0)
        before = np.cumsum(amounts, axis=0) - amounts
        is_too_much = self.inqueue + before + needed > self.idle
        counts = (needed > 0) & self.session.queue_usage.dims
        is_short: Mask = np.any(is_too_much & counts, axis=1)
        return length_before(is_short)

    def _short_of(self, needed: list[int]) -> list[int]:
        """The columns of which too little is left; plain numbers, asked for every waiting gang."""
        dims = self.session.queue_usage.dims
        inqueue = self.inqueue.tolist()
        short: list[int] = []
        for dim, amount in enumerate(needed):
            if amount > 0 and inqueue[dim] + amount > self._idle[dim] and dims[dim]:
                short.append(dim)
        return short

    def _within_own_share(self, gang: Gang, needed: Amounts) -> bool:
        """Within its guarantee a queue is always admitted, and with reclaim also within its
        deserved (docs/origins.md).
        """
        quotas = self.session.quotas
        queue_usage = self.session.queue_usage
        if quotas is None:
            return False
        own = quotas.guarantee[gang.queue]
        if self.session.has_action("reclaim"):
            own = np.maximum(own, quotas.deserved[gang.queue])
        after = (
            queue_usage.allocated[gang.queue]
            + queue_usage.inqueue[gang.queue]
            - queue_usage.elastic[gang.queue]
            + needed
        )
        asked = (needed > 0) & queue_usage.dims
        return bool((after <= own)[asked].all())

    def _refusal(self, needed: Amounts, short: list[int]) -> Refusal:
        session = self.session
        names = [session.snapshot.resources[dim] for dim in short]
        shortfalls = tuple(
            Shortfall(name, "root", int(needed[dim]), int(self.idle[dim]), int(self.inqueue[dim]))
            for name, dim in zip(names, short, strict=True)
        )
        event = "resource in cluster is overused: " + ", ".join(
            f"overused {name}" for name in names
        )
        return Refusal(ReasonCode.CLUSTER_BUSY, "", shortfalls, event)

    def job_enqueued(self, gang: Gang) -> None:
        self.inqueue = self.inqueue + self.session.snapshot.groups.min_resources[gang.row]

    def jobs_enqueued(self, rows: Rows) -> None:
        self.inqueue = self.inqueue + self.session.snapshot.groups.min_resources[rows].sum(axis=0)
