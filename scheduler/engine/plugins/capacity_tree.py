"""The figures of a queue tree under capacity, from root down, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Rows
from scheduler.engine.fair_share import fill_each, int_sum
from scheduler.engine.session import Session
from scheduler.engine.state.queue_quotas import beyond_guarantees
from scheduler.engine.state.queue_specs import NO_LIMIT
from scheduler.engine.state.queue_tree import SessionQueueTree


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Children of one queue that divide what their siblings leave of its deserved by weight."""

    parent: int
    rows: Rows
    weights: Amounts
    floors: Amounts
    taken: Amounts  # by those siblings

    def divide(self, deserved: Amounts, ceilings: Amounts) -> None:
        """Writes what each of them deserves, between its floor and its ceiling."""
        left = np.maximum(0, deserved[self.parent] - self.taken)
        deserved[self.rows] = fill_each(left, self.weights, self.floors, ceilings)


@dataclass(frozen=True, slots=True, eq=False)
class TreeFigures:
    """Queues by resources. `violations` break a rule; `warnings` are for operators alone.

    What the `families` deserve depends on what each queue asks for, within its limit: that is its
    ceiling. Everything else follows from the queues and the cluster.
    """

    deserved: Amounts
    owns: Mask
    guarantee: Amounts
    limit: Amounts
    violations: Mapping[int, str]
    warnings: Sequence[tuple[int, str]]
    families: Sequence[Family]  # parents before their children
    ceilings: Amounts

    def divided_anew(self, queue_tree: SessionQueueTree, request: Amounts) -> TreeFigures:
        """The same where queues ask for this: only families are divided of which a child asks for
        something else, or whose parent deserves something else.
        """
        ceilings = np.minimum(request, self.limit)
        others = np.flatnonzero((ceilings != self.ceilings).any(axis=1)).tolist()
        if not others:
            return self
        concerned = {queue_tree.parent[row] for row in others}
        deserved = self.deserved.copy()
        for family in self.families:
            if family.parent not in concerned:
                continue
            before = deserved[family.rows]
            family.divide(deserved, ceilings[family.rows])
            moved = (deserved[family.rows] != before).any(axis=1)
            concerned.update(family.rows[moved].tolist())
        return replace(self, deserved=deserved, ceilings=ceilings)


