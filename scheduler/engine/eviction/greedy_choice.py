"""A cheap set of victims where there are too many to try every set."""

from __future__ import annotations

from collections.abc import Iterator
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
from scheduler.engine.eviction.victim_table import Offered, VictimTable
from scheduler.engine.future_places import Runs
from scheduler.engine.session import Session
from scheduler.engine.state.nodes import copies

_NO_NODE = -1


class OnNode(NamedTuple):
    """What a victim would free on one node, by column."""

    victim: Victim
    frees: list[int]


class GreedyChoice:
    """Victims pod after pod of the newcomer: on the node where the least must be lost for it.

    What has gone already counts.
    """

    def __init__(self, session: Session, offered: Offered, may_go: Allowed, room: Amounts) -> None:
        self.session = session
        self.may_go = may_go
        self.chosen: list[Victim] = []
        self._table = offered.table
        self._is_left = offered.is_offered.copy()
        self._room = room.copy()

    def find(self, runs: Runs) -> list[Victim] | None:
        for pod_class, count in runs:
            prices = NodePrices(self.session, pod_class, self._room, self._table, self._is_left)
            for _ in range(count):
                if not self._place_one(prices):
                    return None
        return self.chosen

    def _place_one(self, prices: NodePrices) -> bool:
        """Takes room for one pod; makes some first, as often as that is needed."""
        while True:
            node = prices.tightest_node()
            if node != _NO_NODE:
                self._room[:, node] -= prices.request
                prices.follow_placement(node)
                return True
            found = self._cheapest_on_one_node(prices)
            if not found:
                return False
            for victim in found:
                self._evict(victim)
                prices.follow_eviction(victim)

    def _evict(self, victim: Victim) -> None:
        self.chosen.append(victim)
        self._is_left[victim.row] = False
        self._is_left[self._table.rows_beside(victim)] = False
        release_room(self.session, self._room, [victim])

    def _cheapest_on_one_node(self, prices: NodePrices) -> list[Victim]:
        """The cheapest victims that make room on one node; none if there are no such."""
        best: list[Victim] = []
        least = np.inf
        while (node := prices.cheapest_node(least)) != _NO_NODE:
            found = self._first_enough(prices.on_node(node), prices.missing_on(node), least)
            cost = sum(victim.cost for victim in found)
            if found and cost < least:
                best = found
                least = cost
            prices.set_aside(node)
        prices.take_all_back()
        return best

    def _first_enough(
        self, there: Iterator[OnNode], missing: list[int], least: float
    ) -> list[Victim]:
        """In order of cost until it is enough; then without those that are not needed.

        None if they cost as much as `least`, for which others are to be had.
        """
        found: list[OnNode] = []
        lacking = missing
        for entry in there:
            if sum(other.victim.cost for other in found) >= least:
                return []
            if not _frees_any(entry, lacking):
                continue
            # A gang goes with its spare members.
            others = [other for other in found if not repeats_a_gang((other.victim, entry.victim))]
            if not self.may_go([*self.chosen, *(item.victim for item in others), entry.victim]):
                continue
            found = [*others, entry]
            lacking = _lacking_after(found, missing)
            if max(lacking) <= 0:
                return _needed(found, missing)
        return []


def _frees_any(entry: OnNode, lacking: list[int]) -> bool:
    pairs = zip(entry.frees, lacking, strict=True)
    return any(amount > 0 and still > 0 for amount, still in pairs)


def _lacking_after(found: list[OnNode], missing: list[int]) -> list[int]:
    """What is still missing when these have gone; negative where there is more than enough."""
    lacking = list(missing)
    for entry in found:
        for dim, amount in enumerate(entry.frees):
            lacking[dim] -= amount
    return lacking


def _needed(found: list[OnNode], missing: list[int]) -> list[Victim]:
    """Without those that the others make superfluous on their node, dearest first."""
    for entry in sorted(found, key=lambda entry: -entry.victim.cost):
        others = [other for other in found if other is not entry]
        if max(_lacking_after(others, missing)) <= 0:
            found = others
    return [entry.victim for entry in found]


