"""What proportion and capacity have in common: queue order, the test on enqueueing, and keeping
guarantees from victims.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.tables import Rows, length_before
from scheduler.engine.plugin import Key, Plugin, Vote
from scheduler.engine.refusals import Refusal, Shortfall
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.queue_quotas import Quotas

_FEW = 4
"""Up to so many queues are looked at one by one."""


class SharePlugin(Plugin):
    """A plugin that computes `Quotas` when the session opens."""

    refuses_by_minimum = True
    figures: Quotas

    def __init__(self, arguments: Mapping[str, object]) -> None:
        super().__init__(arguments)
        self.admits_all_that_can_run = False
        self._could_be_had: dict[
            tuple[int, int], list[int]
        ] = {}  # by level and queue; the same all session long

    def quotas(self) -> Quotas:
        return self.figures

    def queue_key(self, queue: int) -> Key:
        """Higher priority first, then the lower share."""
        return (-self.session.queue_tree.queues[queue].spec.priority, self.figures.share(queue))

    def job_enqueueable(self, gang: Gang) -> Vote | Refusal:
        """minResources must fit below realCapability, at every level, beside what is used and what
        is already admitted.
        """
        groups = self.session.snapshot.groups
        if not groups.has_min_resources[gang.row]:
            return Vote.PERMIT
        needed = groups.min_resources[gang.row]
        asked = [
            (dim, amount)
            for dim, amount in enumerate(needed.tolist())
            if amount > 0 and self.session.queue_usage.dims[dim]
        ]
        for row in self.session.queue_tree.path_list(gang.queue):
            if not self._takes(row, gang.queue, asked):
                return self._quota_refusal(row, gang.queue, needed)
        return Vote.PERMIT

    def _takes(self, row: int, queue: int, asked: list[tuple[int, int]]) -> bool:
        """Plain numbers: asked for every waiting gang at every level above it.

        Where all are admitted that can ever run, what is used and who else is in does not count: a
        large gang that waits keeps nobody out.
        """
        if self.admits_all_that_can_run:
            limit = self.figures.limit_rows[row]
            return all(amount <= limit[dim] for dim, amount in asked)
        queue_usage = self.session.queue_usage
        limit = self.figures.limit_rows[row]
        allocated = queue_usage.allocated[row].tolist()
        inqueue = queue_usage.inqueue[row].tolist()
        yielding = self._yielding(row, queue)
        return all(
            amount + allocated[dim] + inqueue[dim] - yielding[dim] <= limit[dim]
            for dim, amount in asked
        )

    def count_enqueueable(self, rows: Rows) -> int:
        session = self.session
        groups = session.snapshot.groups
        queue = int(groups.queue[rows[0]])
        amounts = groups.min_resources[rows]
        needed = np.where(groups.has_min_resources[rows][:, None], amounts, 0)
        asked = (needed > 0) & session.queue_usage.dims
        wanted = needed if self.admits_all_that_can_run else np.cumsum(needed, axis=0)
        is_refused = np.zeros(len(rows), dtype=np.bool_)
        for row in session.queue_tree.path_list(queue):
            room = self._room_to_enqueue(row, queue)
            is_refused |= ((wanted > room) & asked).any(axis=1)
        return length_before(is_refused)

    def _room_to_enqueue(self, row: int, queue: int) -> Amounts:
        """What gangs of the queue may still ask for at this level."""
        limit: Amounts = self.figures.real_capability[row]
        if self.admits_all_that_can_run:
            return limit
        queue_usage = self.session.queue_usage
        yielding = np.array(self._yielding(row, queue), dtype=np.int64)
        room: Amounts = limit - queue_usage.allocated[row] - queue_usage.inqueue[row] + yielding
        return room

    def _yielding(self, row: int, queue: int) -> list[int]:
        """What could be had back: what runs beyond its minimum and, above the queue itself, what
        others have borrowed.
        """
        if (row, queue) not in self._could_be_had:
            elastic = self.session.queue_usage.elastic[row]
            found = elastic if row == queue else np.maximum(elastic, self.lent(row, queue))
            self._could_be_had[row, queue] = found.tolist()
        return self._could_be_had[row, queue]

    def _quota_refusal(self, row: int, queue: int, needed: Amounts) -> Refusal:
        session = self.session
        used = session.queue_usage.allocated[row] + session.queue_usage.inqueue[row]
        limit = self.figures.real_capability[row]
        yielding = np.array(self._yielding(row, queue), dtype=np.int64)
        if self.admits_all_that_can_run:
            used = yielding = np.zeros_like(used)
        short = np.flatnonzero(
            (needed > 0) & session.queue_usage.dims & (needed + used - yielding > limit)
        )
        names = [session.snapshot.resources[dim] for dim in short]
        level = session.queue_tree.names[row]
        shortfalls = tuple(
            Shortfall(
                name, level, int(needed[dim]), int(limit[dim]), int(used[dim]), int(yielding[dim])
            )
            for name, dim in zip(names, short, strict=True)
        )
        hopeless = bool((needed > limit)[short].any())
        event = "queue resource quota insufficient: " + ", ".join(
            f"insufficient {name}" for name in names
        )
        return Refusal(self._code(row, hopeless), "", shortfalls, event)

    def _code(self, row: int, hopeless: bool) -> ReasonCode:
        if not hopeless:
            return ReasonCode.WAITING_FOR_QUOTA
        is_whole_cluster = (
            row == self.session.queue_tree.root
            and not self.session.queue_tree.queues[row].spec.capability
        )
        if is_whole_cluster:
            return ReasonCode.EXCEEDS_CLUSTER
        return ReasonCode.EXCEEDS_CAPABILITY

    def job_enqueued(self, gang: Gang) -> None:
        groups = self.session.snapshot.groups
        if groups.has_min_resources[gang.row]:
            self.session.queue_usage.enqueue(gang.queue, groups.min_resources[gang.row])

    def jobs_enqueued(self, rows: Rows) -> None:
        groups = self.session.snapshot.groups
        counted = rows[groups.has_min_resources[rows]]
        if len(counted):
            amount = groups.min_resources[counted].sum(axis=0)
            self.session.queue_usage.enqueue(int(groups.queue[rows[0]]), amount)

    def lent(self, row: int, queue: int) -> Amounts:
        """What other leaves below this level use beyond what is theirs, as far as reclaim may take
        it back.
        """
        return np.zeros(len(self.session.snapshot.resources), dtype=np.int64)

    def has_too_much(self, queues: Rows) -> Mask:
        if len(queues) > _FEW:
            return self.is_above(queues)
        return np.array([self._has_too_much(queue) for queue in queues.tolist()], dtype=np.bool_)

    def _has_too_much(self, queue: int) -> bool:
        """The same for one queue, in plain numbers: asked for each gang that reclaims."""
        allocated = self.session.queue_usage.allocated[queue].tolist()
        deserved = self.figures.deserved_rows[queue]
        return any(allocated[dim] > deserved[dim] for dim, _ in self.session.queue_resources)

    def is_above(self, queues: Rows, gone: Amounts | int = 0) -> Mask:
        """More than it deserves of something, also when this is gone."""
        queue_usage = self.session.queue_usage
        allocated = queue_usage.allocated[queues] - gone
        above: Mask = np.any((allocated > self.figures.deserved[queues]) & queue_usage.dims, axis=1)
        return above

    def keeps_guarantee(self, queues: Rows, pod_classes: Rows, count: int = 1) -> Mask:
        """Each queue still has its guarantee when so many pods of the class beside it are gone."""
        if len(queues) == 1:
            return np.array([self._keeps_guarantee(int(queues[0]), int(pod_classes[0]), count)])
        guarantee = self.figures.guarantee[queues]
        freed = self.session.request[pod_classes] * count
        after = self.session.queue_usage.allocated[queues] - freed
        keeps: Mask = (
            (guarantee <= after) | ~self.session.queue_usage.dims | (guarantee == 0)
        ).all(axis=1)
        return keeps

    def _keeps_guarantee(self, queue: int, pod_class: int, count: int) -> bool:
        """The same for one queue, in plain numbers: asked for each gang that reclaims."""
        guaranteed = self.figures.guaranteed(queue)
        if not guaranteed:
            return True
        allocated = self.session.queue_usage.allocated[queue].tolist()
        freed = self.session.request[pod_class].tolist()
        return all(amount <= allocated[dim] - freed[dim] * count for dim, amount in guaranteed)

    def _keeps_deserved(self, queue: int, pod_class: int, reclaimer_class: int, count: int) -> bool:
        """The same for one queue, in plain numbers: asked for each gang that reclaims."""
        allocated = self.session.queue_usage.allocated[queue].tolist()
        deserved = self.figures.deserved_rows[queue]
        owned = self.figures.owned_rows[queue]
        wanted = {dim for dim, _ in self.session.asked(reclaimer_class)}
        for dim, amount in self.session.asked(pod_class):
            if dim not in wanted or not owned[dim] or allocated[dim] < deserved[dim]:
                continue
            if allocated[dim] - amount * count < deserved[dim]:
                return False
        return True

    def keeps_deserved(
        self, queues: Rows, pod_classes: Rows, reclaimer_class: int, count: int = 1
    ) -> Mask:
        """Taking pods of the class leaves the queue at or above its deserved, where it is not
        below it now and both pods ask for it.
        """
        if len(queues) == 1:
            pair = (int(queues[0]), int(pod_classes[0]))
            return np.array([self._keeps_deserved(*pair, reclaimer_class, count)])
        request = self.session.request
        queue_usage = self.session.queue_usage
        figures = self.figures
        allocated = queue_usage.allocated[queues]
        deserved = figures.deserved[queues]
        freed = request[pod_classes] * count
        looked_at = (
            (freed > 0)
            & (request[reclaimer_class] > 0)
            & queue_usage.dims
            & figures.owns[queues]
            & (allocated >= deserved)
        )
        keeps: Mask = ((allocated - freed >= deserved) | ~looked_at).all(axis=1)
        return keeps
