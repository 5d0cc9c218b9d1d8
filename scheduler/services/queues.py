"""Everything that can be done to a queue, whoever asks: the API, a page, a command, a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from scheduler import notify
from scheduler.admission.facts import Facts
from scheduler.admission.manifests import QueueReading, Reading, queue_manifest, read_queue, state_of
from scheduler.admission.queues import STATE_RULES, check_delete, deletion_order, verdict_on
from scheduler.admission.violations import Notice, Rejected, Verdict, Violation
from scheduler.domain.lifecycle import command_for
from scheduler.domain.plans import listed
from scheduler.domain.queues import ROOT, QueueSpec, QueueState, QueueTree
from scheduler.domain.resources import Resources
from scheduler.models import Command, Job, PodGroup, Queue
from scheduler.models.workload import FINISHED_JOB_PHASES
from scheduler.selectors.facts import admission_scene, spec_of
from scheduler.services import access, audit
from scheduler.services.actors import SYSTEM, Actor
from scheduler.services.commands import CommandOutcome, command_queue, execute, plan_command, write_down
from scheduler.services.events import EventNote, record_events
from scheduler.services.locks import alone_with_pods, lock_tree
from scheduler.services.scheduling import want_session
from scheduler.services.states import refresh_states
from scheduler.services.warnings import refresh_warnings

__all__ = [
    "CommandOutcome",
    "Deleted",
    "Saved",
    "StaleVersion",
    "command_queue",
    "create_queue",
    "delete_queue",
    "plan_command",
    "update_queue",
]

# The column of each field of a specification that is stored as it is.
_PLAIN_FIELDS = ("weight", "capability", "deserved", "guarantee", "reclaimable", "priority", "type", "labels", "annotations")


class StaleVersion(Exception):
    """Somebody else changed the queue since the caller read it."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        who = f" by {queue.updated_by}" if queue.updated_by else ""
        super().__init__(
            f"{queue.name} was changed{who} at {queue.updated_at:%H:%M:%S} and is now at version {queue.resource_version}: "
            "read it again and repeat the change."
        )


@dataclass(frozen=True, slots=True)
class Saved:
    """A queue as it was stored, or would be. `before` is None for a new one; `command` is the order that a change of state became."""

    queue: Queue
    notices: tuple[Notice, ...] = ()
    changed: bool = True
    message: str = ""
    before: QueueSpec | None = None
    command: Command | None = None


@dataclass(frozen=True, slots=True)
class Deleted:
    """What went: the queues, children first, and how much finished work with them."""

    queues: tuple[str, ...]
    podgroups: int = 0
    jobs: int = 0
    message: str = ""


def create_queue(manifest: object, *, by: Actor = SYSTEM, dry_run: bool = False, imported: bool = False) -> Saved:
    """Make a queue from a manifest, with the defaults filled in. Raises `Rejected` with every violation, and writes nothing then."""
    with transaction.atomic():
        lock_tree()
        tree, facts = admission_scene()
        reading = read_queue(manifest, imported=imported)
        access.require_to_create_queue(by, reading.value.spec.parent if reading.value else ROOT)
        proposed, notices = _admitted(reading, tree, facts, None)
        queue = _insert(proposed, by)
        audit.record(by, "CreateQueue", "Queue", queue.name, queue=queue.name, after=queue_manifest(proposed.spec))
        _settle(queue, f"{queue.name} was created below {proposed.spec.parent}.", "CreateQueue", by)
        queue.refresh_from_db()
        transaction.set_rollback(dry_run)
    return Saved(queue, notices, message=f"{queue.name} was created below {proposed.spec.parent} and is {queue.state}.")


def _admitted(
    reading: Reading[QueueReading], tree: QueueTree, facts: Facts, old: QueueSpec | None
) -> tuple[QueueReading, tuple[Notice, ...]]:
    verdict = verdict_on(reading, tree, facts, old)
    _raise_if_refused(verdict)
    assert reading.value is not None  # without a value there is a violation
    return reading.value, verdict.notices


def _raise_if_refused(verdict: Verdict) -> None:
    if not verdict.allowed:
        by_state = all(violation.rule_id in STATE_RULES for violation in verdict.violations)
        raise Rejected(verdict.violations, verdict.notices, by_state=by_state)


def _insert(proposed: QueueReading, by: Actor) -> Queue:
    spec = proposed.spec
    return Queue.objects.create(
        name=spec.name,
        parent=Queue.objects.get(name=spec.parent),
        dequeue_strategy=spec.dequeue_strategy.value,
        wish=spec.state.value,
        is_unknown=proposed.is_unknown,
        state_since=timezone.now(),
        updated_by=by.name[:150],
        **{name: getattr(spec, name) for name in _PLAIN_FIELDS},
    )


