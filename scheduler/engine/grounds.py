"""What an eviction was decided by: how its victims were chosen, and what the two queues had where
they meet, before and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scheduler.domain.evictions import EvictionRule
from scheduler.domain.nodes import Amounts, Mask

if TYPE_CHECKING:
    from scheduler.engine.session import Session
    from scheduler.engine.statement import Operation


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """How victims were chosen for a whole gang.

    `short` marks the resources of which there was not room enough. There were so many `possible`
    victims, gangs or members beyond a gang's minimum, of which some were `chosen`. If
    `has_tried_all`, every set of them was looked at.
    """

    rule: EvictionRule
    short: Mask | None
    possible: int
    chosen: int
    has_tried_all: bool


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """What the queue of the taker and that of the victim had, by column.

    Both are the queues just below the deepest one that is above taker and victim.
    """

    taker: int
    loser: int
    taker_before: Amounts
    taker_after: Amounts
    loser_before: Amounts
    loser_after: Amounts


def note_exchanges(session: Session, operations: Iterable[Operation]) -> None:
    """For each eviction of these operations that takes from another queue.

    All of them must be in effect.
    """
    moved: dict[int, Amounts] | None = None
    found: dict[tuple[int, int], Exchange] = {}
    for operation in operations:
        taker = operation.beneficiary
        if taker is None or taker.queue == operation.gang.queue:
            continue
        pair = (taker.queue, operation.gang.queue)
        if pair not in found:
            if moved is None:
                moved = _moved_by_leaf(session, operations)
            found[pair] = _exchange(session, *session.queue_tree.parting(*pair), moved)
        operation.exchange = found[pair]


def _moved_by_leaf(session: Session, operations: Iterable[Operation]) -> dict[int, Amounts]:
    """By how much these operations changed what each leaf has."""
    counts: dict[tuple[int, int], int] = {}
    for operation in operations:
        key = (operation.gang.queue, operation.pod_class)
        counts[key] = counts.get(key, 0) + operation.sign * len(operation.pods)
    moved: dict[int, Amounts] = {}
    for (queue, pod_class), count in counts.items():
        moved[queue] = moved.get(queue, 0) + session.request[pod_class] * count
    return moved


def _exchange(session: Session, taker: int, loser: int, moved: Mapping[int, Amounts]) -> Exchange:
    allocated = session.queue_usage.allocated
    taker_after = allocated[taker].copy()
    loser_after = allocated[loser].copy()
    return Exchange(
        taker,
        loser,
        taker_before=taker_after - _moved_below(session, taker, moved),
        taker_after=taker_after,
        loser_before=loser_after - _moved_below(session, loser, moved),
        loser_after=loser_after,
    )


def _moved_below(session: Session, queue: int, moved: Mapping[int, Amounts]) -> Amounts:
    amounts: Amounts = np.zeros(session.request.shape[1], dtype=np.int64)
    for leaf, amount in moved.items():
        if queue in session.queue_tree.path_list(leaf):
            amounts += amount
    return amounts
