"""Who goes together when room is made for a gang: one member beyond a gang's minimum, or all of
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.tables import Rows
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang


@dataclass(frozen=True, slots=True, eq=False)
class Victim:
    """A gang, or one member beyond its minimum: these pods go together.

    `row` is its place in the table of victims. `cost` is the work that is lost.
    """

    row: int
    gang: Gang
    pods: Rows
    amounts: Amounts
    cost: float
    is_spare: bool


Allowed = Callable[[Sequence[Victim]], bool]
"""Whether these victims may go together."""


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
