"""The cheapest victims at once, where they and the newcomer's pods go one for one.

The choice is that of `GreedyChoice`, which looks at one node after the other. Where the cheapest
victims are members beyond a minimum, and each holds just what a pod of the newcomer asks for, there
is nothing to weigh: after each exchange the nodes have as little room as before, so the next
cheapest is the next to go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Rows
from scheduler.engine.eviction.gang_victims import Victim
from scheduler.engine.eviction.victim_table import Offered
from scheduler.engine.session import Session
from scheduler.engine.state.nodes import copies

_LOOKED_AT: Final = 256
"""So many offers are looked at in one go."""


class AlikeExchange:
    """So many pods of one class, each in the place of one victim."""

    def __init__(
        self, session: Session, offered: Offered, pod_class: int, count: int, room: Amounts
    ) -> None:
        self._session = session
        self._offered = offered
        self._count = count
        self._suitable: Mask = session.node_scores(pod_class).suitable
        request = session.request[pod_class]
        self._dims = np.flatnonzero(request > 0)
        self._request: Amounts = request[self._dims]
        self._room: Amounts = room[self._dims]

    def choose(self) -> list[Victim] | None:
        """The victims, cheapest first; None if there is room for a pod, or if it is not as simple
        as that.
        """
        if self._has_room_for_one():
            return None
        rows = self._cheapest_members()
        if len(rows) < self._count:
            return None
        table = self._offered.table
        frees = table.on_nodes.frees[self._dims[:, None], rows]
        victims = table.on_nodes.victim[rows]
        if (frees != self._request[:, None]).any():
            return None
        if self._offered.least_of_gangs() <= table.cost[victims[-1]]:
            return None
        return table.victims(victims)

    def _has_room_for_one(self) -> bool:
        has_room = self._suitable.copy()
        for room, amount in zip(self._room, self._request.tolist(), strict=True):
            has_room &= room >= amount
        return bool(has_room.any())

    def _cheapest_members(self) -> Rows:
        """The first of the offers of single members that would free something missing on their
        node.
        """
        offers = self._offered.table.on_nodes
        in_order = self._offered.table.members_in_order
        found = in_order[:0]
        for start in range(0, len(in_order), _LOOKED_AT):
            rows = in_order[start : start + _LOOKED_AT]
            rows = rows[self._offered.is_offered[offers.victim[rows]]]
            nodes = offers.node[rows]
            is_missing = self._room[:, nodes] < self._request[:, None]
            helps = (is_missing & (offers.frees[self._dims[:, None], rows] > 0)).any(axis=0)
            found = np.append(found, rows[helps & self._suitable[nodes]])
            if len(found) >= self._count:
                break
        return found[: self._count]

    def places_of(self, chosen: Sequence[Victim]) -> list[int] | None:
        """A node for each pod once these are gone, tightest nodes first: there is no room on any
        other node. None if there is none for some pod.
        """
        pods = np.concatenate([victim.pods for victim in chosen])
        nodes, gone = np.unique(self._session.nodes[pods], return_counts=True)
        room = self._room[:, nodes] + self._request[:, None] * gone
        fitting = copies(room, self._request)
        if int(fitting.sum()) < self._count:
            return None
        order = np.argsort(fitting, kind="stable")
        places: list[int] = np.repeat(nodes[order], fitting[order])[: self._count].tolist()
        return places
