"""Whole victims: the gangs, or members beyond a gang's minimum, that must go for another gang.

A gang goes whole or keeps its minimum: breaking one loses more than it frees. Victims are chosen
for all pods of the newcomer together, on concrete nodes, and nobody goes unless all of it can
start. Of the sets that would do, one is taken in which the least work is lost and nobody is
superfluous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.engine.eviction.claims import missing_runs
from scheduler.engine.eviction.gang_victims import Victim
from scheduler.engine.future_places import Runs
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.nodes import copies, fits
from scheduler.engine.statement import Statement

FEW: Final = 8
"""Up to so many possible victims every set of them is tried."""

Allowed = Callable[[Sequence[Victim]], bool]
"""Whether these victims may go together."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Who goes, and the node of each pod of the newcomer, in task order."""

    victims: tuple[Victim, ...]
    nodes: tuple[int, ...]


class VictimSearch:
    """Victims for one gang.

    `may_go` tells whether a set of victims is allowed. It must allow every part of a set that it
    allows.
    """

    def __init__(
        self, session: Session, gang: Gang, victims: Sequence[Victim], may_go: Allowed
    ) -> None:
        self.session = session
        self.gang = gang
        self.victims = sorted(victims, key=_cheapest_first)
        self.may_go = may_go
        self.runs: Runs = missing_runs(session, gang)
        self._room = _room_for(session, gang)

    def find(self) -> Plan | None:
        """The victims and the places; None if no allowed set makes room for the whole gang."""
        if not self.victims or self._layout(()) is not None:
            return None  # there is room, so that is not why the gang waits
        if self._layout(self.victims) is None:
            return None  # not even all of them together would do
        chosen = self._choose()
        if chosen is None:
            return None
        chosen = self._without_superfluous(chosen)
        nodes = self._layout(chosen)
        if nodes is None:
            return None
        return Plan(tuple(chosen), tuple(nodes))

    def _choose(self) -> list[Victim] | None:
        if len(self.victims) <= FEW:
            return self._cheapest_set()
        return GreedyChoice(self.session, self.victims, self.may_go, self._room).find(self.runs)

    def _cheapest_set(self) -> list[Victim] | None:
        """Every set is tried, the cheapest first."""
        sets: list[tuple[Victim, ...]] = []
        for size in range(1, len(self.victims) + 1):
            sets.extend(combinations(self.victims, size))
        sets = [chosen for chosen in sets if not _repeats(chosen)]
        sets.sort(key=lambda chosen: (sum(victim.cost for victim in chosen), len(chosen)))
        for chosen in sets:
            if self.may_go(chosen) and self._layout(chosen) is not None:
                return list(chosen)
        return None

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


def _cheapest_first(victim: Victim) -> tuple[object, ...]:
    return (victim.cost, victim.gang.key, victim.pods.tolist())


class OnNode(NamedTuple):
    """What a victim would free on one node."""

    victim: Victim
    frees: Amounts


