"""What a plugin may have an opinion on: every extension point, with a default that changes nothing.

A plugin from outside is a subclass named by dotted path in the policy. The session asks only points that the class overrides and
whose flag is on; how opinions are combined is said in `session.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Rows, Times

if TYPE_CHECKING:
    from scheduler.engine.refusals import Refusal
    from scheduler.engine.session import Session
    from scheduler.engine.state.gang import Job
    from scheduler.engine.state.queue_quotas import Quotas

Key = tuple[float, ...]
"""A sort key: smaller goes first. The session joins the keys of all plugins and puts creation time and name last."""


class Vote(IntEnum):
    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Plugin:
    """One plugin of one session; `arguments` are those of the policy, as written."""

    name: ClassVar[str] = ""

    def __init__(self, arguments: Mapping[str, object]) -> None:
        self.arguments = arguments

    def open(self, session: Session) -> None:
        """Called before any action: keep the session, compute what is needed. `self.enables(flag)` of the session tells flags."""
        self.session = session

    # Orders: flags queueOrder, jobOrder, taskOrder

    def queue_key(self, queue: int) -> Key:
        return ()

    def job_key(self, job: Job) -> Key:
        return ()

    def task_key(self, kind: int) -> Key:
        """For all pods of a class."""
        return ()

    # Jobs: valid is always asked; flags jobReady, jobPipelined, jobStarving

    def refuse_job(self, job: Job) -> Refusal | None:
        """Why this job can not be tried at all."""
        return None

    def job_ready(self, job: Job) -> bool:
        return True

    def job_pipelined(self, job: Job) -> Vote:
        return Vote.ABSTAIN

    def job_starving(self, job: Job) -> bool:
        return False

    # Admission: flag jobEnqueued

    def job_enqueueable(self, job: Job) -> Vote | Refusal:
        """A refusal is a vote against, with its words."""
        return Vote.ABSTAIN

    def job_enqueued(self, job: Job) -> None:
        """Every plugin agreed: the job is in."""

    # Queues: flags overused, allocatable, preemptive

    def overused(self, queue: int) -> bool:
        return False

    def allocatable(self, queue: int, kind: int, wanted: int) -> int:
        """How many of `wanted` pods of this class the queue may still have."""
        return wanted

    def preemptive(self, queue: int, kind: int) -> bool:
        """May this queue reclaim for one more pod of this class?"""
        return True

    def full_levels(self, queue: int, kind: int) -> list[int]:
        """Ancestors that have no room for one more pod of this class: reclaim must take victims from below them."""
        return []

    def quotas(self) -> Quotas | None:
        """The figures of the queues, if this plugin computes them."""
        return None

    # Nodes: flags predicate, nodeOrder

    def suitable(self, kind: int) -> Mask | None:
        """Nodes that this class may ever run on."""
        return None

    def static_score(self, kind: int) -> Times | None:
        """A score per node that does not change during the session."""
        return None

    def score(self, kind: int, used: Amounts, nodes: Rows) -> Times | None:
        """A score for each of these nodes, given what is used on it: resources by nodes."""
        return None

    # Victims: flags preemptable, reclaimable. Asked one by one, on the sums as they are after the victims taken so far.

    def may_preempt(self, taker: Job, kind: int, victim: Job, victim_kind: int) -> bool:
        return True

    def may_reclaim(self, taker: Job, kind: int, victim: Job, victim_kind: int) -> bool:
        return True

    # About queues, flag reclaimable, many at once: these are asked for every queue that runs something, for each gang that reclaims.

    def may_take_from(self, queue: int, kind: int, victim_queues: Rows, victim_kinds: Rows) -> Mask:
        """May a queue reclaim, for a pod of class `kind`, a pod of each class from the queue beside it?"""
        return np.ones(len(victim_kinds), dtype=np.bool_)

    def has_too_much(self, queues: Rows) -> Mask:
        """Which of these queues have anything at all that reclaim could take."""
        return np.ones(len(queues), dtype=np.bool_)

    def keeps_deserved(self, queues: Rows, kinds: Rows, reclaimer_kind: int) -> Mask:
        """Whether each queue still has what it deserves when a pod of the class beside it is gone; preferred victims do."""
        return np.ones(len(kinds), dtype=np.bool_)

    # Idle room: asked of the first queue plugin

    def borrowable(self, queue: int, kind: int, wanted: int) -> int:
        """How many of `wanted` pods of this class the queue may have of idle room beyond its deserved, in backfill."""
        return 0

    def close(self) -> None:
        """Called after the last action."""
