"""How long gangs waited, in buckets of which four double the time: percentiles of any sum of them.

A percentile is right to within a fifth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

_PER_DOUBLING: Final = 4
LAST: Final = 120
"""About 34 years."""


def bucket_of(seconds: float) -> int:
    """0 for up to one second."""
    if seconds <= 1:
        return 0
    return min(LAST, math.ceil(math.log2(seconds) * _PER_DOUBLING))


def upper_edge(bucket: int) -> float:
    return float(2 ** (bucket / _PER_DOUBLING))


def percentile(counts: Mapping[int, int], share: float) -> float | None:
    """So many seconds or less waited this share of all; None where there are none."""
    total = sum(counts.values())
    if not total:
        return None
    wanted = share * total
    seen = 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen >= wanted:
            return upper_edge(bucket)
    return None
