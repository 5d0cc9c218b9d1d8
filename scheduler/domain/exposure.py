"""How safe what a queue borrows is: what the policy in force lets its lenders take back.

The engine says how much could be evicted of each queue that has more than it deserves
(`engine/report/exposure.py`). Here that is set against the loans.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from scheduler.domain.loans import NOBODY, Loan


class Kept(StrEnum):
    """Why something that is borrowed cannot be taken back."""

    NO_ACTION = "NoReclaimAction"
    NO_SHARES = "NoShares"
    NOT_RECLAIMABLE = "NotReclaimable"
    SUSPENDED = "QueueSuspended"
    NOT_EVICTABLE = "NotEvictable"
    NOBODYS = "NobodyLends"


KEPT_WORDS: Final[Mapping[Kept, str]] = {
    Kept.NO_ACTION: "the policy has no reclaim action",
    Kept.NO_SHARES: "the policy gives queues no shares",
    Kept.NOT_RECLAIMABLE: "the queue is not reclaimable",
    Kept.SUSPENDED: "the queue is suspended, and the policy protects suspended queues",
    Kept.NOT_EVICTABLE: (
        "the pods are critical, not preemptable, on their way, or of gangs that are too large"
    ),
    Kept.NOBODYS: "no queue has a claim to it",
}


@dataclass(frozen=True, slots=True)
class Reach:
    """How much reclaim could evict of a queue without leaving it below its deserved.

    `later` is the same as if no pod were protected by its minimum running time or because it ends
    soon; `seconds` is when the last of these is free to go. `why` holds of what is beyond both.
    """

    now: int = 0
    later: int = 0
    seconds: float = 0.0
    why: Kept = Kept.NOT_EVICTABLE


Reaches = Mapping[tuple[str, str], Reach]
"""By queue and resource."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """What a queue borrows, in parts that add up to it.

    `asked`: a lender lacks it and could take it back now. `open`: it could if it asked.
    `protected`: not before `seconds` have passed. `kept`: not at all, and `why`.
    """

    borrowed: int
    asked: int = 0
    open: int = 0
    protected: int = 0
    kept: int = 0
    seconds: float = 0.0
    why: Kept | None = None


def exposures_of(
    loans: Iterable[Loan], gaps: Mapping[str, int], reaches: Mapping[str, Reach]
) -> dict[str, Exposure]:
    """By borrower. `gaps` are what queues lack of their deserved and have jobs waiting for."""
    by_borrower: defaultdict[str, list[Loan]] = defaultdict(list)
    for loan in loans:
        by_borrower[loan.borrower].append(loan)
    lacking = dict(gaps)
    found = {}
    for borrower, taken in by_borrower.items():
        found[borrower] = _exposure(taken, lacking, reaches.get(borrower, Reach()))
    return found


def _exposure(taken: list[Loan], lacking: dict[str, int], reach: Reach) -> Exposure:
    """`lacking` falls by what its lenders take: a lender takes what it lacks once."""
    borrowed = sum(loan.amount for loan in taken)
    claimed = sum(loan.amount for loan in taken if loan.lender != NOBODY)
    reachable = min(claimed, reach.now)
    asked = 0
    for loan in taken:
        part = min(loan.amount, lacking.get(loan.lender, 0), reachable - asked)
        if part > 0:
            lacking[loan.lender] -= part
            asked += part
    protected = max(0, min(claimed, reach.later) - reachable)
    kept = borrowed - reachable - protected
    return Exposure(
        borrowed=borrowed,
        asked=asked,
        open=reachable - asked,
        protected=protected,
        kept=kept,
        seconds=reach.seconds if protected else 0.0,
        why=_why(kept, claimed, reach),
    )


def _why(kept: int, claimed: int, reach: Reach) -> Kept | None:
    if not kept:
        return None
    if not claimed:
        return Kept.NOBODYS
    return reach.why
