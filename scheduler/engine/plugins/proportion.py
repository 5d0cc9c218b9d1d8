"""Proportion: queues share the cluster by weight, bounded by what they ask for, may have, and are
guaranteed.
"""

from __future__ import annotations

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows
from scheduler.engine.fair_share import fill_each, int_sum
from scheduler.engine.plugin import Plugin
from scheduler.engine.plugins.shares import SharePlugin
from scheduler.engine.session import Session
from scheduler.engine.state.queue_quotas import Quotas, beyond_guarantees


class Proportion(SharePlugin):
    name = "proportion"
    only_tightens = True

    def open(self, session: Session) -> None:
        Plugin.open(self, session)
        specs = session.specs
        guarantee = session.specs.guarantee
        real_capability = np.minimum(
            specs.capability, beyond_guarantees(session.total, guarantee) + guarantee
        )
        ceilings = np.minimum(session.queue_usage.request, real_capability)
        deserved = fill_each(session.total, specs.weights, guarantee, ceilings)
        owns = np.broadcast_to(session.queue_usage.dims, deserved.shape)
        self.figures = Quotas(
            session.queue_usage,
            deserved,
            owns,
            guarantee,
            real_capability,
            session.total,
            unset_share=0.0,
        )
        self._warn_of_oversubscription()

    def _warn_of_oversubscription(self) -> None:
        session = self.session
        for dim, name in enumerate(session.snapshot.resources):
            promised = int_sum(self.figures.guarantee[:, dim])
            if promised > int(session.total[dim]):
                session.warnings.append(
                    f"the guarantees of all queues exceed the cluster's {name}: "
                    "each queue deserves just its guarantee"
                )

    def overused(self, queue: int) -> bool:
        """It has all that it deserves, of every resource; also if that is nothing."""
        return self.figures.has_all(queue, self.session.queue_usage.allocated[queue].tolist())

    def allocatable(self, queue: int, pod_class: int, wanted: int) -> int:
        return self.figures.copies_within(
            self.figures.deserved_rows, [queue], self.session.asked(pod_class), wanted
        )

    def preemptive(self, queue: int, pod_class: int) -> bool:
        """A queue may reclaim up to its deserved."""
        return self.allocatable(queue, pod_class, 1) > 0

    def may_take_from(
        self,
        queue: int,
        pod_class: int,
        victim_queues: Rows,
        victim_classes: Rows,
        count: int = 1,
    ) -> Mask:
        """Victims come from queues that have more than they deserve of something, and keep their
        guarantee.
        """
        gone_before = self.session.request[victim_classes] * (count - 1)
        return self.is_above(victim_queues, gone_before) & self.keeps_guarantee(
            victim_queues, victim_classes, count
        )

    def borrowable(self, queue: int, pod_class: int, wanted: int) -> int:
        """Idle room, within real capability, that no unused guarantee of another queue needs."""
        request = self.session.request[pod_class]
        queue_usage = self.session.queue_usage
        wanted = self.figures.copies_within(
            self.figures.limit_rows, [queue], self.session.asked(pod_class), wanted
        )
        spoken_for = np.maximum(queue_usage.allocated, self.figures.guarantee)
        spoken_for[queue] = queue_usage.allocated[queue]
        left = self.session.total - spoken_for.sum(axis=0)
        asked = (request > 0) & queue_usage.dims
        return int(max(0, min([wanted, *(left[asked] // request[asked]).tolist()])))
