"""What a plugin may be asked: every extension point, with a default that changes nothing.

A plugin from outside is a subclass named by dotted path in the policy. The session asks only points
that the class overrides and whose flag is on; `dispatch.py` says how answers are combined. Points
are named as in Volcano, where a podgroup in a session is called a job; here it is a `Gang`, and a
pod class is a number of the snapshot's class table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Floats, Ints, Rows, Scores

if TYPE_CHECKING:
    from scheduler.engine.refusals import Refusal
    from scheduler.engine.session import Session
    from scheduler.engine.state.gang import Gang
    from scheduler.engine.state.queue_quotas import Quotas

Key = tuple[float, ...]
"""A sort key: smaller goes first.

The session joins the keys of all plugins and puts creation time and name last.
"""
Column = Ints | Amounts | Floats
"""One part of the keys of many: the smaller number goes first."""


class Vote(IntEnum):
    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Plugin:
    """One plugin of one session; `arguments` are those of the policy, as written."""

    name: ClassVar[str] = ""
    only_tightens: ClassVar[bool] = False
    """Whether its answers about takers and victims, and the place of a queue in the order, only
    ever move one way while one gang takes from others: from yes to no as the gang gets more and as
    victims go. Then many pods are asked about at once. If it cannot be told, leave it."""
    scores_by_use: ClassVar[bool] = False
    """Whether `score` follows from the class, what a node has and what is used there, and from
    nothing else of the node. Then a score is remembered. If it cannot be told, leave it."""
    node_answers_last: ClassVar[bool] = False
    """Whether `suitable`, `static_score` and `score` follow from the arguments, the class, the
    nodes and what is used on them, and from nothing else of the session. Then they are kept for the
    next session, and asked again of nodes where something else is used. If it cannot be told, leave
    it. A class that is made from one that says so must say so itself: it may look at more."""

    refuses_by_minimum: ClassVar[bool] = False
    """Whether `job_enqueueable` follows from the queue and the minResources of a gang, and from who
    was admitted before, and from nothing else. Then gangs that ask for the same as one that was
    refused are not asked about. If it cannot be told, leave it."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "node_answers_last" not in vars(cls):
            cls.node_answers_last = False

    def __init__(self, arguments: Mapping[str, object]) -> None:
        self.arguments = arguments

    def open(self, session: Session) -> None:
        """Called before any action: keep the session, compute what is needed.

        `self.enables(flag)` of the session tells flags.
        """
        self.session = session

    # Orders: flags queueOrder, jobOrder, taskOrder

    def queue_key(self, queue: int) -> Key:
        return ()

    def job_key(self, gang: Gang) -> Key:
        return ()

    def job_keys(self, rows: Rows) -> Sequence[Column]:
        """`job_key` of many podgroups at once, as columns that are compared one after the other.

        Who overrides `job_key` may leave this as it is. It is asked where many gangs wait.
        """
        keys = [self.job_key(self.session.gang(row)) for row in rows.tolist()]
        places = {key: place for place, key in enumerate(sorted(set(keys)))}
        return [np.array([places[key] for key in keys], dtype=np.int64)]

    def task_key(self, pod_class: int) -> Key:
        """For all pods of a class."""
        return ()

    # Gangs: valid is always asked; flags jobReady, jobPipelined, jobStarving

    def refuse_job(self, gang: Gang) -> Refusal | None:
        """Why this gang cannot be tried at all."""
        return None

    def job_ready(self, gang: Gang) -> bool:
        return True

    def job_pipelined(self, gang: Gang) -> Vote:
        return Vote.ABSTAIN

    def job_starving(self, gang: Gang) -> bool:
        return False

    # Admission: flag jobEnqueued

    def job_enqueueable(self, gang: Gang) -> Vote | Refusal:
        """A refusal is a vote against, with its words."""
        return Vote.ABSTAIN

    def job_enqueued(self, gang: Gang) -> None:
        """Every plugin agreed: the gang is in."""

    def count_enqueueable(self, rows: Rows) -> int:
        """How many of the first of these podgroups, all of one queue, it does not vote against, if
        each is in before the next one is asked.

        Who overrides `job_enqueueable` may leave this as it is: then they are asked one by one.
        """
        return 0

    def jobs_enqueued(self, rows: Rows) -> None:
        """`job_enqueued` for many podgroups of one queue, in this order."""
        for row in rows.tolist():
            self.job_enqueued(self.session.gang(row))

    # Queues: flags overused, allocatable, preemptive

    def overused(self, queue: int) -> bool:
        return False

    def allocatable(self, queue: int, pod_class: int, wanted: int) -> int:
        """How many of `wanted` pods of this class the queue may still have."""
        return wanted

    def preemptive(self, queue: int, pod_class: int) -> bool:
        """May this queue reclaim for one more pod of this class?"""
        return True

    def full_levels(self, queue: int, pod_class: int) -> list[int]:
        """Ancestors that have no room for one more pod of this class: reclaim must take victims
        from below them.
        """
        return []

    def quotas(self) -> Quotas | None:
        """The figures of the queues, if this plugin computes them."""
        return None

    # Nodes: flags predicate, nodeOrder

    def suitable(self, pod_class: int) -> Mask | None:
        """Nodes that this class may ever run on."""
        return None

    def static_score(self, pod_class: int) -> Scores | None:
        """A score per node that does not change during the session."""
        return None

    def score(self, pod_class: int, used: Amounts, nodes: Rows) -> Scores | None:
        """A score for each of these nodes, given what is used on it: resources by nodes."""
        return None

    # Victims: flags preemptable, reclaimable. Asked one by one, on the sums as they are after the
    # victims taken so far.

    def may_preempt(self, taker: Gang, pod_class: int, victim: Gang, victim_class: int) -> bool:
        return True

    def may_preempt_each(
        self, taker: Gang, pod_class: int, victims: Rows, victim_classes: Rows
    ) -> Mask:
        """The same for many podgroups, and of each a pod of the class beside it.

        It must not say anything else than `may_preempt` does: override it where arrays are faster.
        """
        pairs = zip(victims.tolist(), victim_classes.tolist(), strict=True)
        found = [
            self.may_preempt(taker, pod_class, self.session.gang(row), victim_class)
            for row, victim_class in pairs
        ]
        return np.array(found, dtype=np.bool_)

    def may_reclaim(self, taker: Gang, pod_class: int, victim: Gang, victim_class: int) -> bool:
        return True

    def may_reclaim_each(
        self, taker: Gang, pod_class: int, victims: Rows, victim_classes: Rows
    ) -> Mask:
        """The same for many podgroups, as `may_preempt_each` is for preemption."""
        pairs = zip(victims.tolist(), victim_classes.tolist(), strict=True)
        found = [
            self.may_reclaim(taker, pod_class, self.session.gang(row), victim_class)
            for row, victim_class in pairs
        ]
        return np.array(found, dtype=np.bool_)

    # About queues, many at once: flag reclaimable. Asked of every queue that runs something, for
    # each gang that reclaims.

    def may_take_from(
        self,
        queue: int,
        pod_class: int,
        victim_queues: Rows,
        victim_classes: Rows,
        count: int = 1,
    ) -> Mask:
        """May a queue reclaim, for a pod of class `pod_class`, a pod of each class from the queue
        beside it? With `count` so many of them, one after the other.
        """
        return np.ones(len(victim_classes), dtype=np.bool_)

    def has_too_much(self, queues: Rows) -> Mask:
        """Which of these queues have anything at all that reclaim could take."""
        return np.ones(len(queues), dtype=np.bool_)

    def keeps_deserved(
        self, queues: Rows, pod_classes: Rows, reclaimer_class: int, count: int = 1
    ) -> Mask:
        """Whether each queue still has what it deserves when `count` pods of the class beside it
        are gone; preferred victims do.
        """
        return np.ones(len(pod_classes), dtype=np.bool_)

    # Idle room: asked of the first queue plugin

    def borrowable(self, queue: int, pod_class: int, wanted: int) -> int:
        """How many of `wanted` pods of this class the queue may have of idle room beyond its
        deserved, in backfill.
        """
        return 0

    def close(self) -> None:
        """Called after the last action."""
