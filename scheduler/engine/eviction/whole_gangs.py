"""Whole victims: the gangs, or members beyond a gang's minimum, that must go so that another gang
can start at once.

A gang goes whole or keeps its minimum: breaking one loses more than it frees. Victims are chosen
for all pods of the newcomer together, on concrete nodes, and nobody goes unless all of it can
start. Of the sets that would do, one is taken in which the least work is lost and nobody is
superfluous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import IS_ALLOCATED, Floats, Rows, Times
from scheduler.engine.eviction.claims import missing_runs
from scheduler.engine.future_places import Runs
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.nodes import copies, fits
from scheduler.engine.statement import Statement

SPARE: Final = 0.01
"""What work of a member beyond its gang's minimum counts, beside that of a gang: such members go
first.
"""
START_COSTS: Final = 60.0
"""Seconds of work that an eviction loses besides what has been done: a large gang that has just
started is not to be had for nothing.
"""
FEW: Final = 8
"""Up to so many possible victims every set of them is tried."""


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


@dataclass(frozen=True, slots=True)
class Plan:
    """Who goes, and the node of each pod of the newcomer, in task order."""

    victims: tuple[Victim, ...]
    nodes: tuple[int, ...]


class Candidates:
    """All that could ever go in a session, gang by gang.

    `running` are the statuses that count as running for the action.
    """

    def __init__(
        self, session: Session, statuses: Sequence[int], protection: Callable[[Rows], Mask]
    ) -> None:
        self.session = session
        pods = session.snapshot.pods
        status = session.status
        rows = np.flatnonzero(np.isin(status, statuses) & (session.nodes >= 0))
        self._rows = rows[np.argsort(pods.group[rows], kind="stable")]
        self._group = pods.group[self._rows]
        self.groups = np.unique(self._group)
        self._protection = protection

    def of(self, groups: Iterable[int]) -> Iterator[Victim]:
        """The victims that these podgroups offer: spare members one by one, then what is left as a
        whole.
        """
        for row in groups:
            yield from self._of_group(row)

    def _of_group(self, row: int) -> Iterator[Victim]:
        session = self.session
        first, last = np.searchsorted(self._group, [row, row + 1])
        pods = self._rows[first:last]
        pods = pods[IS_ALLOCATED[session.status[pods]]]
        if not len(pods) or not self._may_go(pods):
            return
        gang = session.gang(row)
        holding = session.tasks.pods_of(row)
        whole = holding[IS_ALLOCATED[session.status[holding]]]
        is_protected = self._protection(whole)
        spare = self._spare(gang, pods[~self._protection(pods)])
        for pod in spare.tolist():
            yield self._victim(gang, np.array([pod]), is_spare=True)
        if len(whole) == len(pods) and not is_protected.any():
            yield self._victim(gang, whole, is_spare=False)

    def _may_go(self, pods: Rows) -> bool:
        classes = self.session.snapshot.classes
        pod_classes = self.session.pod_classes[pods]
        return bool((classes.preemptable[pod_classes] & ~classes.critical[pod_classes]).all())

    def _spare(self, gang: Gang, pods: Rows) -> Rows:
        """As many as it has beyond its minimum, last in task order first; a gang with minimums per
        role only goes whole.
        """
        count = 0 if gang.roles else max(0, gang.ready - gang.min_member)
        if not count:
            return pods[:0]
        ordered = sorted(pods.tolist(), key=self.session.tasks.pod_key, reverse=True)
        return np.array(ordered[:count], dtype=np.intp)

    def _victim(self, gang: Gang, pods: Rows, *, is_spare: bool) -> Victim:
        session = self.session
        requests = session.request[session.pod_classes[pods]]
        cost = float((self._sizes(requests) * (self._ran(pods) + START_COSTS)).sum())
        return Victim(
            gang, pods, requests.sum(axis=0), cost * (SPARE if is_spare else 1.0), is_spare
        )

    def _sizes(self, requests: Amounts) -> Floats:
        """The largest part of the cluster that each pod holds of any resource that queues are
        about.
        """
        total = np.maximum(self.session.total, 1)
        sizes: Floats = np.where(self.session.queue_usage.dims, requests / total, 0.0).max(axis=1)
        return sizes

    def _ran(self, pods: Rows) -> Times:
        started = self.session.snapshot.pods.started[pods]
        ran: Times = np.where(
            np.isnan(started), 0.0, np.maximum(0.0, self.session.snapshot.taken_at - started)
        )
        return ran


Allowed = Callable[[Sequence[Victim]], bool]
"""Whether these victims may go together."""


class Search:
    """Victims for one gang.

    `may_go` tells whether a set of victims is allowed; it must allow every part of a set that it
    allows.
    """

    def __init__(
        self, session: Session, gang: Gang, victims: Sequence[Victim], may_go: Allowed
    ) -> None:
        self.session = session
        self.gang = gang
        self.victims = sorted(
            victims, key=lambda victim: (victim.cost, victim.gang.key, victim.pods.tolist())
        )
        self.may_go = may_go
        self.runs: Runs = missing_runs(session, gang)
        self._room = _room_for(session, gang)

    def find(self) -> Plan | None:
        """The victims and the places; None if no allowed set makes room for the whole gang."""
        if not self.victims or self._layout(()) is not None:
            return None  # there is room, so it is not for want of it that the gang waits
        if self._layout(self.victims) is None:
            return None  # not even all of them together would do
        chosen = self._smallest() if len(self.victims) <= FEW else self._greedy()
        if chosen is None:
            return None
        chosen = self._without_superfluous(chosen)
        nodes = self._layout(chosen)
        if nodes is None:
            return None
        return Plan(tuple(chosen), tuple(nodes))

    def _smallest(self) -> list[Victim] | None:
        """Every set, the cheapest first."""
        sets = [
            chosen
            for size in range(1, len(self.victims) + 1)
            for chosen in combinations(self.victims, size)
            if not _repeats(chosen)
        ]
        sets.sort(key=lambda chosen: (sum(victim.cost for victim in chosen), len(chosen)))
        return next((list(chosen) for chosen in sets if self._will_do(chosen)), None)

    def _will_do(self, chosen: Sequence[Victim]) -> bool:
        return self.may_go(chosen) and self._layout(chosen) is not None

    def _greedy(self) -> list[Victim] | None:
        """Pod after pod of the newcomer: the node on which the least must be lost for it, with what
        has gone already.
        """
        chosen: list[Victim] = []
        room = self._room.copy()
        left = list(self.victims)
        for pod_class, count in self.runs:
            for _ in range(count):
                if not self._make_room(room, pod_class, chosen, left):
                    return None
        return chosen

    def _make_room(
        self, room: Amounts, pod_class: int, chosen: list[Victim], left: list[Victim]
    ) -> bool:
        request = self.session.request[pod_class]
        suitable = self.session.node_scores(pod_class).suitable
        while True:
            open_nodes = np.flatnonzero(suitable & fits(room, request))
            if len(open_nodes):
                room[:, self._tightest(room, open_nodes, request)] -= request
                return True
            found = self._cheapest_node(room, request, suitable, chosen, left)
            if not found:
                return False
            for victim in found:
                chosen.append(victim)
                left[:] = [
                    other for other in left if other is not victim and not _repeats((other, victim))
                ]
                _release(self.session, room, victim)

    def _tightest(self, room: Amounts, nodes: Rows, request: Amounts) -> int:
        return int(nodes[copies(room[:, nodes], request).argmin()])

    def _cheapest_node(
        self,
        room: Amounts,
        request: Amounts,
        suitable: Mask,
        chosen: list[Victim],
        left: Sequence[Victim],
    ) -> list[Victim]:
        """The cheapest victims that make room on one node; none if there are no such."""
        missing = np.maximum(0, request[:, None] - room)
        by_node: dict[int, list[tuple[Victim, Amounts]]] = {}
        for victim in left:
            nodes = self.session.nodes[victim.pods]
            for node in np.unique(nodes[suitable[nodes]]).tolist():
                frees = self.session.request[
                    self.session.pod_classes[victim.pods[nodes == node]]
                ].sum(axis=0)
                if (np.minimum(frees, missing[:, node]) > 0).any():
                    by_node.setdefault(node, []).append((victim, frees))
        best: list[Victim] = []
        least = np.inf
        for node, there in sorted(by_node.items()):
            found = self._first_enough(there, missing[:, node], chosen, least)
            cost = sum(victim.cost for victim in found)
            if found and cost < least:
                best = found
                least = cost
        return best

    def _first_enough(
        self,
        there: list[tuple[Victim, Amounts]],
        missing: Amounts,
        chosen: list[Victim],
        least: float,
    ) -> list[Victim]:
        """In order of cost until it is enough; then without those that are not needed."""
        found: list[tuple[Victim, Amounts]] = []
        freed = np.zeros_like(missing)
        for victim, frees in there:
            if sum(other.cost for other, _ in found) >= least:
                return []
            if not (np.minimum(frees, missing - freed) > 0).any():
                continue
            others = [
                entry for entry in found if not _repeats((entry[0], victim))
            ]  # a gang goes with its spare members
            if not self.may_go([*chosen, *(other for other, _ in others), victim]):
                continue
            found = [*others, (victim, frees)]
            freed = np.sum([entry[1] for entry in found], axis=0)
            if (freed >= missing).all():
                return _needed(found, missing)
        return []

    def _without_superfluous(self, chosen: list[Victim]) -> list[Victim]:
        """Dearest first, whoever turns out not to be needed stays."""
        for victim in sorted(chosen, key=lambda victim: -victim.cost):
            fewer = [other for other in chosen if other is not victim]
            if fewer and self._layout(fewer) is not None:
                chosen = fewer
        return chosen

    def _layout(self, chosen: Iterable[Victim]) -> list[int] | None:
        """The node of each missing pod once these are gone; None if some pod has none."""
        room = self._room.copy()
        for victim in chosen:
            _release(self.session, room, victim)
        return lay_out(self.session, room, self.runs)


def lay_out(session: Session, room: Amounts, runs: Runs) -> list[int] | None:
    """A node for each pod of these runs in this room, tightest nodes first; None if there is none
    for some.
    """
    nodes: list[int] = []
    room = room.copy()
    for pod_class, count in runs:
        request = session.request[pod_class]
        fitting = np.where(session.node_scores(pod_class).suitable, copies(room, request), 0)
        if int(fitting.sum()) < count:
            return None
        order = np.flatnonzero(fitting)
        order = order[np.argsort(fitting[order], kind="stable")]
        fitting_here = np.minimum(
            fitting[order], count
        )  # where a resource is not asked for, any number fits
        places = np.repeat(order, fitting_here)[:count].tolist()
        for node in places:
            room[:, node] -= request
        nodes.extend(places)
    return nodes


def _room_for(session: Session, gang: Gang) -> Amounts:
    """What will be free without any eviction, less what others have been given in the future."""
    room = session.node_table.future()
    mask = session.future_places.mask_for(gang)
    if mask:
        return room - session.future_places.block(mask)
    return room.copy()


def _release(session: Session, room: Amounts, victim: Victim) -> None:
    for pod in victim.pods.tolist():
        room[:, session.nodes[pod]] += session.request[session.pod_classes[pod]]


def _repeats(chosen: Sequence[Victim]) -> bool:
    """Whether a gang stands beside members of its own."""
    whole = {victim.gang.row for victim in chosen if not victim.is_spare}
    return sum(victim.gang.row in whole for victim in chosen) > len(whole)


def _needed(found: list[tuple[Victim, Amounts]], missing: Amounts) -> list[Victim]:
    """Without those that the others make superfluous on their node, dearest first."""
    for entry in sorted(found, key=lambda entry: -entry[0].cost):
        others = [other for other in found if other is not entry]
        freed = np.sum([frees for _, frees in others], axis=0) if others else np.zeros_like(missing)
        if (freed >= missing).all():
            found = others
    return [victim for victim, _ in found]


def carry_out(session: Session, statement: Statement, gang: Gang, plan: Plan, action: str) -> None:
    """The victims go, and each missing pod of the gang is promised its place."""
    for victim in plan.victims:
        for pod in sorted(victim.pods.tolist(), key=session.tasks.pod_key, reverse=True):
            statement.evict(victim.gang, pod, action, gang)
    for pod, node in zip(session.tasks.missing_pods(gang), plan.nodes, strict=True):
        statement.pipeline(gang, int(session.pod_classes[pod]), [pod], [node])
