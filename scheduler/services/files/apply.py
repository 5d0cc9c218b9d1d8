"""A file of objects made true: created or updated, all or nothing.

And the same as a question, with every violation as the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.core.exceptions import ObjectDoesNotExist

from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import Forbidden, OutOfSight
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.lifecycle import NotAllowed
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.cluster.job_writes import are_jobs_in_cluster
from scheduler.services.files.apply_kinds import apply_item, is_in_the_tree
from scheduler.services.files.apply_run import ApplyRun
from scheduler.services.files.configuration import WRITTEN
from scheduler.services.files.items import Applied, Item, raise_if_any, read_items
from scheduler.services.files.prune import prune_unnamed
from scheduler.services.queues.transaction import tree_transaction
from scheduler.services.queues.warnings import warnings_wait


def apply_documents(
    documents: Iterable[object],
    *,
    by: Actor = SYSTEM,
    dry_run: bool = False,
    prune: str = "",
    shown: Iterable[str] | None = None,
) -> list[Applied]:
    """Create or update every object, or none.

    `prune` is a label: objects of the file's kinds that wear it and are not named go.

    `shown` are those that the caller was shown beforehand, such as "queue/team-a": where others
    would go now, nothing is done. Raises `Rejected` with all violations of all objects, each with
    the place of its document in front of the field.
    """
    documents = list(documents)
    rehearsed = _rehearse(documents, by) if dry_run and not prune else None
    if rehearsed is not None:
        raise_if_any(rehearsed)
        found: list[Applied] = []
        for item in rehearsed:
            if item.done is not None:
                found.append(item.done)
        return found
    items = read_items(documents)
    if not dry_run and are_jobs_in_cluster() and any(item.kind == "Job" for item in items):
        raise_if_any(check_documents(documents, by=by))  # what is sent cannot be undone
    with tree_transaction(dry_run=dry_run):
        run = ApplyRun(by, with_pods=_moves_pods(items, prune))
        with warnings_wait() as asked:
            _apply_rounds(items, run)
            raise_if_any(items)
            done = []
            for item in items:
                if item.done is not None:
                    done.append(item.done)
            if prune:
                done += prune_unnamed(items, prune, run, shown)
        run.finish(warns=bool(asked))
    return done


def check_documents(documents: Iterable[object], *, by: Actor = SYSTEM) -> list[Item]:
    """The same without writing: each object with what stands against it, the others of the set
    taken as there.
    """
    documents = list(documents)
    rehearsed = _rehearse(documents, by)
    if rehearsed is not None:
        return rehearsed
    items = read_items(documents)
    with tree_transaction(dry_run=True), warnings_wait():
        _apply_rounds(items, ApplyRun(by, with_pods=_moves_pods(items)))
    return items


_ONLY_WRITTEN: Final = ("PodGroup", "Pod", *WRITTEN)
"""Kinds that are tried by writing them."""


def _rehearse(documents: Iterable[object], by: Actor) -> list[Item] | None:
    """What would come of each object, without a transaction.

    None where that cannot be known without writing: objects that would change might count for the
    others.
    """
    items = read_items(documents)
    if any(item.kind in _ONLY_WRITTEN for item in items):
        return None
    _apply_rounds(items, ApplyRun(by, is_rehearsal=True))
    if _may_depend_on_each_other(items):
        return None
    return items


def _may_depend_on_each_other(items: list[Item]) -> bool:
    """The queues of a file are decided together, in memory, and count as one change."""
    changed = []
    for item in items:
        if item.done is not None and item.done.changed:
            changed.append(item)
    outside = [item for item in changed if not is_in_the_tree(item)]
    changes = len(outside)
    if len(changed) > len(outside):
        changes += 1
    is_any_refused = any(item.done is None for item in items)
    return changes > 1 or (changes == 1 and is_any_refused)


def _moves_pods(items: list[Item], prune: str = "") -> bool:
    """Whether the tree and the pods may both be needed: they are taken in this order, whatever the
    order of the documents.
    """
    kinds = {item.kind for item in items}
    return bool(prune) or (kinds != {"Queue"} and bool(kinds & {"Queue", "Node", "Command"}))


def _apply_rounds(items: list[Item], run: ApplyRun) -> None:
    """Again and again while something succeeds: a child may stand before its parent, a quota may
    need another to change first.
    """
    waiting = items
    while waiting:
        for item in waiting:
            _try_item(item, run)
        failed = [item for item in waiting if item.done is None]
        if len(failed) == len(waiting):
            return
        waiting = failed


def _try_item(item: Item, run: ApplyRun) -> None:
    item.violations = ()
    item.by_state = False
    item.forbidden = None
    try:
        item.done = apply_item(item, run)
        item.notices = item.done.notices
    except Rejected as refusal:
        item.violations = refusal.violations
        item.notices = refusal.notices
        item.by_state = refusal.by_state
    except NotAllowed as refusal:
        item.violations = (
            Violation(refusal.rule_id, refusal.queue, "spec.state", refusal.message, refusal.fix),
        )
        item.by_state = True
    except NotPossible as refusal:
        item.violations = (Violation("not_possible", "", "action", f"{item.name}: {refusal}.", ""),)
        item.by_state = True
    except Forbidden as refusal:
        item.violations = (Violation("permission_missing", refusal.queue, "", str(refusal), ""),)
        item.forbidden = refusal
    except (OutOfSight, ObjectDoesNotExist):
        item.violations = (
            Violation(
                "queue_not_found",
                item.name,
                "metadata.name",
                f"There is no {item.kind} {item.name}.",
                "",
            ),
        )
