"""Which sessions stay, so that they can be run again: all of the last minutes, all that matter, and
of the hours before ever fewer, within a number of bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

STEPS: Final = (
    (timedelta(minutes=10), 0),
    (timedelta(hours=1), 10),
    (timedelta(hours=6), 60),
    (timedelta.max, 300),
)
"""Up to this age, the first session of each so many seconds stays; of 0, all do.

Each step is a part of the next one: what stays of a longer one has stayed of the shorter.
"""
_COARSER: Final = (1, 2, 4, 8, 16, 32, 64)
"""What the steps are multiplied by, until what is left is small enough."""


@dataclass(frozen=True, slots=True)
class KeptSession:
    """`stays` is said of sessions that evicted something, and of those that were asked for."""

    number: int
    began_at: datetime
    size: int  # in bytes
    stays: bool


def thinned_out(kept: Collection[KeptSession], now: datetime, most_bytes: int) -> list[int]:
    """The numbers of those that go. The newest of those that matter never does."""
    left: Sequence[KeptSession] = ()
    for times in _COARSER:
        left = _left_of(kept, now, times)
        if _size(left) <= most_bytes:
            break
    else:
        left = _as_many_as_fit(left, most_bytes)
    stay = {session.number for session in left}
    return sorted(session.number for session in kept if session.number not in stay)


def _left_of(kept: Collection[KeptSession], now: datetime, times: int) -> list[KeptSession]:
    firsts: dict[tuple[int, int], KeptSession] = {}
    left = []
    for session in sorted(kept, key=lambda session: session.number):
        step = _step_of(now - session.began_at, times)
        if session.stays or not step:
            left.append(session)
        else:
            firsts.setdefault((step, int(session.began_at.timestamp()) // step), session)
    return [*left, *firsts.values()]


def _step_of(age: timedelta, times: int) -> int:
    step = next(step for limit, step in STEPS if age <= limit)
    if times == 1:
        return step
    return max(step, 1) * times


def _as_many_as_fit(left: Collection[KeptSession], most_bytes: int) -> list[KeptSession]:
    """Those that matter before the others, the newest first."""
    ordered = sorted(left, key=lambda session: (session.stays, session.number), reverse=True)
    fitting = ordered[:1]
    room = most_bytes - _size(fitting)
    for session in ordered[1:]:
        room -= session.size
        if room < 0:
            break
        fitting.append(session)
    return fitting


def _size(sessions: Collection[KeptSession]) -> int:
    return sum(session.size for session in sessions)
