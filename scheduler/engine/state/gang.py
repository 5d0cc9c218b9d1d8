"""One podgroup during a session: its counts and sums, current at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.domain.nodes import Amounts
from scheduler.domain.workloads import Phase
from scheduler.engine.refusals import Refusal

if TYPE_CHECKING:
    from scheduler.engine.session import Session


_PHASES: Final = {phase.value: phase for phase in Phase}
"""Faster than asking the enum, which is done for every gang."""


class Role:
    """How many pods of one role are placed, wait for room, and are pending."""

    __slots__ = ("minimum", "pending", "ready", "waiting")

    def __init__(self, minimum: int) -> None:
        self.minimum = minimum
        self.ready = 0
        self.waiting = 0
        self.pending = 0


class Gang:
    """`ready` counts allocated and succeeded pods, `waiting` those with room promised.

    `allocated` includes what waits.
    """

    __slots__ = (
        "allocated",
        "blocked",
        "broken",
        "created",
        "failed",
        "held",
        "key",
        "min_member",
        "only_class",
        "pending",
        "phase",
        "placeable",
        "priority",
        "queue",
        "rank",
        "ready",
        "refusal",
        "roles",
        "row",
        "tasks",
        "waiting",
    )

    def __init__(self, session: Session, row: int) -> None:
        groups = session.snapshot.groups
        self.row = row
        self.key = groups.key[row]
        self.queue = int(groups.queue[row])
        self.min_member = int(groups.min_member[row])
        self.priority = int(groups.priority[row])
        self.created = float(groups.created[row])
        self.phase = _PHASES[session.phases[row]]
        self.ready = int(session.ready_counts[row])
        self.tasks = int(session.task_counts[row])
        self.pending = int(session.pending_counts[row])
        self.waiting = 0
        self.allocated: Amounts = session.allocated_by_gang[row]  # a view: its row
        self.held: dict[int, int] = {}  # pod -> node: room that an earlier session promised
        self.roles: dict[int, Role] = {}
        self.broken = False  # reclaim took it below its minimum in this session
        self.failed: str = ""  # what the last try to place it ran into
        # what rules between pods had against how many nodes, when it was tried last
        self.blocked: tuple[tuple[str, int], ...] = ()
        self.placeable = 0  # how many of its pods the last try that failed found room for
        self.refusal: Refusal | None = None
        self.only_class = -1  # of which class alone a report asks; -1: of all
        # Its place among gangs, by plugins; forgotten when the gang changes.
        self.rank: tuple[float, ...] | None = None

    @property
    def awaits_admission(self) -> bool:
        """Not admitted by enqueue yet."""
        return self.phase is Phase.PENDING

    @property
    def missing(self) -> int:
        """How many pods it still needs a place for to have its minimum."""
        return max(0, self.min_member - self.ready - self.waiting)

    def count(self, role: int, ready: int = 0, waiting: int = 0, pending: int = 0) -> None:
        """Moves pods between the counts, for the gang and for the role if it has a minimum."""
        self.ready += ready
        self.waiting += waiting
        self.pending += pending
        counts = self.roles.get(role)
        if counts is not None:
            counts.ready += ready
            counts.waiting += waiting
            counts.pending += pending
