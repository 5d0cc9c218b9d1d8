"""The cheapest victims at once, where they and the newcomer's pods go one for one.

The choice is that of `GreedyChoice`, which looks at one node after the other. Where the cheapest
victims are members beyond a minimum, and each holds just what a pod of the newcomer asks for, there
is nothing to weigh: after each exchange the nodes have as little room as before, so the next
cheapest is the next to go.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.tables import Rows
from scheduler.engine.eviction.gang_victims import Victim
from scheduler.engine.eviction.victim_table import Offered
from scheduler.engine.session import Session
from scheduler.engine.state.nodes import copies

_LOOKED_AT: Final = 256
"""So many offers are looked at in one go."""


def choose_alike(
    session: Session, offered: Offered, pod_class: int, count: int, room: Amounts
) -> list[Victim] | None:
    """So many victims, cheapest first; None if it is not as simple as that."""
    table = offered.table
    request = session.request[pod_class]
    suitable = session.node_scores(pod_class).suitable
    if (copies(room, request)[suitable] > 0).any():
        return None
    rows = _cheapest_members(session, offered, pod_class, count, room)
    if len(rows) < count:
        return None
    asked = request > 0
    frees_just_that = table.on_nodes.frees[asked][:, rows] == request[asked, None]
    victims = table.on_nodes.victim[rows]
    if not frees_just_that.all() or offered.least_of_gangs() <= table.cost[victims[-1]]:
        return None
    return [table.victim(row) for row in victims.tolist()]


def _cheapest_members(
    session: Session, offered: Offered, pod_class: int, count: int, room: Amounts
) -> Rows:
    """The first of the offers of single members that would free something missing on their node."""
    offers = offered.table.on_nodes
    request = session.request[pod_class]
    suitable = session.node_scores(pod_class).suitable
    lacks = [(dim, room[dim] < request[dim]) for dim in np.flatnonzero(request > 0).tolist()]
    in_order = offered.table.members_in_order
    in_order = in_order[offered.is_offered[offers.victim[in_order]]]
    found = in_order[:0]
    for start in range(0, len(in_order), _LOOKED_AT):
        rows = in_order[start : start + _LOOKED_AT]
        nodes = offers.node[rows]
        helps = np.zeros(len(rows), dtype=np.bool_)
        for dim, is_missing in lacks:
            helps |= is_missing[nodes] & (offers.frees[dim, rows] > 0)
        found = np.append(found, rows[helps & suitable[nodes]])
        if len(found) >= count:
            break
    return found[:count]
