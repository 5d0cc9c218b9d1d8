"""What a pod asked for and held, in whole seconds and whole units, cut at the hours.

A pod waits from when it was made until it has a node, and holds what it asked for from then until
it has ended. Both are counted in whole seconds of the clock: the parts of a stretch that is cut
anywhere add up to the whole, and nothing is rounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from scheduler.domain.resources import is_bytes

HOUR: Final = 3600
DAY: Final = 24 * HOUR
USED: Final = "used"
WAITED: Final = "waited"
LOST: Final = "lost"
BYTES_IN_UNIT: Final = 1024
UNCOUNTED: Final = frozenset({"pods"})
"""Every pod is one: how many there are is told elsewhere."""

Parts = Counter[tuple[str, int]]  # by figure and by the beginning of the hour: seconds


@dataclass(frozen=True, slots=True)
class Account:
    """Whom usage is booked to."""

    queue: str
    namespace: str
    owner: str
    job: str


@dataclass(frozen=True, slots=True)
class Life:
    """Seconds since 1970. `began` is when it got its node, `ended` when it gave it back."""

    created: int
    began: int | None = None
    ended: int | None = None


@dataclass(frozen=True, slots=True)
class Counted:
    """What has been booked of a pod already: its life as it was known, from `since` to `until`."""

    life: Life
    since: int
    until: int


def counted_amounts(requests: Mapping[str, int]) -> dict[str, int]:
    """By resource, in the units in which usage is kept: bytes in whole Ki, rounded up."""
    found = {}
    for resource, amount in requests.items():
        if amount > 0 and resource not in UNCOUNTED:
            found[resource] = -(-amount // unit_of(resource))
    return found


def unit_of(resource: str) -> int:
    """How many base units one unit of usage is: sums of a year must fit into 64 bits."""
    if is_bytes(resource):
        return BYTES_IN_UNIT
    return 1


def whole_seconds(moment: datetime) -> int:
    return int(moment.timestamp() // 1)


def moment_at(second: int) -> datetime:
    return datetime.fromtimestamp(second, tz=UTC)


def parts_of(life: Life, since: int, until: int) -> Parts:
    """The seconds that it waited and held between two moments, by hour."""
    end = until
    if life.ended is not None:
        end = min(life.ended, until)
    placed = end
    if life.began is not None:
        placed = min(life.began, end)
    found: Parts = Counter()
    for hour, seconds in _by_hour(max(life.created, since), placed):
        found[WAITED, hour] += seconds
    if life.began is not None:
        for hour, seconds in _by_hour(max(life.began, since), end):
            found[USED, hour] += seconds
    return found


def _by_hour(start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        hour = start // HOUR * HOUR
        stop = min(end, hour + HOUR)
        yield hour, stop - start
        start = stop


def still_to_book(life: Life, until: int, before: Counted | None) -> Parts:
    """What is missing after what has been booked before; negative where that was too much.

    A report that comes late changes what was believed: the difference is booked, in the hours that
    it is about. So nothing is lost, and nothing counts twice.
    """
    if before is None:
        return parts_of(life, life.created, until)
    found = parts_of(life, before.since, until)
    found.subtract(parts_of(before.life, before.since, before.until))
    return Counter({key: seconds for key, seconds in found.items() if seconds})


def seconds_held(life: Life) -> int:
    if life.began is None or life.ended is None:
        return 0
    return max(0, life.ended - life.began)
