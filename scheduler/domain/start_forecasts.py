"""When a waiting gang starts, as a range that shall hold in eight of ten cases.

A run ahead knows neither the jobs that are still to come nor how long each one runs. How far such
runs were off in the past, in like cases, says how wide the range has to be.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

COVERAGE: Final = 0.8
"""The part of all starts that shall lie in the range."""
LOW: Final = 0.2
MEDIAN: Final = 0.5
HIGH: Final = 0.8
"""The quantiles of run times that the three runs ahead take."""
FEWEST: Final = 30
"""Past forecasts that a range must rest on."""
FEWEST_EPISODES: Final = 5
"""At so many different times. A thousand gangs that wait for the same job are one experience."""
UNSEEN: Final = 2.0
"""What a range is wider for what has not been seen yet: this, divided by the episodes, of the
logarithm of the wait. With ten episodes a fifth.
"""
MOST: Final = 2000
"""Of the newest: what was usual long ago is not any more."""
MOST_OF_EPISODE: Final = 25
"""More of one episode teach nothing."""
SMALLEST: Final = 5.0
"""Seconds added before two waits are compared: nobody minds a start that is a second late."""
BANDS: Final = (30.0, 120.0, 600.0, 1800.0, 3600.0, 4 * 3600.0, 12 * 3600.0)
"""Waits are alike between two of these, in seconds."""
LONGEST_EPISODE: Final = 86_400.0
ANY: Final = "*"

Case = tuple[str, str, int]
"""Queue, size and band; `ANY` where it does not matter."""
Episode = tuple[str, int, int]
"""Queue, band, and the number of a span of time."""
Floats = npt.NDArray[np.float64]


class Why(StrEnum):
    """Why a waiting gang has no expected start."""

    PAUSED = "paused"
    NO_RUN_TIMES = "noRunTimes"
    FEW_FORECASTS = "fewForecasts"
    STANDSTILL = "standstill"
    TOO_FAR = "tooFar"
    CUT_SHORT = "cutShort"


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds until the start, by the run ahead with short, usual and long run times."""

    low: float
    median: float
    high: float

    @property
    def band(self) -> int:
        return int(np.searchsorted(BANDS, self.median, side="right"))


@dataclass(frozen=True, slots=True)
class Past:
    """A forecast and what came of it. `actual` is the wait in seconds from the forecast on.

    If it is not over, it is the wait so far, and counts once that is longer than `high`.
    """

    queue: str
    size: str
    waits: Waits
    actual: float
    is_over: bool = True
    made_at: float = 0.0

    @property
    def episode(self) -> Episode:
        """Forecasts of one queue that are about as far apart as the wait is long rest on the same
        things, and are right or wrong together.
        """
        band = self.waits.band
        length = LONGEST_EPISODE
        if band < len(BANDS):
            length = BANDS[band]
        return self.queue, band, int(self.made_at // length)


@dataclass(frozen=True, slots=True)
class Range:
    """Seconds from the moment of the forecast. It rests on so many `cases`."""

    earliest: float
    latest: float
    cases: int


@dataclass(frozen=True, slots=True)
class _Margins:
    """Of the logarithm of the wait: taken from the lower end, added to the upper one."""

    below: float
    above: float
    cases: int


class Calibration:
    """What past forecasts teach: given newest first."""

    def __init__(self, past: Iterable[Past]) -> None:
        errors: defaultdict[Case, list[_Error]] = defaultdict(list)
        of_episode: Counter[tuple[Case, Episode]] = Counter()
        for each in past:
            if not each.is_over and each.actual <= each.waits.high:
                continue  # nobody knows yet
            error = _error(each)
            for case in cases_of(each.queue, each.size, each.waits.band):
                known = of_episode[case, error.episode]
                if known < MOST_OF_EPISODE and len(errors[case]) < MOST:
                    errors[case].append(error)
                    of_episode[case, error.episode] += 1
        self._margins: dict[Case, _Margins] = {}
        for case, found in errors.items():
            margins = _margins(found)
            if margins is not None:
                self._margins[case] = margins

    def range_of(self, queue: str, size: str, waits: Waits) -> Range | None:
        """None where there are too few past forecasts of like cases."""
        for case in cases_of(queue, size, waits.band):
            margins = self._margins.get(case)
            if margins is not None:
                return _widened(waits, margins)
        return None


KEPT_AGAIN_AFTER: Final = 300.0


def is_kept(waited: float, waited_at_last: float | None) -> bool:
    """Whether a forecast for a gang that has waited for so long is kept, to be compared with what
    happens: the first one, and one each time that its wait has doubled.
    """
    if waited_at_last is None:
        return True
    return waited >= max(KEPT_AGAIN_AFTER, 2.0 * waited_at_last)


def cases_of(queue: str, size: str, band: int) -> Iterator[Case]:
    """From the closest to the widest.

    A wait of minutes says nothing about one of hours, so the band always counts.
    """
    yield (queue, size, band)
    yield (queue, ANY, band)
    yield (ANY, size, band)
    yield (ANY, ANY, band)


@dataclass(frozen=True, slots=True)
class _Error:
    """How far the start was before the lower end, and after the upper one; negative inside."""

    early: float
    late: float
    episode: Episode


def _error(past: Past) -> _Error:
    actual = _log(past.actual)
    return _Error(_log(past.waits.low) - actual, actual - _log(past.waits.high), past.episode)


def _log(seconds: float) -> float:
    return math.log(max(0.0, seconds) + SMALLEST)


def _margins(errors: Sequence[_Error]) -> _Margins | None:
    """The narrowest margins, with as many misses on either side as can be, that would have held in
    eight of ten cases. All episodes count alike, however many forecasts they have.
    """
    sizes = Counter(error.episode for error in errors)
    if len(errors) < FEWEST or len(sizes) < FEWEST_EPISODES:
        return None
    early = np.array([error.early for error in errors])
    late = np.array([error.late for error in errors])
    weights = np.array([1.0 / sizes[error.episode] for error in errors])
    below = float(early.max())
    above = float(late.max())
    for missed in np.arange(1.0 - COVERAGE, 0.0, -0.01):
        one_end = _quantile(early, weights, 1.0 - missed)
        other_end = _quantile(late, weights, 1.0 - missed)
        held = weights[(early <= one_end) & (late <= other_end)].sum()
        if held >= COVERAGE * weights.sum():
            below = one_end
            above = other_end
            break
    unseen = UNSEEN / len(sizes)
    return _Margins(below + unseen, above + unseen, len(errors))


def _quantile(values: Floats, weights: Floats, level: float) -> float:
    """The smallest value that this part of the weights is not above."""
    order = np.argsort(values)
    sums = np.cumsum(weights[order])
    place = int(np.searchsorted(sums, level * sums[-1]))
    return float(values[order][min(place, len(values) - 1)])


def _widened(waits: Waits, margins: _Margins) -> Range:
    earliest = max(0.0, math.exp(_log(waits.low) - margins.below) - SMALLEST)
    latest = max(0.0, math.exp(_log(waits.high) + margins.above) - SMALLEST)
    return Range(min(earliest, latest), max(earliest, latest), margins.cases)
