"""Capability, deserved and guarantee in the tree.

The rules compare what children may have with their parent, and all of it with the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from scheduler.admission.facts import Facts
from scheduler.admission.violations import Notice, Remedy, Violation
from scheduler.domain.queues import ROOT, QueueSpec, QueueTree
from scheduler.domain.resources import Resources, Sum, format_quantity

_Amounts = Callable[[QueueSpec], Resources]

_SHARED: tuple[tuple[str, str, str, _Amounts], ...] = (
    (
        "guarantee",
        "spec.guarantee.resource",
        "children_guarantee_exceeds_parent",
        lambda queue: queue.guarantee,
    ),
    ("deserved", "spec.deserved", "children_deserved_exceeds_parent", lambda queue: queue.deserved),
)
_SIBLINGS_SHOWN = 6


def check_quotas(
    proposed: QueueSpec,
    tree: QueueTree,
    *,
    moves: bool = True,
) -> Iterator[Violation]:
    """The queue against those above it, beside it and below it.

    Root is exempt: what it has is what the cluster has.

    A queue that would lie below itself has nobody above it to be compared with; that it may not is
    another rule.
    """
    placed = tree.with_queue(proposed)
    if not placed.lies_below_itself(proposed.name):
        yield from _check_above(proposed, placed, moves)
    yield from check_children(proposed, placed)


def _check_above(proposed: QueueSpec, placed: QueueTree, moves: bool) -> Iterator[Violation]:
    yield from check_capability_above(proposed, placed)
    if moves:
        yield from _check_what_moves_along(proposed, placed)
    parent = placed.parent_of(proposed.name)
    if parent in placed and parent != ROOT:
        yield from _check_sums(placed[parent], placed, proposed)


def _check_what_moves_along(proposed: QueueSpec, placed: QueueTree) -> Iterator[Violation]:
    """A queue that sets no limit lets those below it have theirs.

    Where it goes, they must fit as well.
    """
    above = []
    for name in placed.ancestors(proposed.name):
        if name != ROOT:
            above.append(placed[name])
    limited: set[str] = set()
    for queue in above:
        limited.update(queue.capability)
    for resource in sorted(limited - set(proposed.capability)):
        limiting = next(queue for queue in above if resource in queue.capability)
        highest, holder = _highest_below(proposed.name, resource, placed)
        if highest > limiting.capability[resource]:
            asked = format_quantity(resource, highest)
            limit = format_quantity(resource, limiting.capability[resource])
            message = (
                f"capability {resource} {asked} of {holder}, which comes with {proposed.name}, is "
                f"more than the {limit} of {limiting.name}."
            )
            fix = (
                f"lower capability {resource} of {holder} to {limit}, or raise that of "
                f"{limiting.name} to {asked}"
            )
            yield Violation(
                "capability_exceeds_ancestor", proposed.name, "spec.parent", message, fix
            )


def check_children(proposed: QueueSpec, tree: QueueTree) -> Iterator[Violation]:
    """Compare what the children have together with the queue itself.

    The same for what any queue below may reach.
    """
    # a queue is not compared with itself; another rule forbids that
    if tree.parent_of(proposed.name) == proposed.name:
        tree = tree.with_queue(replace(proposed, parent=ROOT))
    if tree.children(proposed.name):
        yield from _check_capability_below(proposed, tree)
        yield from _check_sums(proposed, tree, proposed)


def check_capability_above(proposed: QueueSpec, tree: QueueTree) -> Iterator[Violation]:
    """For each resource the nearest ancestor that limits it counts."""
    above = []
    for name in tree.ancestors(proposed.name):
        if name != ROOT:
            above.append(tree[name])
    for resource, amount in proposed.capability.items():
        limiting = next((queue for queue in above if resource in queue.capability), None)
        if limiting and amount > limiting.capability[resource]:
            asked = format_quantity(resource, amount)
            limit = format_quantity(resource, limiting.capability[resource])
            message = (
                f"capability {resource} {asked} of {proposed.name} is more than the {limit} of "
                f"{limiting.name} above it."
            )
            fix = (
                f"lower capability {resource} of {proposed.name} to {limit}, or raise that of "
                f"{limiting.name} to {asked}"
            )
            yield _of_capability(
                "capability_exceeds_ancestor", proposed.name, resource, message, fix, limit
            )


def _of_capability(
    rule_id: str,
    queue: str,
    resource: str,
    message: str,
    fix: str,
    wanted: str,
) -> Violation:
    field = f"spec.capability.{resource}"
    return Violation(rule_id, queue, field, message, fix, (Remedy(field, wanted),))


def _check_capability_below(proposed: QueueSpec, tree: QueueTree) -> Iterator[Violation]:
    for resource, amount in proposed.capability.items():
        highest, holder = _highest_below(proposed.name, resource, tree)
        if highest > amount:
            asked = format_quantity(resource, highest)
            limit = format_quantity(resource, amount)
            message = (
                f"capability {resource} {limit} of {proposed.name} is less than the {asked} of "
                f"{holder} below it."
            )
            fix = (
                f"raise capability {resource} of {proposed.name} to {asked}, or lower that of "
                f"{holder} to {limit}"
            )
            yield _of_capability(
                "capability_below_descendant", proposed.name, resource, message, fix, asked
            )


def _highest_below(name: str, resource: str, tree: QueueTree) -> tuple[int, str]:
    """The highest capability below and who has it.

    A queue that sets the resource speaks for all below it.
    """
    highest = -1
    holder = ""
    waiting = list(tree.children(name))
    seen = {name}
    while waiting:
        queue = waiting.pop()
        if queue.name in seen:
            continue
        seen.add(queue.name)
        if resource not in queue.capability:
            waiting.extend(tree.children(queue.name))
        elif queue.capability[resource] > highest:
            highest = queue.capability[resource]
            holder = queue.name
    return highest, holder


def _check_sums(parent: QueueSpec, tree: QueueTree, subject: QueueSpec) -> Iterator[Violation]:
    """What the children have together is at most what the parent has.

    What the parent does not name counts as none.
    """
    for what, path, rule_id, amounts in _SHARED:
        together = _children_together(tree, parent.name, what)
        has = amounts(parent)
        for resource, amount in together.items():
            if amount > has.amount(resource):
                shares = {}
                for child in tree.children(parent.name):
                    shares[child.name] = amounts(child)
                too_many = _overshoot_message(
                    what,
                    resource,
                    f"{parent.name} has",
                    amount,
                    has.amount(resource),
                )
                message = f"{too_many}: {_largest_shares(resource, shares)}."
                wanted = _sum_remedy(
                    resource,
                    parent,
                    subject,
                    shares,
                    amount - has.amount(resource),
                    amount,
                )
                fix = _sum_fix(
                    what,
                    resource,
                    parent,
                    subject,
                    shares,
                    amount - has.amount(resource),
                    amount,
                )
                remedies: tuple[Remedy, ...] = ()
                if wanted is not None:
                    remedies = (Remedy(f"{path}.{resource}", format_quantity(resource, wanted)),)
                yield Violation(rule_id, subject.name, f"{path}.{resource}", message, fix, remedies)


def _children_together(tree: QueueTree, parent: str, what: str) -> Resources:
    children: Sum = getattr(tree.children_together(parent), what)
    return children.resources()


def _overshoot_message(what: str, resource: str, whose: str, amount: int, limit: int) -> str:
    """ "The children's deserved cpu is 5 together, p has 4, 1 too many"."""
    figures = []
    for number in (amount, limit, amount - limit):
        figures.append(format_quantity(resource, number))
    return (
        f"The children's {what} {resource} is {figures[0]} together, {whose} {figures[1]}, "
        f"{figures[2]} too many"
    )


def _largest_shares(resource: str, shares: Mapping[str, Resources]) -> str:
    """ "c1 3, c2 2 and 4 more"."""
    largest = []
    for name, share in shares.items():
        if share.amount(resource):
            largest.append((share.amount(resource), name))
    largest.sort(reverse=True)
    parts = []
    for part, name in largest[:_SIBLINGS_SHOWN]:
        parts.append(f"{name} {format_quantity(resource, part)}")
    rows = ", ".join(parts)
    more = len(largest) - _SIBLINGS_SHOWN
    if more > 0:
        return f"{rows} and {more} more"
    return rows


def _sum_remedy(
    resource: str,
    parent: QueueSpec,
    subject: QueueSpec,
    shares: Mapping[str, Resources],
    over: int,
    amount: int,
) -> int | None:
    """The amount that would make the sum fit.

    For the parent it is as much as its children have, for a child what the others leave.
    """
    if subject.name == parent.name:
        return amount
    if subject.name in shares:
        own = shares[subject.name].amount(resource)
    else:
        own = 0
    if own >= over:
        return own - over
    return None


def _sum_fix(
    what: str,
    resource: str,
    parent: QueueSpec,
    subject: QueueSpec,
    shares: Mapping[str, Resources],
    over: int,
    amount: int,
) -> str:
    raised = f"raise {what} {resource} of {parent.name} to {format_quantity(resource, amount)}"
    if subject.name in shares:
        own = shares[subject.name].amount(resource)
    else:
        own = 0
    if own < over:
        return raised
    return (
        f"lower {what} {resource} of {subject.name} to {format_quantity(resource, own - over)}, or "
        f"{raised}"
    )


def quota_notices(proposed: QueueSpec, placed: QueueTree, facts: Facts) -> Iterator[Notice]:
    """What is allowed although the cluster, as it is now, could not give it."""
    yield from _quota_notices(proposed, facts.total, _FirstLevel(placed))


def queues_concerned(changed: Iterable[str], before: QueueTree, after: QueueTree) -> set[str]:
    """Of which queues `tree_notices` may say something else than before.

    The children of root share the cluster: they hear of each other's changes.
    """
    names = list(changed)
    found = queues_rearranged(names, before, after)
    for tree in (before, after):
        if any(name in tree and tree.parent_of(name) == ROOT for name in names):
            found.update(queue.name for queue in after.children(ROOT))
    return found


def queues_rearranged(changed: Iterable[str], before: QueueTree, after: QueueTree) -> set[str]:
    """Of which queues `hierarchy_problems` may say something else than before.

    Those that were changed, added or removed, all above them, whose children's sums moved, and
    all below them, which have other limits above.
    """
    names = list(changed)
    found: set[str] = set()
    for tree in (before, after):
        for name in names:
            if name in tree:
                found.update(tree.subtree_names(name), tree.ancestors(name))
    return found


def _chosen(tree: QueueTree, names: Collection[str] | None) -> Iterable[QueueSpec]:
    """The queues of these names that are there; all of them for None."""
    if names is None:
        return tree
    return [tree[name] for name in sorted(names) if name in tree]


def tree_notices(
    tree: QueueTree, facts: Facts, names: Collection[str] | None = None
) -> dict[str, list[Notice]]:
    """For each queue, what the cluster cannot give it now; with `names` only for those.

    It is stored with the queue, and renewed when the cluster changes.
    """
    first_level = _FirstLevel(tree)
    notices = {}
    for queue in _chosen(tree, names):
        if queue.name != ROOT:
            notices[queue.name] = list(_quota_notices(queue, facts.total, first_level))
    noted: dict[str, list[Notice]] = {}
    for name, found in notices.items():
        if found:
            noted[name] = found
    return noted


class _FirstLevel:
    """What the children of root ask for, each and together; they share the cluster itself.

    Added up once for all of them.
    """

    def __init__(self, tree: QueueTree) -> None:
        self._tree = tree
        self.together = {what: _children_together(tree, ROOT, what) for what, _, _, _ in _SHARED}

    def __contains__(self, name: str) -> bool:
        return self._tree.parent_of(name) == ROOT

    def overshoot(self, what: str, resource: str, limit: int) -> str:
        """The same words for all of them.

        Without their names: the admins of one of them need not see the others.
        """
        return _overshoot_message(
            what,
            resource,
            "the cluster has",
            self.together[what][resource],
            limit,
        )


def _quota_notices(
    queue: QueueSpec,
    cluster: Resources | None,
    first_level: _FirstLevel,
) -> Iterator[Notice]:
    if cluster is None:
        if not queue.guarantee.is_empty:
            message = (
                f"The guarantee of {queue.name} could not be compared with the cluster: no node is "
                "known yet."
            )
            yield Notice("cluster_unknown", queue.name, message, "spec.guarantee.resource")
        return
    yield from _notices_of_queue_alone(queue, cluster)
    if queue.name in first_level:
        yield from _with_the_others(queue, cluster, first_level)


def _notices_of_queue_alone(queue: QueueSpec, cluster: Resources) -> Iterator[Notice]:
    for what, path, _, amounts in _SHARED:
        for resource, amount in amounts(queue).items():
            if amount > cluster.amount(resource):
                asked = format_quantity(resource, amount)
                there = format_quantity(resource, cluster.amount(resource))
                message = (
                    f"{what} {resource} {asked} of {queue.name} is more than the cluster has now "
                    f"({there})."
                )
                yield Notice(f"{what}_exceeds_cluster", queue.name, message, f"{path}.{resource}")


def _with_the_others(
    queue: QueueSpec,
    cluster: Resources,
    first_level: _FirstLevel,
) -> Iterator[Notice]:
    """Every queue that takes part in asking for too much gets the notice.

    This holds also if its own part alone would be there.
    """
    for what, path, _, amounts in _SHARED:
        together = first_level.together[what]
        for resource, amount in amounts(queue).items():
            limit = cluster.amount(resource)
            if amount and amount <= limit < together[resource]:
                message = f"{first_level.overshoot(what, resource, limit)}."
                yield Notice(f"{what}_exceeds_left", queue.name, message, f"{path}.{resource}")


def hierarchy_problems(
    tree: QueueTree, max_depth: int, names: Collection[str] | None = None
) -> dict[str, list[Violation]]:
    """Which stored queues break the rules of the tree; only data from outside can.

    With `names` only these are looked at.
    """
    found: dict[str, list[Violation]] = {}
    for queue in _chosen(tree, names):
        in_ring = tree.lies_below_itself(queue.name)
        problems = list(_problems_of_queue(queue, tree, max_depth, in_ring))
        if problems:
            found[queue.name] = problems
    return found


def _problems_of_queue(
    queue: QueueSpec,
    tree: QueueTree,
    max_depth: int,
    in_ring: bool,
) -> Iterator[Violation]:
    if queue.name == ROOT:
        return
    if in_ring:
        yield Violation(
            "parent_cycle",
            queue.name,
            "spec.parent",
            f"{queue.name} is below itself: {queue.parent} leads back to it.",
        )
        return
    if queue.parent and queue.parent not in tree:
        yield Violation(
            "parent_not_found",
            queue.name,
            "spec.parent",
            f"{queue.parent}, the parent of {queue.name}, does not exist.",
        )
    if tree.depth(queue.name) > max_depth:
        message = (
            f"{queue.name} is {tree.depth(queue.name)} levels below root; {max_depth} are allowed."
        )
        yield Violation("max_depth_exceeded", queue.name, "spec.parent", message)
    yield from check_capability_above(queue, tree)
    if tree.children(queue.name):
        yield from _check_sums(queue, tree, queue)