class HierarchyBuilder:
    """Root is what the cluster has; below it each queue has what its spec says, within what its
    parent has.
    """

    def __init__(self, session: Session, *, fill_by_weight: bool) -> None:
        self.session = session
        self.queue_tree = session.queue_tree
        self.fill_by_weight = fill_by_weight
        specs = session.specs
        self.specs = [queue.spec for queue in session.queue_tree.queues]
        self.weights = specs.weights
        self.guarantee = specs.guarantee.copy()
        self.named_capability = specs.capability
        self.capability = self.named_capability.copy()
        self.deserved = np.maximum(specs.deserved, self.guarantee)
        self.owns = specs.owns.copy()
        self.wished = (
            self.named_capability.copy()
        )  # as far as named by the queue or an ancestor other than root
        self.wished[self.queue_tree.root] = NO_LIMIT
        self.limit = np.zeros_like(self.capability)
        self.filled: set[int] = set()  # queues whose deserved was divided by weight
        self.families: list[Family] = []
        self.violations: dict[int, str] = dict(self.queue_tree.broken)
        self.warnings: list[tuple[int, str]] = []

    def build(self) -> TreeFigures:
        self._root()
        for row in self.queue_tree.top_down:
            if self.queue_tree.children[row]:
                self._children(row, self.queue_tree.children[row])
        return TreeFigures(
            deserved=self.deserved,
            owns=self.owns,
            guarantee=self.guarantee,
            limit=self.limit,
            violations=self.violations,
            warnings=self.warnings,
            families=self.families,
            ceilings=np.minimum(self.session.queue_usage.request, self.limit),
        )

    def _root(self) -> None:
        """Root has all that the cluster has, and no more than its capability, if it names one."""
        root = self.queue_tree.root
        total = self.session.total
        self.capability[root] = np.minimum(self.named_capability[root], total)
        self.limit[root] = self.capability[root]
        self.deserved[root] = total
        self.owns[root] = total > 0
        self.guarantee[root] = [
            min(int_sum(self.guarantee[self.queue_tree.children[root], dim]), NO_LIMIT)
            for dim in range(len(total))
        ]

    def _children(self, parent: int, children: list[int]) -> None:
        rows = np.array(children, dtype=np.intp)
        inherited = self.capability[rows] == NO_LIMIT
        self.capability[rows] = np.where(inherited, self.capability[parent], self.capability[rows])
        beyond = beyond_guarantees(self.limit[parent], self.guarantee[rows])
        self.limit[rows] = np.minimum(self.capability[rows], beyond + self.guarantee[rows])
        silent = [row for row in children if not self.specs[row].deserved]
        if self.fill_by_weight and silent:
            self._fill(parent, children, np.array(silent, dtype=np.intp))
        self._check(parent, children)

    def _fill(self, parent: int, children: list[int], rows: Rows) -> None:
        """Children that name no deserved divide what the others leave of the parent's, by weight,
        by what each asks for and may have.
        """
        named = [row for row in children if self.specs[row].deserved]
        taken = self._sum(self.deserved, named)
        family = Family(parent, rows, self.weights[rows], self.guarantee[rows], taken)
        self.families.append(family)
        ceilings = np.minimum(self.session.queue_usage.request[rows], self.limit[rows])
        family.divide(self.deserved, ceilings)
        self.owns[rows] = self.session.queue_usage.dims & (self.session.total > 0)
        self.filled.update(rows.tolist())

    def _check(self, parent: int, children: list[int]) -> None:
        """Three rules of the hierarchy design (docs/origins.md).

        Against root, which is the cluster, a breach only warns.
        """
        self._check_capability(parent, np.array(children, dtype=np.intp))
        own = self.session.total if parent == self.queue_tree.root else self.guarantee[parent]
        if self.guarantee[children].any():
            self._compare(
                parent,
                parent,
                self._sum(self.guarantee, children),
                own,
                "the guarantees of its children exceed its own",
            )
        named = [row for row in children if row not in self.filled]
        if parent not in self.filled and named:
            claims = self._sum(self.deserved, named)
            self._compare(
                parent,
                parent,
                claims,
                self.deserved[parent],
                "its children deserve more than its own",
            )

    def _check_capability(self, parent: int, children: Rows) -> None:
        """What each child names itself, against what an ancestor below root names, and against the
        cluster.
        """
        self.wished[children] = np.where(
            self.wished[children] == NO_LIMIT, self.wished[parent], self.wished[children]
        )
        named = np.where(
            self.named_capability[children] == NO_LIMIT, 0, self.named_capability[children]
        )
        over = (named > self.wished[parent]) | (named > self.session.total)
        for position in np.flatnonzero(over.any(axis=1)).tolist():
            child = int(children[position])
            self._compare(
                child,
                parent,
                named[position],
                self.wished[parent],
                "its capability exceeds its parent's",
            )
            self._compare(
                child,
                self.queue_tree.root,
                named[position],
                self.session.total,
                "its capability exceeds the cluster's",
            )

    def _sum(self, amounts: Amounts, rows: list[int]) -> Amounts:
        sums = [min(int_sum(amounts[rows, dim]), NO_LIMIT) for dim in range(amounts.shape[1])]
        return np.array(sums, dtype=np.int64)

    def _compare(
        self, offender: int, against: int, amounts: Amounts, limit: Amounts, problem: str
    ) -> None:
        over = np.flatnonzero(amounts > limit)
        if not len(over):
            return
        text = f"{problem} {', '.join(self.session.snapshot.resources[dim] for dim in over)}"
        if against == self.queue_tree.root:
            self.warnings.append((offender, f"queue {self.queue_tree.names[offender]}: {text}"))
        else:
            self.violations.setdefault(offender, text)
