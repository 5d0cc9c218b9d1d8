"""Places in the future: nodes that are set aside for a large gang, and filled meanwhile with what
ends in time.

Slurm calls it backfill with reservations. A gang that is within its queue's due and finds no room
now is given the earliest moment at which pods that are expected to end will have left enough of it.
Until then its nodes take only pods that will be gone by that moment, or that fit beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.resources import COMMON
from scheduler.domain.tables import IS_ALLOCATED, Rows, Times
from scheduler.engine.eviction.claims import (
    is_within_due,
    is_within_guarantee,
    missing_amounts,
)
from scheduler.engine.state.nodes import copies

if TYPE_CHECKING:
    from scheduler.engine.session import Session
    from scheduler.engine.state.gang import Gang

Runs = Sequence[tuple[int, int]]
"""(class, how many pods) of what a gang needs, in task order."""


@dataclass(frozen=True, slots=True, eq=False)
class FuturePlace:
    """From the moment `at` on this gang has its place.

    `blocked` is what pods that run longer must leave free until then, by node. What is `borrowed`
    is kept only from gangs that borrow as well.
    """

    gang: Gang
    at: float
    held: Amounts
    blocked: Amounts
    borrowed: bool = False


class FuturePlaces:
    """All that is set aside in one session, first come first served."""

    def __init__(self, session: Session, most: int) -> None:
        self._session = session
        self._most = most
        self._found: list[FuturePlace] = []
        self._put_off: Callable[[], None] | None = None
        self.podgroups: set[int] = set()  # the rows of those that have one
        self._queues: set[int] = set()
        self._blocks: dict[int, Amounts] = {}

    @property
    def are_given(self) -> bool:
        return self._most > 0

    def put_off(self, give: Callable[[], None]) -> None:
        """Places that are worked out before anybody asks what is set aside, and before anything is
        decided. In most sessions on a full cluster neither happens.
        """
        self._put_off = give

    def make_up(self) -> None:
        """What was put off is done now."""
        if self._put_off is not None:
            give, self._put_off = self._put_off, None
            give()

    @property
    def found(self) -> list[FuturePlace]:
        """All that is set aside, the first given first."""
        self.make_up()
        return self._found

    def are_open_to(self, queue: int) -> bool:
        """Whether there may be one more, for a gang of this queue."""
        return len(self.found) < self._most and queue not in self._queues

    def add(self, gang: Gang, runs: Runs) -> FuturePlace | None:
        """A place in the future for this gang, if pods are expected to leave one."""
        place = self._plan(gang, runs, [place for place in self.found if not place.borrowed])
        if place is not None:
            self._queues.add(gang.queue)
            self._keep(place)
        return place

    def add_borrowed(self, gang: Gang, runs: Runs) -> FuturePlace | None:
        """The same for a gang beyond its queue's due: gangs within theirs do not heed it."""
        place = self._plan(gang, runs, self.found)
        if place is not None:
            place = replace(place, borrowed=True)
            self._keep(place)
        return place

    def _keep(self, place: FuturePlace) -> None:
        self._found.append(place)
        self.podgroups.add(place.gang.row)

    def of(self, queue: int) -> FuturePlace | None:
        """The place that a gang of this queue has been given, within its due."""
        for place in self.found:
            if place.gang.queue == queue and not place.borrowed:
                return place
        return None

    def mask_for(self, gang: Gang) -> int:
        """Which of them a gang would be in the way of, one bit each: those that begin before it is
        expected to end. A gang within its queue's guarantee waits for nobody.
        """
        if not self.found or is_within_guarantee(self._session, gang):
            return 0
        expected = float(self._session.snapshot.groups.expected_seconds[gang.row])
        end = self._session.snapshot.taken_at + expected
        mask = 0
        for number, place in enumerate(self.found):
            if place.gang is gang or end <= place.at:
                continue
            if place.borrowed and is_within_due(self._session, gang):
                continue
            mask |= 1 << number
        return mask

    def count_begun_by(self, ends: Times) -> Rows:
        """For each of these moments, how many of the places begin before it."""
        begins = sorted(place.at for place in self.found)
        return np.searchsorted(begins, ends)

    def block(self, mask: int) -> Amounts:
        """What a gang must leave free for those of this mask: resources by nodes."""
        if mask not in self._blocks:
            chosen = [
                place.blocked for number, place in enumerate(self.found) if mask >> number & 1
            ]
            self._blocks[mask] = np.sum(chosen, axis=0)
        return self._blocks[mask]

    def _plan(self, gang: Gang, runs: Runs, others: list[FuturePlace]) -> FuturePlace | None:
        rules = self._session.pod_rules
        if rules is not None and rules.bind(gang):
            return None  # nobody knows where the rules will allow it then
        departures = self._expected_departures()
        base = self._session.node_table.future() - sum(place.held for place in others)
        reserved = self._reserved_beside(gang)

        count = self._fewest_departures(base, departures, runs, reserved)
        if count is None:
            return None
        count = departures.all_at_once_with(count)
        released = departures.released(count)
        held = self._lay_out(base, released, runs, reserved)
        if held is None:
            return None
        blocked = np.maximum(0, held - released)
        return FuturePlace(gang, float(departures.ends[count - 1]), held, blocked)

    def _expected_departures(self) -> Departures:
        """Of pods that hold room, as far as it is known when they end."""
        session = self._session
        pods = self._session.snapshot.pods
        rows = np.flatnonzero(IS_ALLOCATED[session.status] & (session.nodes >= 0))
        now = session.snapshot.taken_at
        started = np.where(np.isnan(pods.started[rows]), now, pods.started[rows])
        ends = started + session.snapshot.groups.expected_seconds[pods.group[rows]]
        known = np.flatnonzero(ends > now)  # who is overdue may stay for any time
        order = known[np.argsort(ends[known], kind="stable")]
        rows = rows[order]
        nodes = session.nodes[rows].astype(np.intp)
        requests = session.request[session.pod_classes[rows]]
        return Departures(ends[order], nodes, requests, len(session.node_table.names))

    def _reserved_beside(self, gang: Gang) -> Amounts:
        """What it must leave free because others are guaranteed it."""
        quotas = self._session.quotas
        wanted = missing_amounts(self._session, gang)
        if quotas is None or quotas.reserved is None:
            return np.zeros_like(wanted)
        return quotas.reserved.beside(gang.queue, wanted)

    def _fewest_departures(
        self, base: Amounts, departures: Departures, runs: Runs, reserved: Amounts
    ) -> int | None:
        """After how many of them `_lay_out` finds room; None if never. For alike pods it is enough
        to count.
        """
        if len(runs) == 1:
            return self._fewest_for_alike(base, departures, *runs[0], reserved)

        def has_room_after(count: int) -> bool:
            released = departures.released(count)
            return self._lay_out(base, released, runs, reserved) is not None

        return _fewest(len(departures), has_room_after)

    def _fewest_for_alike(
        self, base: Amounts, departures: Departures, pod_class: int, count: int, reserved: Amounts
    ) -> int | None:
        """So many that there is room for all pods, and as much is left as must be."""
        if not len(departures):
            return None
        request = self._session.request[pod_class]
        suitable = self._session.node_scores(pod_class).suitable
        fewest = 1 + int(
            np.searchsorted(departures.copies_after_each(base, request, suitable), count)
        )
        for dim in np.flatnonzero(reserved > 0).tolist():
            needed = reserved[dim] + count * request[dim] - base[dim].sum()
            released = np.cumsum(departures.requests[:, dim])
            fewest = max(fewest, 1 + int(np.searchsorted(released, needed)))
        if fewest > len(departures):
            return None
        return fewest

    def _lay_out(
        self, base: Amounts, released: Amounts, runs: Runs, reserved: Amounts
    ) -> Amounts | None:
        """What the gang takes by node, of what pods release first: the rest would stay idle until
        then. None if it does not fit.
        """
        room = base + released
        held = np.zeros_like(room)
        for pod_class, count in runs:
            request = self._session.request[pod_class]
            suitable = self._session.node_scores(pod_class).suitable
            fitting = np.where(suitable, copies(room - held, request), 0)
            if int(fitting.sum()) < count:
                return None
            fitting_released = copies(released - held, self._scarce_part(request))
            taken = _roomiest_first(np.minimum(fitting, fitting_released), count)
            taken += _roomiest_first(fitting - taken, count - int(taken.sum()))
            held += request[:, None] * taken
        left = (room - held).sum(axis=1)
        if (left < reserved)[reserved > 0].any():
            return None
        return held

    def _scarce_part(self, request: Amounts) -> Amounts:
        """Devices, if it asks for any: of the rest there is enough beside them. Else all but the
        number of pods.
        """
        names = self._session.snapshot.resources
        is_device = np.array([name not in COMMON for name in names], dtype=np.bool_)
        is_amount = np.array([name != "pods" for name in names], dtype=np.bool_)
        for counts in (is_device, is_amount):
            if request[counts].any():
                return np.where(counts, request, 0)
        return request


