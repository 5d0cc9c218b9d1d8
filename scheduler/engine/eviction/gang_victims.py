"""What a gang has to offer when room is made: the members beyond its minimum, or all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
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
    """A gang, or one member beyond its minimum: these pods of these classes go together.

    `cost` is the work that is lost.
    """

    gang: Gang
    pods: Rows
    pod_classes: tuple[int, ...]
    amounts: Amounts
    cost: float
    is_spare: bool


Allowed = Callable[[Sequence[Victim]], bool]
"""Whether these victims may go together."""
Veto = Callable[[Gang, int, Gang, int], bool]
"""Whether a plugin lets pods of a gang and class go for a gang and class."""


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
        yield from self._spare_victims(gang, pods[~self._protection(pods)])
        holding = self.session.tasks.pods_of(row)
        whole = holding[IS_ALLOCATED[self.session.status[holding]]]
        if len(whole) == len(pods) and not self._protection(whole).any():
            yield self._whole_victim(gang, whole)

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

    def _spare_victims(self, gang: Gang, pods: Rows) -> Iterator[Victim]:
        spare = np.array(self._spare_pods(gang, pods), dtype=np.intp)
        numbers = self.session.pod_classes[spare]
        requests = self.session.request[numbers]
        costs = (self._work(spare, requests) * SPARE).tolist()
        for place, (pod_class, cost) in enumerate(zip(numbers.tolist(), costs, strict=True)):
            pod = spare[place : place + 1]
            yield Victim(gang, pod, (pod_class,), requests[place], cost, is_spare=True)

    def _whole_victim(self, gang: Gang, pods: Rows) -> Victim:
        numbers = self.session.pod_classes[pods]
        requests = self.session.request[numbers]
        cost = float(self._work(pods, requests).sum())
        classes = tuple(np.unique(numbers).tolist())
        return Victim(gang, pods, classes, requests.sum(axis=0), cost, is_spare=False)

    def _work(self, pods: Rows, requests: Amounts) -> Floats:
        """What each pod would lose."""
        work: Floats = self._sizes(requests) * (self._seconds_run(pods) + START_COSTS)
        return work

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
    """All victims that some podgroups offer, as columns: one question is put to all of them at
    once.
    """

    def __init__(self, candidates: GangCandidates, groups: Rows) -> None:
        self._candidates = candidates
        self._by_group: dict[int, list[Victim]] = {}
        self._read(groups)

    def renew(self, groups: Iterable[int]) -> None:
        """These podgroups have lost pods. What the others offer is the same."""
        known = [group for group in groups if group in self._by_group]
        self._read(np.unique(np.array(known, dtype=np.intp)))

    def _read(self, groups: Rows) -> None:
        for group in groups.tolist():
            self._by_group[group] = list(self._candidates.victims_of([group]))
        self.victims = list(chain.from_iterable(self._by_group.values()))
        self.group: Rows = np.array([victim.gang.row for victim in self.victims], dtype=np.intp)
        self.queue: Rows = np.array([victim.gang.queue for victim in self.victims], dtype=np.intp)
        width = len(self._candidates.session.snapshot.resources)
        amounts = [victim.amounts for victim in self.victims]
        self.amounts: Amounts = np.array(amounts, dtype=np.int64).reshape(-1, width)


class Agreement:
    """Whether plugins let victims go for one gang: each is asked once for alike members."""

    def __init__(self, session: Session, gang: Gang, asks: Sequence[Veto]) -> None:
        self._gang = gang
        self._asks = asks
        self._own = int(session.pod_classes[session.tasks.missing_pods(gang)[0]])
        self._answers: dict[tuple[int, tuple[int, ...]], bool] = {}

    def allows(self, victim: Victim) -> bool:
        key = (victim.gang.row, victim.pod_classes)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._ask(victim)
        return answer

    def _ask(self, victim: Victim) -> bool:
        for pod_class in victim.pod_classes:
            for ask in self._asks:
                if not ask(self._gang, self._own, victim.gang, pod_class):
                    return False
        return True


def release_room(session: Session, room: Amounts, victims: Sequence[Victim]) -> None:
    """Adds what these hold to the room, by node."""
    if not victims:
        return
    pods = np.concatenate([victim.pods for victim in victims])
    np.add.at(room.T, session.nodes[pods], session.request[session.pod_classes[pods]])


def repeats_a_gang(chosen: Sequence[Victim]) -> bool:
    """Whether a gang stands beside members of its own."""
    whole = {victim.gang.row for victim in chosen if not victim.is_spare}
    return sum(victim.gang.row in whole for victim in chosen) > len(whole)