def _settle(queue: Queue, message: str, reason: str, by: Actor) -> None:
    """What follows from a change of the tree: states, warnings, news, and a session that takes it into account."""
    refresh_states()
    refresh_warnings()
    record_events([EventNote("Queue", queue.name, reason, f"{by.name}: {message}", queue=queue.name)], timezone.now())
    notify.queues_changed([queue.name])
    transaction.on_commit(want_session)


def update_queue(
    name: str, manifest: object, *, by: Actor = SYSTEM, merge: bool = False, expected_version: int | None = None, dry_run: bool = False
) -> Saved:
    """Change a queue to what the manifest says; with `merge` the manifest is a patch, and what it leaves out stays (RFC 7386).

    A change of `spec.state` is the command it stands for, and refused where that is. Raises `Queue.DoesNotExist`, `StaleVersion` when
    `expected_version` is not the stored one, and `Rejected` with every violation.
    """
    with transaction.atomic():
        lock_tree()
        queue = Queue.objects.select_related("parent").get(name=name)
        access.require_to_touch_queue(by, name, queue.parent.name if queue.parent else ROOT)
        if expected_version is not None and queue.resource_version != expected_version:
            raise StaleVersion(queue)
        saved = _change(queue, _merged(queue, manifest) if merge else manifest, by, names_state=_names_state(manifest))
        transaction.set_rollback(dry_run)
    return saved


def _names_state(manifest: object) -> bool:
    """An Unknown queue that is sent back as it was read says nothing of its state: its wish is only what it was stored with."""
    if state_of(manifest) == QueueState.UNKNOWN.value:
        return False
    spec = manifest.get("spec") if isinstance(manifest, Mapping) else None
    return isinstance(spec, Mapping) and bool(spec.get("state"))


def _merged(queue: Queue, patch: object) -> object:
    return merge_patch(queue_manifest(spec_of(queue)), patch) if isinstance(patch, Mapping) else patch


