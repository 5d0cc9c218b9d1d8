"""Delete queues now. Closing them first and deleting them later: `planned_deletion`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from django.utils import timezone

from scheduler.admission.reading.queue import queue_manifest
from scheduler.admission.rules.queue_deletion import check_delete, deletion_order
from scheduler.admission.rules.queues import raise_if_refused
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.plans import counted, listed
from scheduler.domain.queues import ROOT
from scheduler.models import Grant, GroupMapping, Job, PlannedDeletion, Queue, QueueFigures
from scheduler.models.workload import FINISHED_JOB_PHASES
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.cluster.queue_writes import SENT_TO_CLUSTER
from scheduler.services.files.versions import Expected, check_queue_version
from scheduler.services.queues.deletion_effects import Aftermath, aftermath_of
from scheduler.services.queues.transaction import TreeEdit, tree_transaction
from scheduler.services.records.events import EventNote


@dataclass(frozen=True, slots=True)
class Deleted:
    """The queues that are gone, children first, and what that leaves of their jobs."""

    queues: tuple[str, ...]
    aftermath: Aftermath
    message: str = ""


def delete_queue(
    name: str,
    *,
    cascade: bool = False,
    by: Actor = SYSTEM,
    dry_run: bool = False,
    expected_version: Expected = None,
    shown: Iterable[str] | None = None,
) -> Deleted:
    """Delete a Closed queue; the records of its jobs stay.

    With `cascade` everything below it goes too, children first, all or nothing.

    `shown` are the queues that the caller was shown before. If it would be others by now, nothing
    is deleted. Raises `Queue.DoesNotExist`, `StaleVersion`, and `Rejected` with everything that
    prevents it, of every queue concerned.
    """
    with tree_transaction(dry_run=dry_run):
        edit = TreeEdit(with_pods=True)
        require_to_delete(name, by, expected_version)
        deleted = _delete(edit, name, by, cascade=cascade, shown=shown)
        edit.settle()
    if edit.is_shown:
        return deleted
    return replace(deleted, message=f"{deleted.message} {SENT_TO_CLUSTER}")


def require_to_delete(name: str, by: Actor, expected_version: Expected) -> None:
    """Raises `Queue.DoesNotExist`, `Forbidden` and `StaleVersion`."""
    queue = Queue.objects.select_related("parent").get(name=name)
    access.require_to_delete_queue(by, name, queue.parent_name or ROOT)
    check_queue_version(queue, expected_version)


def delete_in(edit: TreeEdit, name: str, by: Actor) -> Deleted:
    """The same as part of an edit of the tree that was begun `with_pods`."""
    access.require_to_delete_queue(edit.seen_by(by), name, edit.tree[name].parent or ROOT)
    return _delete(edit, name, by)


def _delete(
    edit: TreeEdit,
    name: str,
    by: Actor,
    *,
    cascade: bool = False,
    shown: Iterable[str] | None = None,
) -> Deleted:
    tree = edit.tree
    doomed = [name]
    if cascade:
        doomed = deletion_order(name, tree)
    refuse_unless_shown(name, doomed, shown)
    verdict = check_delete(name, tree, edit.facts, cascade=cascade)
    violations = (*verdict.violations, *_unfinished_jobs(doomed))
    raise_if_refused(replace(verdict, violations=violations))
    deleted = _remove(edit, doomed, by)
    for gone in doomed:
        follows = ""
        if gone != name:
            follows = name
        edit.record(
            by,
            "DeleteQueue",
            gone,
            before=queue_manifest(tree[gone]),
            message=deleted.message,
            follows=follows,
        )
    return deleted


def refuse_unless_shown(name: str, doomed: list[str], shown: Iterable[str] | None) -> None:
    """Only what was shown is deleted: a queue may have come below it, or left, since then."""
    if shown is None or set(shown) == set(doomed):
        return
    message = (
        f"What is below {name} has changed since it was shown: deleting it would now delete "
        f"{listed(doomed)}."
    )
    fix = "look again, then decide"
    violation = Violation("tree_changed", name, "metadata.name", message, fix)
    raise Rejected([violation], by_state=True)


def _unfinished_jobs(names: list[str]) -> list[Violation]:
    """Jobs that could still come back.

    There are none where every podgroup is Completed. This is a second look, so that no job is
    lost by a mistake elsewhere.
    """
    unfinished = (
        Job.objects.filter(queue__name__in=names, queue__deleted_at=None)
        .exclude(phase__in=FINISHED_JOB_PHASES)
        .exclude(podgroup__phase__in=("Pending", "Inqueue", "Running", "Unknown"))
    )
    counts = Counter(unfinished.values_list("queue__name", flat=True))
    violations = []
    for name, number in counts.items():
        message = f"{name} has {counted(number, 'unfinished job')}."
        violations.append(Violation("has_jobs", name, "status", message, "let them finish"))
    return violations


def _mark_as_deleted(names: list[str], by: Actor) -> None:
    for model in (GroupMapping, Grant, QueueFigures, PlannedDeletion):
        model.objects.filter(queue__name__in=names, queue__deleted_at=None).delete()
    Queue.objects.filter(name__in=names).update(deleted_at=timezone.now(), updated_by=by.name[:150])


def _remove(edit: TreeEdit, names: list[str], by: Actor) -> Deleted:
    """Their rows stay, marked as deleted, for the records that refer to them.

    Roles and figures go.
    """
    aftermath = aftermath_of(names)
    # of queues in a real cluster the mirror does it, when the cluster has deleted them
    if not edit.is_in_cluster and not edit.only_plans:
        _mark_as_deleted(names, by)
    edit.remove(names)
    for name in names:
        edit.note(EventNote("Queue", name, "DeleteQueue", f"{by.name} deleted {name}.", queue=name))
    message = f"Deleted {listed(names)}. {aftermath.sentence}".rstrip()
    return Deleted(tuple(names), aftermath, message)
