"""What a session decided, as values: binds, evictions, reservations, phases, conditions, reasons
and the figures of each queue.

What a session makes by the hundred is a tuple with names: those are made several times as fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from scheduler.domain.evictions import EvictionRule
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.resources import NOTHING, Resources
from scheduler.domain.workloads import Phase


class Bind(NamedTuple):
    """This pod goes to this node. `row` is the pod's row in the snapshot."""

    pod: str
    node: str
    podgroup: str
    queue: str
    row: int
    borrowed: bool = False


@dataclass(frozen=True, slots=True)
class Holding:
    """What one queue has of one resource before and after an eviction.

    `due_is` names the figure that `due` is: deserved or guarantee.
    """

    queue: str
    before: int
    after: int
    due: int
    due_is: str = "deserved"

    def as_dict(self) -> dict[str, str | int]:
        return {
            "queue": self.queue,
            "before": self.before,
            "after": self.after,
            "due": self.due,
            "dueIs": self.due_is,
        }


@dataclass(frozen=True, slots=True)
class Grounds:
    """The rule that allowed an eviction, and what it was decided by.

    `taker` and `loser` are the queues of both sides, just below the deepest one above both; None
    inside one queue. Of so many `possible` victims some were `chosen`; 0 where pods were looked at
    one after the other. If `has_tried_all`, every set of victims was tried.
    """

    rule: EvictionRule
    resource: str = ""
    taker: Holding | None = None
    loser: Holding | None = None
    priority: int = 0
    victim_priority: int = 0
    possible: int = 0
    chosen: int = 0
    has_tried_all: bool = False

    def as_dict(self) -> dict[str, object]:
        """As it is stored and sent."""
        found: dict[str, object] = {"rule": self.rule.value}
        if self.rule is EvictionRule.PRIORITY:
            found["priority"] = self.priority
            found["victimPriority"] = self.victim_priority
        if self.taker is not None and self.loser is not None:
            found["resource"] = self.resource
            found["taker"] = self.taker.as_dict()
            found["loser"] = self.loser.as_dict()
        if self.possible:
            found["possible"] = self.possible
            found["chosen"] = self.chosen
            found["hasTriedAll"] = self.has_tried_all
        return found


class Evict(NamedTuple):
    """This pod must go, for whom and why, with the figures of its queue before and after.

    `action` is preempt, reclaim or shed; `beneficiary` is the podgroup it makes room for (for shed,
    empty); `level` is the deepest queue above both victim and beneficiary, `depth` its distance
    from root. `request` is what the pod had for `ran_seconds`, which are lost.
    """

    pod: str
    node: str
    podgroup: str
    queue: str
    row: int
    action: str
    reason: str
    beneficiary: str = ""
    beneficiary_queue: str = ""
    level: str = ""
    depth: int = 0
    allocated_before: Resources = NOTHING
    allocated_after: Resources = NOTHING
    deserved: Resources = NOTHING
    guarantee: Resources = NOTHING
    grounds: Grounds | None = None
    request: Resources = NOTHING
    ran_seconds: float = 0.0


class Reservation(NamedTuple):
    """Room that this pod waits for on this node, kept for it until the session numbered `expires`
    is over.
    """

    pod: str
    node: str
    podgroup: str
    row: int
    expires: int


class PhaseChange(NamedTuple):
    podgroup: str
    row: int
    old: Phase
    new: Phase


class Condition(NamedTuple):
    """Volcano's condition of a podgroup: type Unschedulable or Scheduled, status True."""

    podgroup: str
    row: int
    type: str
    reason: str
    message: str = ""


class PodCondition(NamedTuple):
    """Volcano's condition PodScheduled=False of a pod: reason Unschedulable or Schedulable."""

    pod: str
    row: int
    reason: str
    message: str


