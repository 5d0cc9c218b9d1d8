"""May these queues be created, changed and deleted together?

The rules judge the tree as it would be afterwards. A step in between may break a sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.admission.facts import Facts
from scheduler.admission.rules.queue_deletion import PROTECTED
from scheduler.admission.rules.queue_place import check_busy_parent
from scheduler.admission.rules.queues import check_queue
from scheduler.admission.violations import Verdict, Violation
from scheduler.domain.plans import listed
from scheduler.domain.queues import ROOT, QueueSpec, QueueTree

MOST_BROKEN: Final = 100
"""Nobody reads more at once. In a ring or a chain of thousands, each queue is judged by all."""


@dataclass(frozen=True, slots=True)
class QueueChanges:
    """The queues that are made or changed, as they are to be, and the names of those that go."""

    wanted: Sequence[QueueSpec] = ()
    gone: Sequence[str] = ()

    def tree_after(self, tree: QueueTree) -> QueueTree:
        for spec in self.wanted:
            tree = tree.with_queue(spec)
        for name in self.gone:
            if name in tree:
                tree = tree.without(name)
        return tree


def check_changes(changes: QueueChanges, tree: QueueTree, facts: Facts) -> dict[str, Verdict]:
    """The verdict on each queue of the set, by name. It ends with `MOST_BROKEN` that are refused.

    Requested states are left to the commands that they become.
    """
    after = changes.tree_after(tree)
    verdicts: dict[str, Verdict] = {}
    broken = 0
    for spec in changes.wanted:
        verdict = verdicts[spec.name] = _verdict_on(spec, tree, after, facts)
        broken += bool(verdict.violations)
        if broken == MOST_BROKEN:
            return verdicts
    for name in changes.gone:
        verdicts[name] = Verdict(tuple(_deletion_violations(name, after)))
    return verdicts


def _verdict_on(spec: QueueSpec, tree: QueueTree, after: QueueTree, facts: Facts) -> Verdict:
    old = tree.queues.get(spec.name)
    around = after
    if old is None:
        around = after.without(spec.name)  # it is new: its name is not taken
    verdict = check_queue(spec, around, facts, old=old)
    moves = old is None or (spec.parent or ROOT) != (old.parent or ROOT)
    told = {violation.rule_id for violation in verdict.violations}
    if not moves or _BUSY in told or (spec.parent or ROOT) not in tree:
        return verdict
    # others of the set that move to the same parent are no children that it had before
    return verdict + Verdict(tuple(check_busy_parent(spec, tree, facts)))


_BUSY = "parent_has_allocated_pods"


def _deletion_violations(name: str, after: QueueTree) -> Iterator[Violation]:
    """What the tree says against it. Work in it is looked for when it is deleted."""
    if name in PROTECTED:
        message = f"{name} cannot be deleted."
        yield Violation("protected_queue", name, "metadata.name", message)
        return
    children = [child.name for child in after.children(name)]
    if children:
        message = f"{name} is deleted, but {listed(children)} would still be below it."
        fix = "delete or move them in the same change set"
        yield Violation("has_children", name, "metadata.name", message, fix)