@dataclass(frozen=True, slots=True, eq=False)
class Departures:
    """Pods that are expected to end, soonest first: when, on which node, and what they release."""

    ends: Times
    nodes: Rows
    requests: Amounts
    node_count: int

    def __len__(self) -> int:
        return len(self.ends)

    def released(self, count: int) -> Amounts:
        """What the first of them release: resources by nodes."""
        columns = []
        for dim in range(self.requests.shape[1]):
            weights = self.requests[:count, dim]
            columns.append(np.bincount(self.nodes[:count], weights, self.node_count))
        return np.array(columns, dtype=np.int64)

    def copies_after_each(self, room: Amounts, request: Amounts, suitable: Mask) -> Amounts:
        """How many pods of the request all suitable nodes take together, after each departure.

        `room` is what nodes have before the first.
        """
        order = np.argsort(self.nodes, kind="stable")  # those of a node side by side, soonest first
        nodes = self.nodes[order]
        is_first = np.ones(len(nodes), dtype=np.bool_)
        is_first[1:] = nodes[1:] != nodes[:-1]
        firsts = is_first.nonzero()[0]
        lengths = np.diff(firsts, append=len(nodes))
        released = np.cumsum(self.requests[order], axis=0)
        released -= np.repeat(released[firsts] - self.requests[order[firsts]], lengths, axis=0)
        after = copies(room[:, nodes] + released.T, request)
        at_first = copies(room, request)
        gained = after.copy()
        gained[1:] -= after[:-1]
        gained[firsts] = after[firsts] - at_first[nodes[firsts]]
        gained[~suitable[nodes]] = 0
        by_departure = np.empty_like(gained)
        by_departure[order] = gained
        total: Amounts = int(at_first[suitable].sum()) + np.cumsum(by_departure)
        return total

    def all_at_once_with(self, count: int) -> int:
        """How many have ended at the moment in which so many have, or more."""
        return int(np.searchsorted(self.ends, self.ends[count - 1], side="right"))


def _fewest(most: int, is_enough: Callable[[int], bool]) -> int | None:
    """The smallest number from 1 to `most` that is enough; None if not even `most` is."""
    if not most or not is_enough(most):
        return None
    too_few = 0
    enough = most
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if is_enough(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def _roomiest_first(fitting: Amounts, count: int) -> Amounts:
    """How many of `count` pods each node takes, those first that take the most."""
    order = np.argsort(-fitting, kind="stable")
    before = np.cumsum(fitting[order]) - fitting[order]
    taken = np.zeros_like(fitting)
    taken[order] = np.minimum(fitting[order], np.maximum(0, count - before))
    return taken