def merge_patch(target: object, patch: object) -> object:
    """JSON merge patch: null removes, objects are merged, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged: dict[str, Any] = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _change(queue: Queue, manifest: object, by: Actor, *, names_state: bool) -> Saved:
    reading = read_queue(manifest, spec_of(queue))
    _check_identity(queue, reading)
    if _asks_for_nothing(queue, reading, names_state):
        return Saved(queue, reading.notices, False, f"{queue.name} is already as asked; nothing was changed.", spec_of(queue))
    tree, facts = admission_scene()
    old = tree[queue.name]
    if reading.value is not None and not reading.violations:
        access.require_queue_change(access.access_for(by), old, reading.value.spec)
    proposed, notices = _admitted(reading, tree, facts, old)
    differences = _differences(old, proposed.spec)
    if differences:
        _write(queue, proposed.spec, by)
        audit.record(
            by,
            "UpdateQueue",
            "Queue",
            queue.name,
            queue=queue.name,
            before=queue_manifest(old),
            after=queue_manifest(replace(proposed.spec, state=old.state)),
            message=f"Changed {listed(differences)}.",
        )
        _settle(queue, f"changed {listed(differences)}.", "UpdateQueue", by)
    leaves_unknown = queue.is_unknown and names_state
    command = _command(old, proposed.spec, by) if leaves_unknown or proposed.spec.state is not old.state else None
    queue.refresh_from_db()
    changed = bool(differences) or (command is not None and command.result == Command.DONE)
    message = " ".join(filter(None, [f"Changed {listed(differences)}." if differences else "", command.message if command else ""]))
    return Saved(queue, notices, changed, message or f"{queue.name} is already as asked; nothing was changed.", old, command)


def _asks_for_nothing(queue: Queue, reading: Reading[QueueReading], names_state: bool) -> bool:
    """Then the rest of the tree need not be looked at: a file of all queues is applied again in no time."""
    if reading.value is None or reading.violations or (queue.is_unknown and names_state):
        return False
    return reading.value.spec == spec_of(queue)


def _check_identity(queue: Queue, reading: Reading[QueueReading]) -> None:
    """A manifest for another queue, or for an earlier one of the same name, is a mistake of the caller."""
    if reading.value is None:
        return
    if reading.value.spec.name != queue.name:
        message = f"metadata.name is {reading.value.spec.name}, but the queue to change is {queue.name}: a queue can not be renamed."
        raise Rejected(
            [Violation("immutable_field_changed", queue.name, "metadata.name", message, f"write {queue.name}"), *reading.violations]
        )
    if reading.value.uid and reading.value.uid != str(queue.uid):
        message = f"metadata.uid is not that of {queue.name}: it may have been deleted and made anew."
        raise Rejected([Violation("uid_mismatch", queue.name, "metadata.uid", message, "leave the uid out"), *reading.violations])


def _differences(old: QueueSpec, new: QueueSpec) -> list[str]:
    """What changes, in words, but for the state: that is a command."""
    pairs = [(name, getattr(old, name), getattr(new, name)) for name in (*_PLAIN_FIELDS, "dequeue_strategy", "parent")]
    return [f"{name} from {_said(before)} to {_said(after)}" for name, before, after in pairs if before != after]


def _said(value: object) -> str:
    if isinstance(value, Resources):
        return " ".join(f"{name} {amount}" for name, amount in value.to_quantities().items()) or "nothing"
    if isinstance(value, Mapping):
        return f"{len(value)} entries"
    return str(value) if value != "" else "nothing"


def _write(queue: Queue, spec: QueueSpec, by: Actor) -> None:
    Queue.objects.filter(pk=queue.pk).update(
        parent=Queue.objects.filter(name=spec.parent).first() if spec.parent else None,
        dequeue_strategy=spec.dequeue_strategy.value,
        resource_version=F("resource_version") + 1,
        updated_at=timezone.now(),
        updated_by=by.name[:150],
        **{name: getattr(spec, name) for name in _PLAIN_FIELDS},
    )


def _command(old: QueueSpec, new: QueueSpec, by: Actor) -> Command:
    """The order that a change of `spec.state` stands for; admission has seen that it is not refused."""
    return execute(write_down(new.name, command_for(new.state, old.state), by=by, reason="spec.state was changed"))


def delete_queue(
    name: str, *, cascade: bool = False, by: Actor = SYSTEM, dry_run: bool = False, expected_version: int | None = None,
    shown: Iterable[str] | None = None,
) -> Deleted:  # fmt: skip
    """Delete a Closed queue with its finished work; with `cascade` everything below it too, children first, all or nothing.

    `shown` are the queues that the caller was shown beforehand: where it would be others now, nothing is deleted.
    Raises `Queue.DoesNotExist`, `StaleVersion`, and `Rejected` with everything that stands against it, of every queue concerned.
    """
    with transaction.atomic():
        lock_tree()
        queue = Queue.objects.select_related("parent").get(name=name)
        access.require_to_delete_queue(by, name, queue.parent.name if queue.parent else ROOT)
        if expected_version is not None and queue.resource_version != expected_version:
            raise StaleVersion(queue)
        tree, facts = admission_scene()
        doomed = deletion_order(name, tree) if cascade else [name]
        refuse_unless_shown(name, doomed, shown)
        verdict = check_delete(name, tree, facts, cascade=cascade)
        _raise_if_refused(replace(verdict, violations=(*verdict.violations, *_unfinished_jobs(doomed))))
        deleted = _remove(doomed, by)
        for gone in doomed:
            audit.record(by, "DeleteQueue", "Queue", gone, queue=gone, before=queue_manifest(tree[gone]), message=deleted.message)
        transaction.set_rollback(dry_run)
    return deleted


def refuse_unless_shown(name: str, doomed: list[str], shown: Iterable[str] | None) -> None:
    """Nobody deletes what he has not seen: a queue may have come below it, or left, since he looked."""
    if shown is None or set(shown) == set(doomed):
        return
    message = f"What is below {name} has changed since it was shown: deleting it would now delete {listed(doomed)}."
    raise Rejected([Violation("tree_changed", name, "metadata.name", message, "look again, and decide anew")], by_state=True)


def _unfinished_jobs(names: list[str]) -> list[Violation]:
    """Jobs that could still come back: none, where every podgroup is Completed, but a job is never lost by a mistake elsewhere."""
    unfinished = (
        Job.objects.filter(queue__name__in=names)
        .exclude(phase__in=FINISHED_JOB_PHASES)
        .exclude(podgroup__phase__in=("Pending", "Inqueue", "Running", "Unknown"))
    )
    counts: dict[str, int] = {}
    for queue in unfinished.values_list("queue__name", flat=True):
        counts[queue] = counts.get(queue, 0) + 1
    return [
        Violation("has_jobs", name, "status", f"{name} has {number} unfinished jobs.", "let them finish") for name, number in counts.items()
    ]


def _remove(names: list[str], by: Actor) -> Deleted:
    alone_with_pods()
    jobs = Job.objects.filter(queue__name__in=names)
    podgroups = PodGroup.objects.filter(queue__name__in=names)
    counted_podgroups, counted_jobs = podgroups.count(), jobs.count()
    podgroups.delete()
    jobs.delete()
    for name in names:  # children first: a parent is protected by them
        Queue.objects.filter(name=name).delete()
    notes = [EventNote("Queue", name, "DeleteQueue", f"{by.name} deleted {name}.", queue=name) for name in names]
    record_events(notes, timezone.now())
    refresh_states()
    refresh_warnings()
    notify.queues_changed(names)
    transaction.on_commit(want_session)
    message = f"Deleted {listed(names)} with {counted_jobs} finished jobs and {counted_podgroups} Completed podgroups."
    return Deleted(tuple(names), counted_podgroups, counted_jobs, message)
