"""Two runs ahead compared: the cluster as it is, and as it would be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from scheduler.domain.queues import ROOT
from scheduler.domain.resources import Resources

STANDSTILL = "standstill"
LEAST_SECONDS = 1.0
LEAST_PART = 0.02
"""A start that moves by less than this, or by less than this part of its wait, has not moved:
sessions ahead lie about so far apart.
"""


class PreviewState(StrEnum):
    WAITING = "Waiting"
    RUNNING = "Running"
    DONE = "Done"
    REFUSED = "Refused"
    CANCELLED = "Cancelled"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Share:
    """What a queue deserves and has after the first session, and what it is guaranteed."""

    deserved: Resources
    allocated: Resources
    guarantee: Resources
    asked: Resources

    @property
    def below_guarantee(self) -> tuple[str, ...]:
        """The resources that it waits for although it has less than its guarantee."""
        found = []
        for resource, amount in self.guarantee.items():
            if self.asked.amount(resource) and self.allocated.amount(resource) < amount:
                found.append(resource)
        return tuple(found)

    def differs_from(self, other: Share) -> bool:
        """A resource that is not named is none of it: a new queue without anything is no news."""
        deserved = self.deserved - other.deserved
        allocated = self.allocated - other.allocated
        return not (deserved.is_empty and allocated.is_empty)


@dataclass(frozen=True, slots=True)
class Loss:
    """A pod that is evicted, and for whom: with the action `shed` for nobody, because too few of
    its gang are left.
    """

    pod: str
    podgroup: str
    queue: str
    beneficiary: str
    at: float  # seconds from now
    action: str = ""


@dataclass(frozen=True, slots=True)
class SetBack:
    """A gang that loses so many pods with their nodes."""

    podgroup: str
    queue: str
    pods: int


@dataclass(frozen=True, slots=True)
class Prospect:
    """One run ahead. `starts` are seconds from now, by podgroup; `waiting` did not start.

    `reasons` say why the jobs that are tried out wait after the first session: code and sentence.
    """

    shares: Mapping[str, Share]
    starts: Mapping[str, float]
    waiting: frozenset[str]
    losses: tuple[Loss, ...]
    first_binds: int
    first_evictions: int
    seconds: float
    halt: str
    reasons: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def horizon(self) -> float:
        """How far ahead it is known. After a standstill nothing more happens."""
        if self.halt == STANDSTILL:
            return math.inf
        return self.seconds

    def until(self, horizon: float) -> Prospect:
        """What of it happens by then. Who starts later still waits."""
        late = {name for name, at in self.starts.items() if at > horizon}
        return replace(
            self,
            starts={name: at for name, at in self.starts.items() if name not in late},
            waiting=self.waiting | late,
            losses=tuple(loss for loss in self.losses if loss.at <= horizon),
            seconds=min(self.seconds, horizon),
        )


@dataclass(frozen=True, slots=True)
class TriedJob:
    """What would become of a job. Times are seconds from now; None: it does not start.

    It starts between `earliest` and `latest`, which rests on so many `cases` of the past. With
    none of them it is what short and long run times make of it.
    """

    podgroup: str
    queue: str
    pods: int
    start: float | None
    earliest: float | None
    latest: float | None
    cases: int
    reason: str
    message: str
    evictions: int


@dataclass(frozen=True, slots=True)
class Move:
    """A gang that starts at another time; None where it does not start before the end."""

    podgroup: str
    before: float | None
    after: float | None

    @property
    def is_real(self) -> bool:
        if self.before is None or self.after is None:
            return True
        least = max(LEAST_SECONDS, LEAST_PART * max(self.before, self.after))
        return abs(self.before - self.after) >= least


def moves_between(before: Prospect, after: Prospect) -> tuple[Move, ...]:
    found = []
    for name in sorted({*before.starts, *after.starts}):
        move = Move(name, before.starts.get(name), after.starts.get(name))
        if move.is_real:
            found.append(move)
    return tuple(found)


def as_json(
    before: Prospect,
    after: Prospect,
    jobs: Sequence[TriedJob] = (),
    set_back: Sequence[SetBack] = (),
) -> dict[str, Any]:
    """As it is stored and sent. Only queues that change, or would be worse off, are named.

    One run may have come further than the other, because it was cut later. What only one of them
    tells is no difference, so both count as far as both are known.
    """
    horizon = min(before.horizon, after.horizon)
    before = before.until(horizon)
    after = after.until(horizon)
    told = {job.podgroup for job in jobs} | {gang.podgroup for gang in set_back}
    known = {loss.pod for loss in before.losses}
    return {
        "jobs": [asdict(job) for job in jobs],
        "now": _figures(before),
        "then": _figures(after),
        "queues": _queues(before, after),
        "setBack": [_set_back(gang, after) for gang in set_back],
        "moves": [
            {"podgroup": move.podgroup, "before": move.before, "after": move.after}
            for move in moves_between(before, after)
            if move.podgroup not in told
        ],
        "evictions": [
            {
                "pod": loss.pod,
                "podgroup": loss.podgroup,
                "queue": loss.queue,
                "beneficiary": loss.beneficiary,
                "action": loss.action,
                "at": loss.at,
                "isNew": loss.pod not in known,
            }
            for loss in after.losses
        ],
    }


def _figures(prospect: Prospect) -> dict[str, Any]:
    return {
        "binds": prospect.first_binds,
        "evictions": prospect.first_evictions,
        "started": len(prospect.starts),
        "waiting": len(prospect.waiting),
        "seconds": prospect.seconds,
        "halt": prospect.halt,
    }


def _set_back(gang: SetBack, after: Prospect) -> dict[str, Any]:
    """`start` is when it has enough pods again; null: not in this time, or it never has too few."""
    start = after.starts.get(gang.podgroup)
    return {
        **asdict(gang),
        "goesOn": start is None and gang.podgroup not in after.waiting,
        "start": start,
    }


_NO_SHARE = Share(Resources(), Resources(), Resources(), Resources())


def _queues(before: Prospect, after: Prospect) -> list[dict[str, Any]]:
    found = []
    for name in sorted({*before.shares, *after.shares}):
        was = before.shares.get(name, _NO_SHARE)
        now = after.shares.get(name, _NO_SHARE)
        changed = was.differs_from(now)
        # what all queues together lack is no news of the root
        below = () if name == ROOT else now.below_guarantee
        if changed or below:
            found.append(
                {
                    "queue": name,
                    "deserved": _both(was.deserved, now.deserved),
                    "allocated": _both(was.allocated, now.allocated),
                    "belowGuarantee": list(below),
                    "wasBelowGuarantee": list(was.below_guarantee),
                }
            )
    return found


def _both(before: Resources, after: Resources) -> dict[str, Any]:
    return {"before": before.to_quantities(), "after": after.to_quantities()}
