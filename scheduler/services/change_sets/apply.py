"""A change set made true: all of it in one transaction, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from scheduler.admission.violations import Notice, Rejected, Violation, one_for_each_rule
from scheduler.domain.change_sets import (
    NODE,
    POLICY,
    POLICY_TEXT,
    QUEUE,
    ChangeItem,
    Crossed,
    Operation,
    SetState,
)
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.lifecycle import NotAllowed
from scheduler.domain.plans import counted
from scheduler.models import ChangeSet
from scheduler.selectors.change_sets.listing import visible_sets
from scheduler.selectors.change_sets.objects import crossings_of
from scheduler.services.accounts.access import access_for
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.change_sets.queue_changes import change_queues
from scheduler.services.cluster import nodes
from scheduler.services.cluster.queue_writes import ClusterAway, are_queues_in_cluster
from scheduler.services.files.versions import Expected, Stale, is_expected
from scheduler.services.locks import alone_with_pods, lock_tree
from scheduler.services.queues.transaction import tree_transaction
from scheduler.services.queues.warnings import refresh_warnings, warnings_wait
from scheduler.services.records import audit
from scheduler.services.sessions.policies import replace_policy


@dataclass(frozen=True, slots=True)
class AppliedSet:
    change_set: ChangeSet
    message: str
    notices: tuple[Notice, ...] = ()


def apply_change_set(
    number: int,
    *,
    by: Actor = SYSTEM,
    expected_version: Expected = None,
    dry_run: bool = False,
) -> AppliedSet:
    """Apply a draft. Who may change every object that it touches may do this.

    Raises `ChangeSet.DoesNotExist`, `Stale`, `NotPossible` for one that is no draft, `Crossed`
    where others changed an object since it was added, `Forbidden`, `OutOfSight`, and `Rejected`
    with every violation. Nothing is written then. In a real cluster each queue is written by
    itself: what the API server refuses is told, and the set stays a draft.
    """
    if are_queues_in_cluster() and not dry_run:
        apply_change_set(number, by=by, expected_version=expected_version, dry_run=True)
    with tree_transaction(dry_run=dry_run):
        change_set = _locked_draft(number, by, expected_version)
        notices = carry_out(change_set.changes, for_the_set(by, change_set))
        message = f"Applied “{change_set.name}”: {counts_in_words(change_set.changes)}."
        end_draft(change_set, SetState.APPLIED, by)
        audit.record(
            by,
            "ApplyChangeSet",
            "ChangeSet",
            str(change_set.pk),
            before={"state": SetState.DRAFT.value},
            after={"state": SetState.APPLIED.value},
            message=message,
        )
    return AppliedSet(change_set, message, notices)


def _locked_draft(number: int, by: Actor, expected_version: Expected) -> ChangeSet:
    """What is compared stays as it is until the end. In a real cluster nothing can be locked."""
    rows = ChangeSet.objects.all()
    if not are_queues_in_cluster():
        lock_tree()
        alone_with_pods()
        rows = rows.select_for_update()
    change_set = rows.get(pk=visible_set(number, by).pk)
    require_draft(change_set, "applied")
    check_set_version(change_set, expected_version)
    if not change_set.items:
        raise NotPossible(f"“{change_set.name}” is empty: there is nothing to apply")
    return change_set


def visible_set(number: int, by: Actor) -> ChangeSet:
    """Raises `ChangeSet.DoesNotExist`, also for one that the caller may not see."""
    change_set = visible_sets(access_for(by), by.name).filter(pk=number).first()
    if change_set is None:
        raise ChangeSet.DoesNotExist(f"There is no change set {number}.")
    return change_set


def require_draft(change_set: ChangeSet, done: str) -> None:
    if not change_set.is_draft:
        words = f"“{change_set.name}” has already been {change_set.state.lower()}"
        if change_set.state.lower() != done:
            words += f" and cannot be {done}"
        if change_set.state == SetState.PLANNED.value:
            words += ". Cancel its plan first"
        raise NotPossible(words)


def check_set_version(change_set: ChangeSet, expected: Expected) -> None:
    """Raises `Stale`. The record knows a set by its number: names are not unique."""
    version = change_set.resource_version
    if not is_expected(version, expected):
        place = ("ChangeSet", "", str(change_set.pk))
        raise Stale(f"The change set {change_set.name}", change_set, version, place=place)


def for_the_set(by: Actor, change_set: ChangeSet) -> Actor:
    """Every entry of the audit log says which set it came from."""
    words = f"change set {change_set.pk}: {change_set.name}"
    if by.reason:
        words = f"{by.reason} ({words})"
    return replace(by, reason=words)


def end_draft(change_set: ChangeSet, state: SetState, by: Actor) -> None:
    """For whoever holds the row."""
    change_set.state = state.value
    change_set.ended_at = timezone.now()
    change_set.ended_by = by.name[:150]
    change_set.resource_version += 1
    change_set.save()


def carry_out(items: tuple[ChangeItem, ...], by: Actor) -> tuple[Notice, ...]:
    """Nodes first: what queues may have depends on them. In the transaction of the caller."""
    crossings = crossings_of(items)
    if crossings:
        raise Crossed(crossings)
    problems: list[Violation] = []
    notices: list[Notice] = []
    with warnings_wait() as asked:
        for item in of_kind(items, NODE):
            problems += attempted(partial(_change_node, item, by), item)
        queues = of_kind(items, QUEUE)
        if queues:
            problems += attempted(lambda: notices.extend(change_queues(queues, by)))
    if asked:
        refresh_warnings()
    for item in of_kind(items, POLICY):
        problems += attempted(partial(_change_policy, item, by), item)
    if problems:
        raise Rejected(one_for_each_rule(problems), notices)
    return tuple(notices)


def of_kind(items: tuple[ChangeItem, ...], kind: str) -> tuple[ChangeItem, ...]:
    return tuple(item for item in items if item.kind == kind)


def attempted(do: Callable[[], object], item: ChangeItem | None = None) -> list[Violation]:
    """What stands against it.

    Missing rights are not collected: they are raised. So is a cluster that is away, because that
    can be tried again.
    """
    try:
        with _savepoint():
            do()
    except ClusterAway:
        raise
    except Rejected as refusal:
        return [_named(violation, item) for violation in refusal.violations]
    except NotAllowed as refusal:
        message = refusal.message
        return [Violation(refusal.rule_id, refusal.queue, "spec.state", message, refusal.fix)]
    return []


def _savepoint() -> AbstractContextManager[object]:
    """Queues of a real cluster are part of no transaction."""
    if are_queues_in_cluster():
        return nullcontext()
    return transaction.atomic()


def _named(violation: Violation, item: ChangeItem | None) -> Violation:
    """A violation of something that is no queue says what it is about."""
    if item is None or violation.queue:
        return violation
    return replace(violation, field=f"{item.kind}/{item.name} {violation.field}".rstrip())


def _change_node(item: ChangeItem, by: Actor) -> None:
    if item.operation is Operation.CREATE:
        nodes.create_node(item.wanted, by=by)
    elif item.operation is Operation.DELETE:
        nodes.delete_node(item.name, by=by)
    else:
        nodes.update_node(item.name, item.wanted, by=by)


def _change_policy(item: ChangeItem, by: Actor) -> None:
    wanted: Mapping[str, Any] = item.wanted or {}
    replace_policy(wanted[POLICY_TEXT], by=by, reason=by.reason)


def counts_in_words(items: tuple[ChangeItem, ...]) -> str:
    """ "2 queues changed, 1 node deleted, the policy replaced"."""
    words = []
    for kind, noun in ((QUEUE, "queue"), (NODE, "node")):
        for operation, verb in _VERBS.items():
            number = sum(item.operation is operation for item in of_kind(items, kind))
            if number:
                words.append(f"{counted(number, noun)} {verb}")
    if of_kind(items, POLICY):
        words.append("the policy replaced")
    return ", ".join(words) or "nothing yet"


_VERBS = {
    Operation.CREATE: "created",
    Operation.UPDATE: "changed",
    Operation.DELETE: "deleted",
}
