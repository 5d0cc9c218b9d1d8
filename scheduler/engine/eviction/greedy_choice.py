"""A cheap set of victims where there are too many to try every set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Floats, Rows
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


class Offers:
    """What each victim would free on each of its nodes, as columns, in the order of the victims.

    `number` is the victim's place among them.
    """

    def __init__(self, session: Session, victims: Sequence[Victim]) -> None:
        pods = np.concatenate([victim.pods for victim in victims])
        sizes = [len(victim.pods) for victim in victims]
        of_pod = np.repeat(np.arange(len(victims)), sizes)
        nodes = session.nodes[pods].astype(np.intp)
        width = session.node_table.future().shape[1]
        keys, place = np.unique(of_pod * width + nodes, return_inverse=True)
        requests = session.request[session.pod_classes[pods]]
        self.frees: Amounts = np.zeros((len(keys), requests.shape[1]), dtype=np.int64)
        np.add.at(self.frees, place, requests)
        self.number: Rows = keys // width
        self.node: Rows = keys % width
        self.cost: Floats = np.array([victim.cost for victim in victims])[self.number]
        self._group = np.array([victim.gang.row for victim in victims])[self.number]
        self._is_spare = np.array([victim.is_spare for victim in victims])[self.number]
        self.is_left: Mask = np.ones(len(keys), dtype=np.bool_)

    def withdraw(self, number: int, victim: Victim) -> None:
        """It goes. A gang that goes takes its spare members along, and a member keeps its gang."""
        same_gang = self._group == victim.gang.row
        self.is_left &= ~(
            (self.number == number) | (same_gang & (self._is_spare != victim.is_spare))
        )


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
        self._victims = victims
        self._offers = Offers(session, victims)
        self._numbers = {id(victim): number for number, victim in enumerate(victims)}
        self._room = room.copy()

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
        self._offers.withdraw(self._numbers[id(victim)], victim)
        release_room(self.session, self._room, [victim])

    def _cheapest_on_one_node(self, pod_class: int) -> list[Victim]:
        """The cheapest victims that make room on one node; none if there are no such."""
        missing = np.maximum(0, self.session.request[pod_class][:, None] - self._room)
        best: list[Victim] = []
        least = np.inf
        for cheapest, node, rows in self._helpful_by_node(pod_class, missing):
            if cheapest >= least:
                break
            found = self._first_enough(self._on_node(rows), missing[:, node], least)
            cost = sum(victim.cost for victim in found)
            if found and cost < least:
                best = found
                least = cost
        return best

    def _helpful_by_node(
        self, pod_class: int, missing: Amounts
    ) -> Iterator[tuple[float, int, Rows]]:
        """Nodes with victims that would free something missing there: what the cheapest of them
        costs, the node, and their rows among the offers, cheapest first. Cheap nodes come first.
        """
        offers = self._offers
        suitable = self.session.node_scores(pod_class).suitable
        rows = np.flatnonzero(offers.is_left & suitable[offers.node])
        helps = (np.minimum(offers.frees[rows], missing.T[offers.node[rows]]) > 0).any(axis=1)
        rows = rows[helps]
        rows = rows[np.lexsort((offers.number[rows], offers.node[rows]))]
        nodes, firsts = np.unique(offers.node[rows], return_index=True)
        costs = offers.cost[rows[firsts]]  # victims come in order of cost
        ends = np.append(firsts[1:], len(rows))
        for place in np.argsort(costs, kind="stable").tolist():
            on_it = rows[firsts[place] : ends[place]]
            yield float(costs[place]), int(nodes[place]), on_it

    def _on_node(self, rows: Rows) -> Iterator[OnNode]:
        for row in rows.tolist():
            victim = self._victims[self._offers.number[row]]
            yield OnNode(victim, self._offers.frees[row])

    def _first_enough(
        self, there: Iterator[OnNode], missing: Amounts, least: float
    ) -> list[Victim]:
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
