"""Where the cluster's room went: used, or why not. The parts always add up to the whole.

Free room is first put down to gangs that could have had it, in the order of `CAUSES`, as far as
they ask for it. What nobody asks for had no demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scheduler.domain.reasons import ReasonCode

USED: Final = "used"
FRAGMENTED: Final = "fragmented"
GANG: Final = "gang"
QUOTA: Final = "quota"
SUSPENDED: Final = "suspended"
OTHER: Final = "other"
NO_DEMAND: Final = "no-demand"
CAUSES: Final = (FRAGMENTED, GANG, QUOTA, SUSPENDED, OTHER)
PARTS: Final = (USED, *CAUSES, NO_DEMAND)

PART_WORDS: Final[Mapping[str, str]] = {
    USED: "Used",
    FRAGMENTED: "Fragmented",
    GANG: "Gang incomplete",
    QUOTA: "Quota",
    SUSPENDED: "Suspended",
    OTHER: "Other reasons",
    NO_DEMAND: "No demand",
}
PART_HELP: Final[Mapping[str, str]] = {
    USED: "held by pods",
    FRAGMENTED: "free, but in pieces: no node has enough of it for a pod that waits",
    GANG: "free, but too little for all pods that a waiting gang needs to start",
    QUOTA: "free, but the queues that ask for it may not have more, or it is kept for a guarantee",
    SUSPENDED: (
        "free, but the queue or job that asks for it is suspended, closed or on hold, or "
        "scheduling is paused"
    ),
    OTHER: "free, and asked for by gangs that wait for something else",
    NO_DEMAND: "free, and nobody asked for it",
}

_CAUSE_OF: Final[Mapping[str, str]] = {
    ReasonCode.FRAGMENTED.value: FRAGMENTED,
    ReasonCode.NO_NODE_FITS.value: FRAGMENTED,
    ReasonCode.POD_RULES_NOT_MET.value: FRAGMENTED,
    ReasonCode.GANG_INCOMPLETE.value: GANG,
    ReasonCode.NOT_ENOUGH_TASKS.value: GANG,
    ReasonCode.CLUSTER_BUSY.value: GANG,
    ReasonCode.WAITING_FOR_QUOTA.value: QUOTA,
    ReasonCode.RESERVED_FOR_GUARANTEES.value: QUOTA,
    ReasonCode.OVER_DESERVED_NOT_RECLAIMABLE.value: QUOTA,
    ReasonCode.EXCEEDS_CAPABILITY.value: QUOTA,
    ReasonCode.QUEUE_SUSPENDED.value: SUSPENDED,
    ReasonCode.QUEUE_CLOSED.value: SUSPENDED,
    ReasonCode.SCHEDULING_PAUSED.value: SUSPENDED,
    ReasonCode.ON_HOLD.value: SUSPENDED,
}


def cause_of(reason: str) -> str:
    return _CAUSE_OF.get(reason, OTHER)


def parts_of_room(total: int, used: int, asked: Mapping[str, int]) -> dict[str, int]:
    """By part; they add up to the total, or to what is used where that is more."""
    found = {USED: used}
    free = max(0, total - used)
    for cause in CAUSES:
        found[cause] = min(free, asked.get(cause, 0))
        free -= found[cause]
    found[NO_DEMAND] = free
    return found
