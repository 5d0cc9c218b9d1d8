"""What evictions cost in the last hour, in words."""

from __future__ import annotations

from typing import Any

from dashboard.templatetags.times import in_words
from scheduler.selectors.cluster.evictions import EvictionCosts

_TIME_OF = {"accelerators": "GPU time", "cores": "CPU time"}


def present_costs(costs: EvictionCosts) -> dict[str, Any]:
    return {"rate": _rate_words(costs), "lost": _lost_words(costs), "often": costs.often}


def _rate_words(costs: EvictionCosts) -> str:
    """ "0.02 evictions per placement (3 for 150)"; what is not known is not 0."""
    if costs.per_placement is None:
        if costs.evictions:
            return f"{costs.evictions} evictions and no placement"
        return "no placement"
    if not costs.evictions:
        return f"no eviction, {_number(costs.placements)} placements"
    rate = f"{costs.per_placement:.2g} evictions per placement"
    return f"{rate} ({_number(costs.evictions)} for {_number(costs.placements)})"


def _number(count: int) -> str:
    return f"{count:,}".replace(",", " ")


def _lost_words(costs: EvictionCosts) -> str:
    """ "12 min of GPU time lost, 0.4 % of the cluster's"."""
    if not costs.lost_seconds:
        return ""
    words = f"{in_words(costs.lost_seconds)} of {_TIME_OF[costs.lost_of]} lost"
    if costs.lost_share is None:
        return words
    return f"{words}, {100 * costs.lost_share:.2g} % of the cluster's"
