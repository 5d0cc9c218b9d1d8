"""How long jobs run, learnt from jobs that have ended: of the same user, queue and size where there
are enough of them, else of a wider circle.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

LEVELS: Final = np.linspace(0.0, 1.0, 21)
"""The quantiles that are kept of each circle."""
FEWEST: Final = 5
"""Jobs that a circle must have. For smaller ones the next wider circle answers."""
FEWEST_OF_ALL: Final = 10
LONGER_THAN_ANY: Final = (0.1, 2.0)
"""A job that has run for longer than all others ends, from the lowest to the highest quantile,
after this part of what it has already run.
"""
ANY: Final = "*"

Circle = tuple[str, str, str]
"""User, queue and size; `ANY` where it does not matter."""


@dataclass(frozen=True, slots=True)
class RunTime:
    """One job that has ended."""

    user: str
    queue: str
    size: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Learnt:
    """`quantiles` of the run times of so many jobs, at `LEVELS`."""

    count: int
    quantiles: Sequence[float]


class RunTimes:
    """What was learnt, by circle."""

    def __init__(self, circles: Mapping[Circle, Learnt]) -> None:
        self.circles = dict(circles)

    @classmethod
    def learn(cls, ended: Iterable[RunTime]) -> RunTimes:
        seconds: defaultdict[Circle, list[float]] = defaultdict(list)
        for job in ended:
            for circle in circles_of(job.user, job.queue, job.size):
                seconds[circle].append(job.seconds)
        found = {}
        for circle, values in seconds.items():
            if len(values) >= _fewest(circle):
                found[circle] = Learnt(len(values), np.quantile(values, LEVELS).tolist())
        return cls(found)

    def circle_for(self, user: str, queue: str, size: str) -> Circle | None:
        """The closest circle with enough jobs; None while nothing was learnt."""
        for circle in circles_of(user, queue, size):
            if circle in self.circles:
                return circle
        return None

    def seconds(self, circle: Circle, level: float, run_for: float = 0.0) -> float:
        """How long a job runs from its start, at this quantile of those that run for longer than
        `run_for` seconds, which it has already run.
        """
        quantiles = self.circles[circle].quantiles
        longest = quantiles[-1]
        if run_for >= longest:
            low, high = LONGER_THAN_ANY
            return run_for * (1.0 + low * math.pow(high / low, level))
        shorter = 0.0
        if run_for > quantiles[0]:
            shorter = float(np.interp(run_for, quantiles, LEVELS))
        return float(np.interp(shorter + level * (1.0 - shorter), LEVELS, quantiles))


def circles_of(user: str, queue: str, size: str) -> Iterator[Circle]:
    """From the closest to the widest. A job without a user is like others without one only as a
    part of its queue.
    """
    if user:
        yield (user, queue, size)
        yield (user, queue, ANY)
    yield (ANY, queue, size)
    yield (ANY, queue, ANY)
    yield (ANY, ANY, size)
    yield (ANY, ANY, ANY)


def _fewest(circle: Circle) -> int:
    if circle == (ANY, ANY, ANY):
        return FEWEST_OF_ALL
    return FEWEST