class GreedyChoice:
    """Victims pod after pod of the newcomer: on the node where the least must be lost for it.

    What has gone already counts.
    """

    def __init__(
        self, session: Session, victims: Sequence[Victim], may_go: Allowed, room: Amounts
    ) -> None:
        self.session = session
        self.may_go = may_go
        self.chosen: list[Victim] = []
        self._left = list(victims)
        self._room = room.copy()
        self._freed = {id(victim): self._freed_by_node(victim) for victim in victims}

    def _freed_by_node(self, victim: Victim) -> dict[int, Amounts]:
        nodes = self.session.nodes[victim.pods]
        requests = self.session.request[self.session.pod_classes[victim.pods]]
        return {node: requests[nodes == node].sum(axis=0) for node in np.unique(nodes).tolist()}

    def find(self, runs: Runs) -> list[Victim] | None:
        for pod_class, count in runs:
            for _ in range(count):
                if not self._place_one(pod_class):
                    return None
        return self.chosen

    def _place_one(self, pod_class: int) -> bool:
        """Takes room for one pod; makes some first, as often as that is needed."""
        request = self.session.request[pod_class]
        suitable = self.session.node_scores(pod_class).suitable
        while True:
            nodes = np.flatnonzero(suitable & fits(self._room, request))
            if len(nodes):
                tightest = nodes[copies(self._room[:, nodes], request).argmin()]
                self._room[:, tightest] -= request
                return True
            found = self._cheapest_on_one_node(pod_class)
            if not found:
                return False
            for victim in found:
                self._evict(victim)

    def _evict(self, victim: Victim) -> None:
        self.chosen.append(victim)
        self._left = [
            other for other in self._left if other is not victim and not _repeats((other, victim))
        ]
        _release(self.session, self._room, victim)

    def _cheapest_on_one_node(self, pod_class: int) -> list[Victim]:
        """The cheapest victims that make room on one node; none if there are no such."""
        missing = np.maximum(0, self.session.request[pod_class][:, None] - self._room)
        best: list[Victim] = []
        least = np.inf
        for node, there in sorted(self._helpful_by_node(pod_class, missing).items()):
            found = self._first_enough(there, missing[:, node], least)
            cost = sum(victim.cost for victim in found)
            if found and cost < least:
                best = found
                least = cost
        return best

    def _helpful_by_node(self, pod_class: int, missing: Amounts) -> dict[int, list[OnNode]]:
        """By suitable node, the victims that would free something that is missing there."""
        suitable = self.session.node_scores(pod_class).suitable
        by_node: dict[int, list[OnNode]] = {}
        for victim in self._left:
            for node, frees in self._freed[id(victim)].items():
                if suitable[node] and (np.minimum(frees, missing[:, node]) > 0).any():
                    by_node.setdefault(node, []).append(OnNode(victim, frees))
        return by_node

    def _first_enough(self, there: list[OnNode], missing: Amounts, least: float) -> list[Victim]:
        """In order of cost until it is enough; then without those that are not needed.

        None if they cost as much as `least`, for which others are to be had.
        """
        found: list[OnNode] = []
        freed = np.zeros_like(missing)
        for entry in there:
            if sum(other.victim.cost for other in found) >= least:
                return []
            if not (np.minimum(entry.frees, missing - freed) > 0).any():
                continue
            # A gang goes with its spare members.
            others = [other for other in found if not _repeats((other.victim, entry.victim))]
            if not self.may_go([*self.chosen, *(item.victim for item in others), entry.victim]):
                continue
            found = [*others, entry]
            freed = np.sum([item.frees for item in found], axis=0)
            if (freed >= missing).all():
                return _needed(found, missing)
        return []


def _needed(found: list[OnNode], missing: Amounts) -> list[Victim]:
    """Without those that the others make superfluous on their node, dearest first."""
    for entry in sorted(found, key=lambda entry: -entry.victim.cost):
        others = [other for other in found if other is not entry]
        freed = sum((other.frees for other in others), start=np.zeros_like(missing))
        if (freed >= missing).all():
            found = others
    return [entry.victim for entry in found]


def lay_out(session: Session, room: Amounts, runs: Runs) -> list[int] | None:
    """A node for each pod of these runs in this room, tightest nodes first.

    None if there is none for some pod.
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
        # Where a resource is not asked for any number fits: no more than are needed.
        wanted = np.minimum(fitting[order], count)
        places = np.repeat(order, wanted)[:count].tolist()
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


def carry_out(session: Session, statement: Statement, gang: Gang, plan: Plan, action: str) -> None:
    """The victims go, and each missing pod of the gang is promised its place."""
    for victim in plan.victims:
        for pod in sorted(victim.pods.tolist(), key=session.tasks.pod_key, reverse=True):
            statement.evict(victim.gang, pod, action, gang)
    for pod, node in zip(session.tasks.missing_pods(gang), plan.nodes, strict=True):
        statement.pipeline(gang, int(session.pod_classes[pod]), [pod], [node])
