"""Places in the future: nodes that are set aside for a large gang, and filled meanwhile with what
ends in time.

Slurm calls it backfill with reservations. A gang that is within its queue's due and finds no room
now is given the earliest moment at which pods that are expected to end will have left enough of it.
Until then its nodes take only pods that will be gone by that moment, or that fit beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.tables import Rows, Times
from scheduler.domain.workloads import PodStatus
from scheduler.engine.state.nodes import copies

if TYPE_CHECKING:
    from scheduler.engine.session import Session
    from scheduler.engine.state.gang import Gang

Runs = Sequence[tuple[int, int]]
"""(class, how many pods) of what a gang needs, in task order."""

_HOLDS_ROOM = (
    int(PodStatus.ALLOCATED),
    int(PodStatus.BINDING),
    int(PodStatus.BOUND),
    int(PodStatus.RUNNING),
)


@dataclass(frozen=True, slots=True, eq=False)
class FuturePlace:
    """From the moment `at` on this gang has its place.

    `blocked` is what pods that run longer must leave free until then, by node.
    """

    gang: Gang
    at: float
    held: Amounts
    blocked: Amounts


class FuturePlaces:
    """All that is set aside in one session, first come first served."""

    def __init__(self, session: Session, most: int) -> None:
        self._session = session
        self._most = most
        self.found: list[FuturePlace] = []
        self._queues: set[int] = set()
        self._blocks: dict[int, Amounts] = {}

    def is_open_to(self, gang: Gang) -> bool:
        """Whether there may be one more, for a gang of this queue."""
        return len(self.found) < self._most and gang.queue not in self._queues

    def add(self, gang: Gang, runs: Runs) -> FuturePlace | None:
        """A place in the future for this gang, if pods are expected to leave one."""
        place = self._plan(gang, runs)
        if place is not None:
            self._queues.add(gang.queue)
            self.found.append(place)
        return place

    def of(self, queue: int) -> FuturePlace | None:
        """The place that a gang of this queue has been given."""
        return next((place for place in self.found if place.gang.queue == queue), None)

    def mask_for(self, gang: Gang) -> int:
        """Which of them a gang would be in the way of, one bit each: those that begin before it is
        expected to end.
        """
        if not self.found:
            return 0
        expected = float(self._session.snapshot.groups.expected_seconds[gang.row])
        end = self._session.snapshot.taken_at + expected
        return sum(
            1 << number
            for number, place in enumerate(self.found)
            if place.gang is not gang and not end <= place.at
        )

    def block(self, mask: int) -> Amounts:
        """What a gang must leave free for those of this mask: resources by nodes."""
        if mask not in self._blocks:
            chosen = [
                place.blocked for number, place in enumerate(self.found) if mask >> number & 1
            ]
            self._blocks[mask] = np.sum(chosen, axis=0)
        return self._blocks[mask]

    def _plan(self, gang: Gang, runs: Runs) -> FuturePlace | None:
        ends, nodes, requests = self._expected_ends()
        if not len(ends):
            return None
        base = self._session.node_table.future() - sum(place.held for place in self.found)

        def room_after(count: int) -> Amounts:
            return base + _released(nodes[:count], requests[:count], base.shape[1])

        if self._lay_out(room_after(len(ends)), runs) is None:
            return None
        low = 0
        high = len(ends)  # enough have left after `high`
        while high - low > 1:
            middle = (low + high) // 2
            if self._lay_out(room_after(middle), runs) is None:
                low = middle
            else:
                high = middle
        held = self._lay_out(room_after(high), runs)
        if held is None:
            return None
        released = _released(nodes[:high], requests[:high], base.shape[1])
        return FuturePlace(
            gang, float(ends[high - 1]), held, np.maximum(0, held - released) * (held > 0)
        )

    def _expected_ends(self) -> tuple[Times, Rows, Amounts]:
        """When pods that hold room will leave, as far as that is known, soonest first; with their
        nodes and requests.
        """
        session = self._session
        pods = self._session.snapshot.pods
        rows = np.flatnonzero(np.isin(session.status, _HOLDS_ROOM) & (session.nodes >= 0))
        now = session.snapshot.taken_at
        started = np.where(np.isnan(pods.started[rows]), now, pods.started[rows])
        ends = started + session.snapshot.groups.expected_seconds[pods.group[rows]]
        known = np.flatnonzero(ends > now)  # who is overdue may stay for any time
        order = known[np.argsort(ends[known], kind="stable")]
        rows = rows[order]
        return (
            ends[order],
            session.nodes[rows].astype(np.intp),
            session.request[session.pod_classes[rows]],
        )

    def _lay_out(self, room: Amounts, runs: Runs) -> Amounts | None:
        """What the gang takes of this room, by node; None if it does not fit."""
        held = np.zeros_like(room)
        for pod_class, count in runs:
            request = self._session.request[pod_class]
            fitting = np.where(
                self._session.node_scores(pod_class).suitable, copies(room - held, request), 0
            )
            if int(fitting.sum()) < count:
                return None
            order = np.argsort(-fitting, kind="stable")
            taken = np.minimum(
                fitting[order], np.maximum(0, count - (np.cumsum(fitting[order]) - fitting[order]))
            )
            held[:, order] += request[:, None] * taken
        return held


def _released(nodes: Rows, requests: Amounts, count: int) -> Amounts:
    """Resources by nodes."""
    columns = [
        np.bincount(nodes, weights=requests[:, dim], minlength=count)
        for dim in range(requests.shape[1])
    ]
    return np.array(columns, dtype=np.int64)
