"""Water-filling: dividing an amount by weight, with a floor and a ceiling for each, exactly and in
whole numbers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from scheduler.domain.nodes import Amounts, Mask

_SAFE: Final = 2**62
"""Products below this stay exact in 64 bits."""


def fill(total: int, weights: Amounts, floors: Amounts, ceilings: Amounts) -> Amounts:
    """Each one's part of `total`: `clamp(level x weight, floor, ceiling)` with the one level at
    which the parts use it up.

    If the floors alone exceed the total, everybody gets the floor; if the ceilings do not reach it,
    everybody gets the ceiling and the rest stays over. Parts are rounded down, and the units lost
    by that go one each to those rounded down, in the order given.
    """
    ceilings = np.maximum(ceilings, floors)
    if int_sum(floors) >= total:
        return floors.copy()
    if int_sum(ceilings) <= total:
        return ceilings.copy()
    return _between(total, weights, floors, ceilings)


def fill_each(totals: Amounts, weights: Amounts, floors: Amounts, ceilings: Amounts) -> Amounts:
    """`fill` for every resource: `totals` by resource, floors and ceilings queues by resources."""
    parts = np.zeros_like(floors)
    for resource in range(len(totals)):
        parts[:, resource] = fill(
            int(totals[resource]), weights, floors[:, resource], ceilings[:, resource]
        )
    return parts


def int_sum(amounts: Amounts) -> int:
    """The sum as a whole number of any size: it cannot overflow."""
    high, low = np.divmod(amounts, 1 << 32)
    return int(high.sum()) * (1 << 32) + int(low.sum())


def _between(total: int, weights: Amounts, floors: Amounts, ceilings: Amounts) -> Amounts:
    """The case in which some are strictly between floor and ceiling."""
    parts = floors.copy()
    free = weights > 0
    rest = total - int_sum(floors[~free])
    while free.any():
        rows = np.flatnonzero(free)
        trial = _Trial(rest, weights[rows], floors[rows], ceilings[rows])
        if trial.is_final:
            parts[rows] = trial.share
            rounded_down = rows[trial.lost > 0]
            parts[rounded_down[: total - int_sum(parts)]] += 1
            break
        settled = trial.settled()
        parts[rows[settled]] = np.where(trial.above, ceilings[rows], floors[rows])[settled]
        rest -= int_sum(parts[rows[settled]])
        free[rows[settled]] = False
    return parts


class _Trial:
    """Dividing `rest` by weight alone: the parts rounded down, who would pass the ceiling, who
    would stay below the floor.
    """

    def __init__(self, rest: int, weights: Amounts, floors: Amounts, ceilings: Amounts) -> None:
        self.floors = floors
        self.ceilings = ceilings
        self.whole = int(weights.sum())
        fits_64_bits = rest * int(weights.max()) < _SAFE
        products: Any = (weights if fits_64_bits else weights.astype(object)) * rest
        share: Any = products // self.whole
        self.share: Amounts = np.asarray(share, dtype=np.int64)
        self.lost: Amounts = np.asarray(products - share * self.whole, dtype=np.int64)
        self.above: Mask = (self.share > ceilings) | ((self.share == ceilings) & (self.lost > 0))
        self.below: Mask = self.share < floors

    @property
    def is_final(self) -> bool:
        return not (self.above.any() or self.below.any())

    def settled(self) -> Mask:
        """Who has found a final place.

        If more is cut off at ceilings than is lifted to floors, the true level is higher, so those
        above the ceiling stay above. Otherwise it is lower, and those below the floor stay below.
        """
        cut = int_sum((self.share - self.ceilings)[self.above])
        lifted = int_sum((self.floors - self.share)[self.below])
        lost = int_sum(self.lost[self.above | self.below])
        if (cut - lifted) * self.whole + lost >= 0:
            return self.above
        return self.below