class NodePrices:
    """Room for pods of one class: which nodes have it, and what it takes to make it on others.

    `room` and `is_left` change while victims are chosen. Then the price of a node can only rise,
    but for the node on which a pod is placed. So prices are found once, and a node's price is found
    anew when it looks like the cheapest.
    """

    def __init__(
        self,
        session: Session,
        pod_class: int,
        room: Amounts,
        table: VictimTable,
        is_left: Mask,
    ) -> None:
        self.session = session
        self.request: Amounts = session.request[pod_class]
        self._dims: list[int] = np.flatnonzero(self.request > 0).tolist()
        self._asked = [(dim, int(self.request[dim])) for dim in self._dims]
        self._room = room
        self._table = table
        self._offers = table.on_nodes
        self._is_left = is_left
        self._suitable = session.node_scores(pod_class).suitable
        self._fitting: Amounts = np.where(self._suitable, copies(room, self.request), 0)
        self._prices = self._all_prices()
        self._rows: dict[int, Rows] = {}
        self._aside: dict[int, float] = {}  # nodes that are set aside, and their prices

    def _all_prices(self) -> Floats:
        """What the cheapest victim costs that would free something missing, by node."""
        offers = self._offers
        helps = np.zeros(len(offers.victim), dtype=np.bool_)
        for dim in self._dims:
            is_missing = self._suitable & (self._room[dim] < self.request[dim])
            helps |= is_missing[offers.node] & (offers.frees[dim] > 0)
        helps &= self._is_left[offers.victim]
        prices = np.full(self._room.shape[1], np.inf)
        if len(offers.nodes):
            costs = np.where(helps, self._table.cost[offers.victim], np.inf)
            prices[offers.nodes] = offers.least_by_node(costs)
        return prices

    def tightest_node(self) -> int:
        """Of the nodes with room, the one for the fewest pods; -1 if there is none."""
        (nodes,) = self._fitting.nonzero()
        if not len(nodes):
            return _NO_NODE
        return int(nodes[self._fitting[nodes].argmin()])

    def cheapest_node(self, least: float) -> int:
        """The node with the cheapest victim that costs less than this; -1 if there is none."""
        while True:
            node = int(self._prices.argmin())
            price = self._prices[node]
            if price >= least:
                return _NO_NODE
            self._renew_price(node)
            if self._prices[node] == price:
                return node

    def set_aside(self, node: int) -> None:
        """The node is not looked at again until it is taken back."""
        self._aside[node] = float(self._prices[node])
        self._prices[node] = np.inf

    def take_all_back(self) -> None:
        for node, price in self._aside.items():
            self._prices[node] = price
        self._aside.clear()

    def _renew_price(self, node: int) -> None:
        rows = self._helpful_rows(node)
        price = np.inf
        if len(rows):
            price = self._table.cost[self._offers.victim[rows[0]]]
        self._prices[node] = price

    def missing_on(self, node: int) -> list[int]:
        """What a pod of the class lacks on the node."""
        missing: list[int] = np.maximum(0, self.request - self._room[:, node]).tolist()
        return missing

    def on_node(self, node: int) -> Iterator[OnNode]:
        """Victims that would free something missing there, cheapest first."""
        for row in self._helpful_rows(node).tolist():
            victim = self._table.victim(int(self._offers.victim[row]))
            yield OnNode(victim, self._offers.frees[:, row].tolist())

    def _helpful_rows(self, node: int) -> Rows:
        """Their rows among the offers, cheapest first; kept as long as nothing changes."""
        if node not in self._rows:
            self._rows[node] = self._find_helpful_rows(node)
        return self._rows[node]

    def _find_helpful_rows(self, node: int) -> Rows:
        there = self._offers.on(node)
        victims = self._offers.victim[there]
        is_missing = self.request > self._room[:, node]
        helps = (self._offers.frees[:, there][is_missing] > 0).any(axis=0)
        rows = np.flatnonzero(helps & self._is_left[victims])
        victims = victims[rows]
        rows = rows[np.lexsort((self._table.turn[victims], self._table.cost[victims]))]
        return rows + there.start  # type: ignore[no-any-return]

    def follow_placement(self, node: int) -> None:
        """A pod of the class has its place on this node."""
        self._fitting[node] -= 1
        self._rows.clear()
        self._renew_price(node)

    def follow_eviction(self, victim: Victim) -> None:
        self._rows.clear()
        for node in set(self.session.nodes[victim.pods].tolist()):
            self._fitting[node] = self._copies_on(node)

    def _copies_on(self, node: int) -> int:
        """How many pods of the class have room on the node; plain numbers, for one node."""
        if not self._suitable[node]:
            return 0
        room: list[int] = self._room[:, node].tolist()
        return max(0, min(room[dim] // amount for dim, amount in self._asked))
