"""Capacity: each queue deserves what it is given, may borrow up to its real capability, and takes
its own back by reclaim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.tables import Rows
from scheduler.engine.arguments import boolean, choice, number
from scheduler.engine.plugin import Key, Plugin
from scheduler.engine.plugins.capacity_tree import HierarchyBuilder, TreeFigures
from scheduler.engine.plugins.shares import SharePlugin
from scheduler.engine.refusals import Refusal
from scheduler.engine.session import Session
from scheduler.engine.state.queue_quotas import Quotas, beyond_guarantees
from scheduler.engine.state.reserved_guarantees import ReservedGuarantees

# Who submits to a queue need not see the others: only queues above it are named to them.
_ELSEWHERE = Refusal(ReasonCode.HIERARCHY_INVALID, "a queue elsewhere in it breaks a rule")


class Capacity(SharePlugin):
    """Arguments: `hierarchyViolation`, `ancestorReclaimLevel`, `fillByWeight`, `admission`,
    `reserveGuarantees`.

    `enableHierarchy` makes the queues a tree.
    """

    name = "capacity"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        super().__init__(arguments)
        self.on_violation = choice(arguments, "hierarchyViolation", ("subtree", "session", "warn"))
        self.reclaim_level = max(0, number(arguments, "ancestorReclaimLevel", 0))
        # What levels above have counts too then, and that also rises.
        self.only_tightens = not self.reclaim_level  # type: ignore[misc]
        self.fill_by_weight = boolean(arguments, "fillByWeight", False)
        self.reserves_guarantees = boolean(arguments, "reserveGuarantees", False)
        self.admits_all_that_can_run = (
            choice(arguments, "admission", ("room", "possible")) == "possible"
        )

    def open(self, session: Session) -> None:
        Plugin.open(self, session)
        self.figures = self._tree() if session.queue_tree.hierarchical else self._flat()
        if self.reserves_guarantees and session.queue_tree.hierarchical:
            self.figures.reserved = ReservedGuarantees(session, self.figures)

    def _flat(self) -> Quotas:
        session = self.session
        specs = self.session.specs
        guarantee = self.session.specs.guarantee
        limit = np.minimum(
            specs.capability, beyond_guarantees(session.total, guarantee) + guarantee
        )
        deserved = np.maximum(np.minimum(specs.deserved, limit), guarantee)
        return Quotas(
            session.queue_usage,
            deserved,
            specs.owns,
            guarantee,
            limit,
            session.total,
            unset_share=1.0,
        )

    def _tree(self) -> Quotas:
        session = self.session
        figures = self._tree_figures()
        for row, text in figures.warnings:
            session.queue_warnings[row].append(text)
        self._refuse(figures.violations)
        return Quotas(
            session.queue_usage,
            figures.deserved,
            figures.owns,
            figures.guarantee,
            figures.limit,
            session.total,
            unset_share=1.0,
        )

    def _tree_figures(self) -> TreeFigures:
        """Those of the last session, if queues and cluster are the same, with what has to be
        divided anew.
        """
        kept = self.session.snapshot.found_of_queues
        key = ("capacity", self.fill_by_weight)
        total = self.session.total.tolist()
        if key in kept and kept[key][0] == total:
            last: TreeFigures = kept[key][1]
            figures = last.divided_anew(self.session.queue_tree, self.session.queue_usage.request)
        else:
            figures = HierarchyBuilder(self.session, fill_by_weight=self.fill_by_weight).build()
        kept[key] = (total, figures)
        return figures

    def _refuse(self, violations: Mapping[int, str]) -> None:
        """What is wrong with the tree is told everywhere, and stops the subtree, the session or
        nobody, as the policy says.
        """
        session = self.session
        for row, problem in sorted(violations.items()):
            text = f"queue {session.queue_tree.names[row]}: {problem}"
            session.warnings.append(text)
            session.queue_warnings[row].append(text)
        stopping = {
            row: problem for row, problem in violations.items() if row != session.queue_tree.root
        }
        if self.on_violation == "warn":
            stopping = {
                row: problem
                for row, problem in stopping.items()
                if row in session.queue_tree.broken
            }
        for row, problem in sorted(stopping.items()):
            below = (
                range(len(session.queue_tree))
                if self.on_violation == "session"
                else session.queue_tree.subtree(row)
            )
            own = set(session.queue_tree.subtree(row))
            named = Refusal(
                ReasonCode.HIERARCHY_INVALID, f"queue {session.queue_tree.names[row]}: {problem}"
            )
            for member in below:
                session.refused_queues.setdefault(member, named if member in own else _ELSEWHERE)

    def queue_key(self, queue: int) -> Key:
        """Higher priority, then the lower share; on equal shares a queue that deserves something
        first, then the lower burden.
        """
        if self.figures.deserves_something(queue):
            return (*super().queue_key(queue), 0.0, 0.0)
        return (*super().queue_key(queue), 1.0, self._burden(queue))

    def _burden(self, queue: int) -> float:
        """Of a queue that deserves nothing. Where weights count, such queues still take turns by
        them: the largest part of the cluster held, by weight.
        """
        if not self.fill_by_weight:
            return 0.0
        used = self.session.queue_usage.allocated[queue].tolist()
        total = self.session.total.tolist()
        part = max(
            (
                used[dim] / whole
                for dim, whole in enumerate(total)
                if whole > 0 and self.session.queue_usage.dims[dim]
            ),
            default=0.0,
        )
        return part / max(1, int(self.session.specs.weights[queue]))

    def allocatable(self, queue: int, pod_class: int, wanted: int) -> int:
        path = self.session.queue_tree.path_list(queue)
        asked = self.session.asked(pod_class)
        wanted = self.figures.copies_within(self.figures.limit_rows, path, asked, wanted)
        if self.figures.reserved is None or wanted <= 0:
            return wanted
        return self.figures.reserved.copies_beside(queue, asked, wanted)

    def preemptive(self, queue: int, pod_class: int) -> bool:
        """It stays within its own real capability, and within deserved in at least one resource; so
        may an ancestor, if near enough.
        """
        figures = self.figures
        asked = self.session.asked(pod_class)
        if not figures.copies_within(figures.limit_rows, [queue], asked, 1):
            return False
        near = [
            row
            for row in self.session.queue_tree.ancestors(queue)[: self.reclaim_level]
            if row != self.session.queue_tree.root
        ]
        return any(self._deserves_one_more(row, asked) for row in [queue, *near])

    def _deserves_one_more(self, row: int, asked: Sequence[tuple[int, int]]) -> bool:
        allocated = self.session.queue_usage.allocated[row].tolist()
        deserved = self.figures.deserved_rows[row]
        return any(allocated[dim] + amount <= deserved[dim] for dim, amount in asked)

    def full_levels(self, queue: int, pod_class: int) -> list[int]:
        """Plain numbers: asked for each pod that takes the place of another."""
        asked = self.session.asked(pod_class)
        allocated = self.session.queue_usage.allocated
        full: list[int] = []
        for row in self.session.queue_tree.ancestors(queue):
            used = allocated[row].tolist()
            limit = self.figures.limit_rows[row]
            if any(used[dim] + amount > limit[dim] for dim, amount in asked):
                full.append(row)
        return full

    def may_take_from(
        self,
        queue: int,
        pod_class: int,
        victim_queues: Rows,
        victim_classes: Rows,
        count: int = 1,
    ) -> Mask:
        """The victim frees something that is asked for, its queue keeps its guarantee and has more
        than it deserves, or no claim.
        """
        if len(victim_queues) == 1 and not self.reclaim_level:
            victim = (int(victim_queues[0]), int(victim_classes[0]))
            return np.array([self._may_take_one(pod_class, *victim, count)])
        request = self.session.request
        asked = (request[victim_classes] > 0) & self.session.queue_usage.dims
        may_go: Mask = (asked & (request[pod_class] > 0)).any(axis=1) & self.keeps_guarantee(
            victim_queues, victim_classes, count
        )
        gone_before = request[victim_classes] * (count - 1)
        no_claim = self._has_no_claim(victim_queues, asked)
        may_go &= no_claim | self._is_above(victim_queues, asked, gone_before)
        for pair in np.flatnonzero(may_go).tolist() if self.reclaim_level else ():
            may_go[pair] = self._near_ones_agree(
                queue, pod_class, int(victim_queues[pair]), asked[pair], bool(no_claim[pair])
            )
        return may_go

    def _may_take_one(
        self, pod_class: int, victim_queue: int, victim_class: int, count: int
    ) -> bool:
        """The same for one queue, in plain numbers: asked for each gang that reclaims."""
        wanted = {dim for dim, _ in self.session.asked(pod_class)}
        asked = self.session.asked(victim_class)
        if not any(dim in wanted for dim, _ in asked):
            return False
        if not self._keeps_guarantee(victim_queue, victim_class, count):
            return False
        deserved = self.figures.deserved_rows[victim_queue]
        if not any(deserved[dim] > 0 for dim, _ in asked):
            return True
        allocated = self.session.queue_usage.allocated[victim_queue].tolist()
        owned = self.figures.owned_rows[victim_queue]
        return any(
            owned[dim] and allocated[dim] - amount * (count - 1) > deserved[dim]
            for dim, amount in asked
        )

    def _near_ones_agree(
        self, queue: int, pod_class: int, victim_queue: int, asked: Mask, has_no_claim: bool
    ) -> bool:
        """With a reclaim level: neither is the victim's queue spared as a neighbour, nor is an
        ancestor of it in the way.
        """
        if has_no_claim and self._spares_neighbour(queue, victim_queue, pod_class):
            return False
        return self._ancestors_agree(queue, victim_queue, asked)

    def _has_no_claim(self, rows: Rows | int, asked: Mask) -> Mask:
        """The queue deserves nothing of what the victim uses: the victim may go at once."""
        claims: Mask = np.any(asked & (self.figures.deserved[rows] > 0), axis=-1)
        return ~claims

    def _is_above(self, rows: Rows | int, asked: Mask, gone: Amounts | int = 0) -> Mask:
        """It has more than it deserves of something that is asked, also when this is gone."""
        above = (
            (self.session.queue_usage.allocated[rows] - gone > self.figures.deserved[rows])
            & asked
            & self.figures.owns[rows]
        )
        found: Mask = np.any(above, axis=-1)
        return found

    def _spares_neighbour(self, reclaimer: int, victim: int, pod_class: int) -> bool:
        """A queue without a claim is spared by a neighbour that has none either."""
        near, others = (
            set(self.session.queue_tree.ancestors(queue)[: self.reclaim_level])
            for queue in (reclaimer, victim)
        )
        shared = (near & others) - {self.session.queue_tree.root}
        return bool(shared) and bool(
            self._has_no_claim(
                reclaimer, (self.session.request[pod_class] > 0) & self.session.queue_usage.dims
            )
        )

    def _ancestors_agree(self, reclaimer: int, victim: int, asked: Mask) -> bool:
        """Each ancestor of the victim up to the reclaim level must be above its deserved too,
        unless both share it.
        """
        queue_tree = self.session.queue_tree
        ours = queue_tree.ancestors(reclaimer)
        theirs = queue_tree.ancestors(victim)
        for distance in range(min(self.reclaim_level, len(theirs))):
            row = theirs[distance]
            if row == queue_tree.root or ours[distance : distance + 1] == [row]:
                continue
            if not self._has_no_claim(row, asked) and not self._is_above(row, asked):
                return False
        return True

    def lent(self, row: int, queue: int) -> Amounts:
        lent: Amounts = self._lent[row] - self._lent[queue]
        return lent

    @cached_property
    def _lent(self) -> Amounts:
        """By queue, what the leaves from it down use beyond their own and reclaim may take;
        enqueueing does not change it.
        """
        session = self.session
        figures = self.figures
        if not session.has_action("reclaim"):
            return np.zeros_like(figures.deserved)
        beyond = np.maximum(
            0, session.queue_usage.allocated - np.maximum(figures.deserved, figures.guarantee)
        )
        lent: Amounts = np.where(session.losing_leaves[:, None], beyond, 0)
        session.queue_tree.add_up(lent)
        return lent
