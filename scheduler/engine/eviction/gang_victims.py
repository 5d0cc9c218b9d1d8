"""What a gang has to offer when room is made: the members beyond its minimum, or all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, eq=False)
class Victim:
    """A gang, or one member beyond its minimum: these pods go together.

    `cost` is the work that is lost.
    """

    gang: Gang
    pods: Rows
    amounts: Amounts
    cost: float
    is_spare: bool


Allowed = Callable[[Sequence[Victim]], bool]
"""Whether these victims may go together."""


class GangCandidates:
    """All that could ever go in a session, gang by gang.

    `statuses` count as running for the action. `protection` marks pods that are left in peace.
    """

    def __init__(
        self, session: Session, statuses: Sequence[int], protection: Callable[[Rows], Mask]
    ) -> None:
        self.session = session
        group = session.snapshot.pods.group
        rows = np.flatnonzero(np.isin(session.status, statuses) & (session.nodes >= 0))
        self._rows = rows[np.argsort(group[rows], kind="stable")]
        self._group = group[self._rows]
        self.groups = np.unique(self._group)
        self._protection = protection

    def victims_of(self, groups: Iterable[int]) -> Iterator[Victim]:
        """What these podgroups offer: spare members one by one, then the gang as a whole."""
        for row in groups:
            yield from self._victims_of_group(row)

    def _victims_of_group(self, row: int) -> Iterator[Victim]:
        pods = self._running_pods(row)
        if not len(pods) or not self._may_go(pods):
            return
        gang = self.session.gang(row)
        for pod in self._spare_pods(gang, pods[~self._protection(pods)]):
            yield self._victim(gang, np.array([pod]), is_spare=True)
        holding = self.session.tasks.pods_of(row)
        whole = holding[IS_ALLOCATED[self.session.status[holding]]]
        if len(whole) == len(pods) and not self._protection(whole).any():
            yield self._victim(gang, whole, is_spare=False)

    def _running_pods(self, row: int) -> Rows:
        first, last = np.searchsorted(self._group, [row, row + 1])
        pods = self._rows[first:last]
        return pods[IS_ALLOCATED[self.session.status[pods]]]

    def _may_go(self, pods: Rows) -> bool:
        classes = self.session.snapshot.classes
        numbers = self.session.pod_classes[pods]
        return bool((classes.preemptable[numbers] & ~classes.critical[numbers]).all())

    def _spare_pods(self, gang: Gang, pods: Rows) -> list[int]:
        """As many as it has beyond its minimum and those of its roles, last in task order
        first.
        """
        count = gang.ready - gang.min_member
        if count <= 0:
            return []
        ordered = sorted(pods.tolist(), key=self.session.tasks.pod_key, reverse=True)
        if roles_count(gang):
            ordered = self._beyond_role_minimums(gang, ordered)
        return ordered[:count]

    def _beyond_role_minimums(self, gang: Gang, pods: list[int]) -> list[int]:
        left = {number: role.ready - role.minimum for number, role in gang.roles.items()}
        spare: list[int] = []
        for pod in pods:
            role = self.session.role[self.session.pod_classes[pod]]
            if left.get(role, 1) > 0:
                spare.append(pod)
            if role in left:
                left[role] -= 1
        return spare

    def _victim(self, gang: Gang, pods: Rows, *, is_spare: bool) -> Victim:
        requests = self.session.request[self.session.pod_classes[pods]]
        work = self._sizes(requests) * (self._seconds_run(pods) + START_COSTS)
        cost = float(work.sum())
        if is_spare:
            cost *= SPARE
        return Victim(gang, pods, requests.sum(axis=0), cost, is_spare)

    def _sizes(self, requests: Amounts) -> Floats:
        """The largest part of the cluster that each pod holds of what queues are about."""
        parts = requests / np.maximum(self.session.total, 1)
        sizes: Floats = np.where(self.session.queue_usage.dims, parts, 0.0).max(axis=1)
        return sizes

    def _seconds_run(self, pods: Rows) -> Times:
        started = self.session.snapshot.pods.started[pods]
        seconds = np.maximum(0.0, self.session.snapshot.taken_at - started)
        ran: Times = np.where(np.isnan(started), 0.0, seconds)
        return ran


class VictimTable:
    """All victims that queues offer which may lose something, as columns: one question is put to
    all of them at once.
    """

    def __init__(self, candidates: GangCandidates, losing: Mask) -> None:
        queue = candidates.session.snapshot.groups.queue
        groups = candidates.groups[queue[candidates.groups] >= 0]
        groups = groups[losing[queue[groups]]]
        self.victims = list(candidates.victims_of(groups.tolist()))
        self.group: Rows = np.array([victim.gang.row for victim in self.victims], dtype=np.intp)
        self.queue: Rows = np.array([victim.gang.queue for victim in self.victims], dtype=np.intp)
        width = len(candidates.session.snapshot.resources)
        amounts = [victim.amounts for victim in self.victims]
        self.amounts: Amounts = np.array(amounts, dtype=np.int64).reshape(-1, width)


def release_room(session: Session, room: Amounts, victim: Victim) -> None:
    for pod in victim.pods.tolist():
        room[:, session.nodes[pod]] += session.request[session.pod_classes[pod]]


def repeats_a_gang(chosen: Sequence[Victim]) -> bool:
    """Whether a gang stands beside members of its own."""
    whole = {victim.gang.row for victim in chosen if not victim.is_spare}
    return sum(victim.gang.row in whole for victim in chosen) > len(whole)
