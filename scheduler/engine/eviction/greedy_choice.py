"""A cheap set of victims where there are too many to try every set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.engine.eviction.gang_victims import (
    Allowed,
    Victim,
    release_room,
    repeats_a_gang,
)
from scheduler.engine.future_places import Runs
from scheduler.engine.session import Session
from scheduler.engine.state.nodes import copies, fits


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
            other
            for other in self._left
            if other is not victim and not repeats_a_gang((other, victim))
        ]
        release_room(self.session, self._room, victim)

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
            others = [other for other in found if not repeats_a_gang((other.victim, entry.victim))]
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
