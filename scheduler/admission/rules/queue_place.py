"""May a queue have this place in the tree?"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.admission.facts import Facts
from scheduler.admission.violations import (
    Violation,
)
from scheduler.domain.plans import counted
from scheduler.domain.queues import ROOT, QueueSpec, QueueTree


def check_place(proposed: QueueSpec, tree: QueueTree, facts: Facts) -> Iterator[Violation]:
    """The new parent must exist and must have no work of its own.

    It must not be the queue itself or one below it, and not be too deep.
    """
    parent = proposed.parent or ROOT
    if parent == proposed.name:
        message = f"{proposed.name} cannot be its own parent."
        yield Violation(
            "self_parent",
            proposed.name,
            "spec.parent",
            message,
            "name another queue, or leave it out for root",
        )
        return
    if proposed.name in tree:
        below = set()
        for queue in tree.descendants(proposed.name):
            below.add(queue.name)
    else:
        below = set()
    if parent in below:
        message = (
            f"{proposed.name} cannot be put below {parent}, which is below {proposed.name} "
            "itself: the tree would be a ring."
        )
        yield Violation(
            "parent_cycle", proposed.name, "spec.parent", message, f"move {parent} away first"
        )
        return
    yield from _check_way_up(proposed, tree)
    yield from _check_depth(proposed, tree, facts)
    yield from check_busy_parent(proposed, tree, facts)


def _check_way_up(proposed: QueueSpec, tree: QueueTree) -> Iterator[Violation]:
    placed = tree.with_queue(proposed)
    path = [proposed.name, *placed.ancestors(proposed.name)]
    missing = placed.parent_of(path[-1])
    # root is always there, even before its row is
    if missing and missing not in placed and missing != ROOT:
        if len(path) == 1:
            whose = "its parent"
        else:
            whose = f"the parent of {path[-1]}"
        message = f"{proposed.name} cannot be put there: {missing}, {whose}, does not exist."
        yield Violation(
            "parent_not_found",
            proposed.name,
            "spec.parent",
            message,
            f"create {missing} first, or name another queue",
        )
    elif missing and missing in path:
        message = (
            f"{proposed.name} cannot be put there: {missing} and the queues above it form a ring."
        )
        yield Violation(
            "parent_cycle",
            proposed.name,
            "spec.parent",
            message,
            f"give {missing} another parent first",
        )


def _check_depth(proposed: QueueSpec, tree: QueueTree, facts: Facts) -> Iterator[Violation]:
    """A child of root has depth 1. The whole moved subtree counts."""
    placed = tree.with_queue(proposed)
    own = _levels_up(placed, proposed.name)
    height = placed.height(proposed.name)
    if own + height > facts.max_depth:
        if height:
            with_below = f" and reach {own + height} with what is below it"
        else:
            with_below = ""
        message = (
            f"{proposed.name} would be {own} levels below root{with_below}; {facts.max_depth} are "
            "allowed."
        )
        yield Violation(
            "max_depth_exceeded",
            proposed.name,
            "spec.parent",
            message,
            "choose a parent nearer to root",
        )


def _levels_up(tree: QueueTree, name: str) -> int:
    return sum(ancestor != ROOT for ancestor in tree.ancestors(name)) + 1


def check_busy_parent(proposed: QueueSpec, tree: QueueTree, facts: Facts) -> Iterator[Violation]:
    """The new parent must have no work of its own. `tree` may be one without the move."""
    parent = proposed.parent or ROOT
    if parent == ROOT:
        return
    live = facts.live_podgroups.get(parent, 0)
    is_leaf = not any(child.name != proposed.name for child in tree.children(parent))
    if is_leaf:
        pods = facts.allocated_pods.get(parent, 0)
    else:
        pods = 0
    if not live and not pods:
        return
    parts = []
    if live == 1:
        parts += ["1 podgroup of its own that is not Completed"]
    elif live:
        parts += [f"{counted(live, 'podgroup')} of its own that are not Completed"]
    if pods:
        parts += [counted(pods, "allocated pod")]
    message = (
        f"{proposed.name} cannot be put below {parent}, which has {' and '.join(parts)}: only a "
        "queue without work can get children."
    )
    yield Violation(
        "parent_has_allocated_pods",
        proposed.name,
        "spec.parent",
        message,
        f"close {parent} and let it drain, or name another",
    )