class Event(NamedTuple):
    """`type` is Normal or Warning; `object` is "podgroup", "pod" or "queue", `name` its key; `code`
    says why a podgroup waits.
    """

    type: str
    reason: str
    message: str
    object: str
    name: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One test that was made for a waiting podgroup: on which queue or node, for which resource,
    what it needs and what there is.

    `used` is what pods hold on nodes, `promised` what is kept for pods that wait, `admitted` what
    jobs that were admitted before may still take, `leaving` the part of `used` that may be counted
    on again; `free` is what is left, negative in a queue above its limit.
    """

    name: str  # e.g. "capability", "deserved", "overcommit", "cluster", "node"
    level: str  # the queue it was made on; root for the cluster
    resource: str
    need: int
    limit: int
    used: int
    free: int
    promised: int = 0
    leaving: int = 0
    admitted: int = 0

    @property
    def passed(self) -> bool:
        return self.need <= self.free

    @property
    def short(self) -> int:
        """How much is missing; 0 when the test passed."""
        return max(0, self.need - self.free)

    def as_dict(self) -> dict[str, str | int | bool]:
        return {**asdict(self), "passed": self.passed, "short": self.short}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a podgroup has not started: one code, one sentence, the figures behind it, and every
    check.
    """

    code: ReasonCode
    message: str
    figures: Mapping[str, object] = field(default_factory=dict, hash=False)
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """What one queue may have and has, at the end of the session; `warnings` are for its operator.

    `allocated` is what limits are compared with, as Volcano counts it: promised room counts, what
    is leaving does not. `in_use` is what pods hold on nodes, those that are leaving included
    (`leaving`), and `promised` what is kept for pods that wait. `held` is what waits in suspended
    queues. It is asked for too, but is no part of `request`, which shares are made of. `asked` is
    what pods wait for, without jobs that can never run; `lacking` is how much of the resource that
    they wait for jobs need.
    """

    name: str
    deserved: Resources = NOTHING
    allocated: Resources = NOTHING
    request: Resources = NOTHING
    real_capability: Resources = NOTHING
    nominal_share: Resources = NOTHING
    guarantee: Resources = NOTHING
    inqueue: Resources = NOTHING
    elastic: Resources = NOTHING
    held: Resources = NOTHING
    in_use: Resources = NOTHING
    leaving: Resources = NOTHING
    promised: Resources = NOTHING
    asked: Resources = NOTHING
    lacking: Resources = NOTHING
    share: float = 0.0
    overused: bool = False
    warnings: tuple[str, ...] = ()


class Said(NamedTuple):
    """What this session says about a podgroup that did not start, or about the pods beyond the
    minimum of one that runs; and only if it is not what the last one said.

    `fingerprint` belongs into the `said` column of the next snapshot. `reason` None means that the
    podgroup waits for nothing. A `fingerprint` of 0 means that nothing is said of its pods either.
    """

    podgroup: str
    row: int
    fingerprint: int
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The decisions of one session. Everything that the next one must remember is here too.

    `reasons`, `conditions`, `pod_conditions` and `events` hold what is new: where `said` of the
    snapshot already has the fingerprint, nothing is repeated. `starving` maps rows of podgroups to
    the session that first saw them starving (-1: no longer).
    """

    binds: tuple[Bind, ...] = ()
    evictions: tuple[Evict, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    phases: Mapping[str, Phase] = field(default_factory=dict, hash=False)
    phase_changes: tuple[PhaseChange, ...] = ()
    reasons: Mapping[str, Reason] = field(default_factory=dict, hash=False)
    said: tuple[Said, ...] = ()
    conditions: tuple[Condition, ...] = ()
    pod_conditions: tuple[PodCondition, ...] = ()
    events: tuple[Event, ...] = ()
    queues: Mapping[str, QueueFigures] = field(default_factory=dict, hash=False)
    queues_at_open: Mapping[str, QueueFigures] = field(default_factory=dict, hash=False)
    starving: Mapping[int, int] = field(default_factory=dict, hash=False)
    warnings: tuple[str, ...] = ()
    total: Resources = NOTHING
    preemption_attempts: int = field(default=0, compare=False)  # told, and nothing follows from it

    @property
    def is_quiet(self) -> bool:
        """Nothing is decided, kept or said: there is nothing to write but figures."""
        decided = (
            self.binds or self.evictions or self.reservations or self.phase_changes or self.starving
        )
        return not (decided or self.said or self.conditions or self.pod_conditions or self.events)
