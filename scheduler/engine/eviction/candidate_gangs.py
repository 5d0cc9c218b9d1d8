"""Running pods that could go for a gang, by podgroup, and the work that each would lose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import IS_ALLOCATED, Floats, Rows, Times
from scheduler.engine.plugins.gang import roles_count
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

SPARE: Final = 0.01
"""What work of a member beyond its gang's minimum counts, beside that of a gang.

Such members go first.
"""
START_COSTS: Final = 60.0
"""Seconds of work that an eviction loses besides what has been done.

So a large gang that has just started is not to be had for nothing.
"""
_IN_ANY_ORDER = 8
"""Sums of fewer numbers than this are the same however they are added up."""


class GangCandidates:
    """All pods that could ever go in a session.

    `statuses` count as running for the action. `protection` marks pods that are left in peace.
    """

    def __init__(
        self, session: Session, statuses: Sequence[int], protection: Callable[[Rows], Mask]
    ) -> None:
        self.session = session
        self._protection = protection
        group = session.snapshot.pods.group
        rows = np.flatnonzero(np.isin(session.status, statuses) & (session.nodes >= 0))
        self._pods = rows[np.argsort(group[rows], kind="stable")]
        self._group = group[self._pods]
        self.groups = np.unique(self._group)

    def of_groups(self, groups: Rows) -> RunningMembers:
        """The members of these podgroups, without gangs of which some pod must stay."""
        session = self.session
        is_wanted = np.zeros(len(session.snapshot.groups), dtype=np.bool_)
        is_wanted[groups] = True
        is_wanted[self._group[~self._may_be_evicted()]] = False
        is_running = IS_ALLOCATED[session.status[self._pods]]
        pods = self._pods[is_wanted[self._group] & is_running]
        return RunningMembers(session, pods, self._protection(pods))

    def _may_be_evicted(self) -> Mask:
        classes = self.session.snapshot.classes
        numbers = self.session.pod_classes[self._pods]
        is_running = IS_ALLOCATED[self.session.status[self._pods]]
        may_go: Mask = (classes.preemptable[numbers] & ~classes.critical[numbers]) | ~is_running
        return may_go


class RunningMembers:
    """Columns over the running pods of some podgroups, those of a podgroup side by side.

    `groups` are these podgroups, and `starts` where each begins; its last entry is the end.
    `work` is what each pod would lose.
    """

    def __init__(self, session: Session, pods: Rows, is_protected: Mask) -> None:
        self.session = session
        self.pods = pods
        self.is_protected = is_protected
        self.group: Rows = session.snapshot.pods.group[pods].astype(np.intp)
        self.groups, firsts = np.unique(self.group, return_index=True)
        self.starts: Rows = np.append(firsts, len(pods))
        self.requests: Amounts = session.request[session.pod_classes[pods]]
        seconds = self._seconds_run() + START_COSTS
        self.work: Floats = cluster_parts(session, self.requests) * seconds

    def _seconds_run(self) -> Times:
        started = self.session.snapshot.pods.started[self.pods]
        seconds = np.maximum(0.0, self.session.snapshot.taken_at - started)
        ran: Times = np.where(np.isnan(started), 0.0, seconds)
        return ran

    def places_of(self, number: int) -> slice:
        """Where the members of the podgroup with this number are."""
        return slice(self.starts[number], self.starts[number + 1])

    @cached_property
    def numbers(self) -> Rows:
        """For each pod the number of its podgroup."""
        return np.repeat(np.arange(len(self.groups)), np.diff(self.starts))

    def find(self, pods: Rows) -> Rows:
        """The places of those of these pods that are among them."""
        places = np.searchsorted(self._sorted_pods, pods)
        places[places == len(self.pods)] = 0
        is_known = self._sorted_pods[places] == pods if len(self.pods) else places < 0
        found: Rows = self._by_pod[places[is_known]]
        return found

    @cached_property
    def _by_pod(self) -> Rows:
        return np.argsort(self.pods)

    @cached_property
    def _sorted_pods(self) -> Rows:
        return self.pods[self._by_pod]

    # Whole gangs

    def are_complete(self) -> Mask:
        """For each podgroup: all its pods that have a place are among these."""
        session = self.session
        is_held = IS_ALLOCATED[session.status]
        held = np.bincount(
            session.snapshot.pods.group[is_held], minlength=len(session.snapshot.groups)
        )
        complete: Mask = held[self.groups] == np.diff(self.starts)
        return complete

    def have_protected(self) -> Mask:
        """For each podgroup: some of its pods are left in peace."""
        protected = np.bincount(self.numbers[self.is_protected], minlength=len(self.groups))
        return protected > 0

    def amounts_by_group(self) -> Amounts:
        if not len(self.groups):
            return self.requests
        amounts: Amounts = np.add.reduceat(self.requests, self.starts[:-1], axis=0)
        return amounts

    def work_by_group(self) -> Floats:
        """The sum of each podgroup's work, bit for bit as if it were added up alone."""
        count = len(self.groups)
        sums = np.bincount(self.numbers, weights=self.work, minlength=count).astype(np.float64)
        for number in np.flatnonzero(np.diff(self.starts) >= _IN_ANY_ORDER).tolist():
            sums[number] = self.work[self.places_of(number)].sum()
        return sums

    # Members beyond a minimum

    def spare_places(self) -> Iterator[Rows]:
        """By podgroup that has any: its members beyond the minimum, in the order in which they go.

        Members that are protected are not among them.
        """
        session = self.session
        minimum = session.snapshot.groups.min_member[self.groups]
        has_spare = session.ready_counts[self.groups] > minimum
        ordered = self._last_first(np.flatnonzero(has_spare[self.numbers] & ~self.is_protected))
        numbers = self.numbers[ordered]
        firsts = np.searchsorted(numbers, np.arange(len(self.groups) + 1))
        for number in np.flatnonzero(np.diff(firsts)).tolist():
            gang = session.gang(int(self.groups[number]))
            places = ordered[firsts[number] : firsts[number + 1]]
            yield places[self.beyond_minimum(gang, places)]

    def _last_first(self, places: Rows) -> Rows:
        """By podgroup, last in task order first."""
        in_order = self.session.tasks.in_order(self.pods[places])
        by_pod = places[np.argsort(self.pods[places])]
        last_first = by_pod[np.searchsorted(self.pods[by_pod], in_order)][::-1]
        return last_first[np.argsort(self.group[last_first], kind="stable")]

    def beyond_minimum(self, gang: Gang, places: Rows) -> slice | list[int]:
        """Which of these members go before the gang is at its minimum and those of its roles."""
        count = max(0, gang.ready - gang.min_member)
        if roles_count(gang):
            return self._beyond_role_minimums(gang, places)[:count]
        return slice(count)

    def _beyond_role_minimums(self, gang: Gang, places: Rows) -> list[int]:
        session = self.session
        left = {number: role.ready - role.minimum for number, role in gang.roles.items()}
        spare: list[int] = []
        for position, place in enumerate(places.tolist()):
            role = session.role[session.pod_classes[self.pods[place]]]
            if left.get(role, 1) > 0:
                spare.append(position)
            if role in left:
                left[role] -= 1
        return spare


def cluster_parts(session: Session, requests: Amounts) -> Floats:
    """The largest part of the cluster that each of these pods has of what queues are about."""
    parts = requests / np.maximum(session.total, 1)
    largest: Floats = np.where(session.queue_usage.dims, parts, 0.0).max(axis=1)
    return largest
