"""May this queue be created or changed?

Every rule is a function of (proposed, tree, facts) that yields what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scheduler.admission.facts import Facts
from scheduler.admission.reading.annotations import (
    check_hierarchy_annotations,
    check_tree_of_annotations,
)
from scheduler.admission.reading.queue import QueueReading, Reading
from scheduler.admission.rules.queue_place import check_place
from scheduler.admission.rules.quotas import check_quotas, quota_notices
from scheduler.admission.rules.run_limits import ended_jobs_notices
from scheduler.admission.violations import (
    Notice,
    Rejected,
    Remedy,
    Verdict,
    Violation,
    without_repeats,
)
from scheduler.domain.lifecycle import command_for, derived_state_of, judge
from scheduler.domain.plans import DEFAULT_CLOSES
from scheduler.domain.queues import DEFAULT, ROOT, QueueSpec, QueueState, QueueTree
from scheduler.domain.resources import Resources, format_quantity

_AMOUNTS: tuple[tuple[str, Callable[[QueueSpec], Resources]], ...] = (
    ("spec.capability", lambda queue: queue.capability),
    ("spec.deserved", lambda queue: queue.deserved),
    ("spec.guarantee.resource", lambda queue: queue.guarantee),
)


def verdict_on(
    reading: Reading[QueueReading],
    tree: QueueTree,
    facts: Facts,
    old: QueueSpec | None,
) -> Verdict:
    """All violations and notices of a queue manifest, of its shape and of the rules."""
    shape = Verdict(reading.violations, reading.notices)
    if reading.value is None:
        return shape
    return shape + check_queue(
        reading.value.spec,
        tree,
        facts,
        old=old,
        sets_state=reading.value.sets_state,
    )


def check_queue(
    proposed: QueueSpec,
    tree: QueueTree,
    facts: Facts,
    *,
    old: QueueSpec | None = None,
    sets_state: bool = False,
) -> Verdict:
    """Check a queue that is to be created (`old` is None) or changed."""
    violations = list(_all_violations(proposed, tree, facts, old, sets_state))
    notices = list(_all_notices(proposed, tree, facts, old))
    return Verdict(without_repeats(violations), tuple(dict.fromkeys(notices)))


def _all_violations(
    proposed: QueueSpec,
    tree: QueueTree,
    facts: Facts,
    old: QueueSpec | None,
    sets_state: bool,
) -> Iterator[Violation]:
    yield from _check_name(proposed, tree, old)
    yield from _check_amounts(proposed)
    yield from check_hierarchy_annotations(proposed, tree)
    if not facts.reads_hierarchy_annotations:
        yield from check_tree_of_annotations(proposed, old)
    if proposed.name == ROOT:
        yield from _check_root(proposed, facts, old)
        return
    moves = old is None or (proposed.parent or ROOT) != (old.parent or ROOT)
    if moves:
        yield from check_place(proposed, tree, facts)
    if moves or (old is not None and _quotas_of(proposed) != _quotas_of(old)):
        yield from _check_cluster_total(proposed, facts)
        yield from check_quotas(proposed, tree, moves=moves)
    if old is not None and sets_state and proposed.state is not old.state:
        yield from _check_state_change(proposed, old, tree, facts)


def _quotas_of(queue: QueueSpec) -> tuple[Resources, ...]:
    return tuple(amounts(queue) for _, amounts in _AMOUNTS)


def _check_name(proposed: QueueSpec, tree: QueueTree, old: QueueSpec | None) -> Iterator[Violation]:
    if old is None and proposed.name in tree:
        message = f"There is already a queue {proposed.name}."
        yield Violation(
            "already_exists",
            proposed.name,
            "metadata.name",
            message,
            "choose another name, or update the queue that is there",
        )


def _check_amounts(proposed: QueueSpec) -> Iterator[Violation]:
    for path, amounts in _AMOUNTS:
        for resource, amount in amounts(proposed).items():
            if amount < 0:
                text = format_quantity(resource, amount)
                message = f"{path}.{resource} is {text}; it must be 0 or more."
                field = f"{path}.{resource}"
                yield Violation(
                    "negative_quantity",
                    proposed.name,
                    field,
                    message,
                    "write 0 or more",
                    (Remedy(field, "0"),),
                )
    yield from _check_order(proposed, "guarantee", "deserved", "guarantee_exceeds_deserved")
    yield from _check_order(proposed, "deserved", "capability", "deserved_exceeds_capability")
    yield from _check_order(proposed, "guarantee", "capability", "guarantee_exceeds_capability")


def _check_order(proposed: QueueSpec, lower: str, upper: str, rule_id: str) -> Iterator[Violation]:
    """`lower` is at most `upper` for every resource that both name.

    What `upper` does not name is not limited by it.
    """
    small: Resources = getattr(proposed, lower)
    large: Resources = getattr(proposed, upper)
    for resource in small:
        if resource in large and small[resource] > large[resource] >= 0:
            asked = format_quantity(resource, small[resource])
            limit = format_quantity(resource, large[resource])
            if lower == "guarantee":
                path = f"spec.{lower}.resource.{resource}"
            else:
                path = f"spec.{lower}.{resource}"
            message = (
                f"{lower} {resource} {asked} of {proposed.name} is more than its {upper} {limit}."
            )
            fix = f"lower {lower} {resource} to {limit}, or raise {upper} to {asked}"
            yield Violation(
                rule_id,
                proposed.name,
                path,
                message,
                fix,
                (Remedy(path, limit), Remedy(f"spec.{upper}.{resource}", asked)),
            )


def _check_root(proposed: QueueSpec, facts: Facts, old: QueueSpec | None) -> Iterator[Violation]:
    if old is None:
        return
    if proposed.parent:
        yield Violation(
            "root_protected",
            ROOT,
            "spec.parent",
            "root cannot be put below another queue.",
            "leave spec.parent of root empty",
        )
    if proposed.state is not QueueState.OPEN:
        if proposed.state is QueueState.CLOSED:
            done = "closed"
        else:
            done = "suspended"
        yield Violation(
            "protected_queue",
            ROOT,
            "spec.state",
            f"root cannot be {done}: it holds all other queues.",
            "leave it Open",
        )
    changed = []
    for path, amounts in _AMOUNTS:
        if amounts(proposed) != amounts(old):
            changed.append(path)
    if changed and facts.protects_root:
        what = ", ".join(path.split(".")[1] for path in changed)
        message = (
            f"The {what} of root cannot be changed: capability, deserved and guarantee of root "
            "follow from the cluster."
        )
        yield Violation(
            "root_protected", ROOT, changed[0], message, "change the queues below root instead"
        )


def _check_cluster_total(proposed: QueueSpec, facts: Facts) -> Iterator[Violation]:
    if facts.total is None:
        return
    for resource, amount in proposed.guarantee.items():
        total = facts.total.amount(resource)
        if amount > total:
            asked = format_quantity(resource, amount)
            there = format_quantity(resource, total)
            message = (
                f"guarantee {resource} {asked} of {proposed.name} is more than the whole cluster "
                f"has ({there})."
            )
            path = f"spec.guarantee.resource.{resource}"
            yield Violation(
                "guarantee_exceeds_cluster",
                proposed.name,
                path,
                message,
                f"lower it to {there} or less",
            )


def _check_state_change(
    proposed: QueueSpec,
    old: QueueSpec,
    tree: QueueTree,
    facts: Facts,
) -> Iterator[Violation]:
    """A change of `spec.state` is a command, and refused where the command is."""
    command = command_for(proposed.state, old.state)
    standings = {
        proposed.name: derived_state_of(tree, proposed.name, facts.live_podgroups, facts.unknown)
    }
    judgement = judge(
        tree,
        standings,
        proposed.name,
        command,
        live=facts.live_podgroups,
        unknown=facts.unknown,
    )
    if judgement.refusal:
        yield Violation(
            judgement.refusal.rule_id,
            proposed.name,
            "spec.state",
            judgement.refusal.message,
            judgement.refusal.fix,
        )


def _all_notices(
    proposed: QueueSpec,
    tree: QueueTree,
    facts: Facts,
    old: QueueSpec | None,
) -> Iterator[Notice]:
    placed = tree.with_queue(proposed)
    if old is not None and _may_allow_less(proposed, old):
        yield from ended_jobs_notices(proposed, placed, tree, facts)
    if proposed.name == ROOT:
        return
    if old is None or proposed.parent != old.parent:
        yield from _inherited_notices(proposed, placed, facts)
    yield from _default_notices(proposed, tree, placed, old)
    if (
        old is not None
        and proposed.state is QueueState.SUSPENDED
        and facts.states.get(proposed.name) is QueueState.CLOSED
    ):
        yield Notice(
            "suspend_ignored",
            proposed.name,
            f"{proposed.name} is Closed and stays so: open it first, then suspend it.",
            "spec.state",
        )
    yield from quota_notices(proposed, placed, facts)


def _may_allow_less(proposed: QueueSpec, old: QueueSpec) -> bool:
    seconds = proposed.max_run_seconds
    return proposed.parent != old.parent or seconds not in (None, old.max_run_seconds)


def _default_notices(
    proposed: QueueSpec,
    tree: QueueTree,
    placed: QueueTree,
    old: QueueSpec | None,
) -> Iterator[Notice]:
    """Jobs that name no queue go to default: whoever takes it from them is told."""
    becomes_parent = placed.children(DEFAULT) and DEFAULT in tree and not tree.children(DEFAULT)
    if becomes_parent:
        message = (
            "Jobs that name no queue go to default. They are refused once default has a queue "
            "below it, because only leaves take jobs."
        )
        yield Notice("default_becomes_parent", proposed.name, message, "spec.parent")
    requested = []
    for queue in (proposed, *(placed[name] for name in placed.ancestors(proposed.name))):
        requested.append(queue.state)
    was_open = old is not None and old.state is not QueueState.CLOSED
    if proposed.name == DEFAULT and was_open and QueueState.CLOSED in requested:
        yield Notice("default_closes", proposed.name, DEFAULT_CLOSES, "spec.state")


def _inherited_notices(proposed: QueueSpec, placed: QueueTree, facts: Facts) -> Iterator[Notice]:
    standing = derived_state_of(placed, proposed.name, facts.live_podgroups, facts.unknown)
    if standing.closed_by:
        message = (
            f"{proposed.name} is {standing.state} at once, because {standing.closed_by} above it "
            "is closed."
        )
        yield Notice("parent_closed", proposed.name, message, "spec.parent")
    if standing.suspended_by:
        message = (
            f"{proposed.name} is Suspended at once, because {standing.suspended_by} above it is "
            "suspended."
        )
        yield Notice("parent_suspended", proposed.name, message, "spec.parent")


STATE_RULES = frozenset(
    {
        "already_exists",
        "parent_not_open",
        "protected_queue",
        "queue_not_closed",
        "has_children",
        "has_podgroups",
        "has_allocated_pods",
        "has_jobs",
    }
)


def raise_if_refused(verdict: Verdict) -> None:
    """Raises `Rejected` with every violation; `by_state` where the same could be allowed later."""
    if verdict.allowed:
        return
    by_state = all(violation.rule_id in STATE_RULES for violation in verdict.violations)
    raise Rejected(verdict.violations, verdict.notices, by_state=by_state)
