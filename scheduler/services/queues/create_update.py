"""Create and change queues, whoever asks: the API, a page, a command, a manifest."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scheduler.admission.defaults import HIERARCHY
from scheduler.admission.facts import Facts
from scheduler.admission.reading.queue import (
    QueueReading,
    Reading,
    queue_manifest,
    read_queue,
    state_of,
)
from scheduler.admission.rules.queues import raise_if_refused, verdict_on
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain import three_way
from scheduler.domain.lifecycle import command_for, derived_state_of
from scheduler.domain.plans import listed
from scheduler.domain.queue_fields import METADATA_FIELDS, QUEUE_FIELDS, names_of
from scheduler.domain.queues import ROOT, QueueSpec, QueueState, QueueTree
from scheduler.domain.resources import Resources
from scheduler.domain.three_way import FieldChange, Merged
from scheduler.models import Command, Queue
from scheduler.selectors.queues.facts import spec_of
from scheduler.selectors.queues.surroundings import Around
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.cluster.queue_writes import SENT_TO_CLUSTER
from scheduler.services.files.merge import merge_patch
from scheduler.services.files.versions import (
    EditConflict,
    Expected,
    StaleVersion,
    check_queue_version,
    is_expected,
)
from scheduler.services.queues.commands import CommandOutcome, QueueOrder, carry_out_order
from scheduler.services.queues.transaction import TreeEdit, tree_transaction
from scheduler.services.records.events import EventNote

__all__ = [
    "Changed",
    "EditConflict",
    "Saved",
    "StaleVersion",
    "create_queue",
    "create_queues",
    "update_queue",
]


@dataclass(frozen=True, slots=True)
class Saved:
    """A queue as it was stored, or would be.

    `before` is None for a new one; `command` is the order that a change of state became.
    """

    queue: Queue
    notices: tuple[Notice, ...] = ()
    changed: bool = True
    message: str = ""
    before: QueueSpec | None = None
    command: Command | None = None
    kept: tuple[FieldChange, ...] = ()  # what others changed since the caller read it


@dataclass(frozen=True, slots=True)
class Changed:
    """What a change came to, as far as it is known before it is written."""

    notices: tuple[Notice, ...]
    changed: bool
    message: str
    command: Command | None = None


def create_queue(
    manifest: object,
    *,
    by: Actor = SYSTEM,
    dry_run: bool = False,
    imported: bool = False,
) -> Saved:
    """Make a queue from a manifest, with the defaults filled in.

    Raises `Rejected` with every violation, and writes nothing then.
    """
    with tree_transaction(dry_run=dry_run):
        edit = TreeEdit()
        made = create_in(edit, manifest, by, imported=imported, alone=True)
        edit.settle()
        return _as_stored(edit, made)


def create_queues(
    manifests: Iterable[object],
    *,
    by: Actor = SYSTEM,
    dry_run: bool = False,
) -> list[Saved | Exception]:
    """Many at once, each by itself: made, or why it was not.

    One that is made counts for those behind it.
    """
    with tree_transaction(dry_run=dry_run):
        edit = TreeEdit()
        results = [_made_or_refused(edit, manifest, by) for manifest in manifests]
        if not edit.is_in_cluster:
            edit.settle()
            return results
        edit.settle_in_cluster()
        return [_made_or_failed(edit, result) for result in results]


def _made_or_failed(edit: TreeEdit, result: Saved | Exception) -> Saved | Exception:
    if isinstance(result, Exception):
        return result
    return edit.failures.get(result.queue.name) or _as_stored(edit, result)


def _as_stored(edit: TreeEdit, saved: Saved) -> Saved:
    """The queue as it is in its table by now.

    One that was sent to a cluster may not be there yet. Then it stays as it was sent, and a
    notice says so.
    """
    name = saved.queue.name
    notices = saved.notices
    if not edit.is_shown:
        notices += (Notice("sent_to_cluster", name, SENT_TO_CLUSTER),)
    stored = Queue.objects.select_related("parent").filter(name=name).first()
    if stored is None:
        stored = saved.queue
        stored.parent = Queue.objects.filter(name=edit.tree[name].parent).first()
    return replace(saved, queue=stored, notices=notices)


def _made_or_refused(edit: TreeEdit, manifest: object, by: Actor) -> Saved | Exception:
    try:
        return create_in(edit, manifest, by)
    except (Rejected, access.Forbidden, access.OutOfSight) as refusal:
        return refusal


def create_in(
    edit: TreeEdit, manifest: object, by: Actor, *, imported: bool = False, alone: bool = False
) -> Saved:
    """The same as part of an edit of the tree: its row is there when that is settled.

    `alone` says that the edit is about nothing else.
    """
    reading = read_queue(manifest, imported=imported)
    if alone:
        _expect_one(edit, reading)
    parent = ROOT
    if reading.value:
        parent = reading.value.spec.parent
    access.require_to_create_queue(edit.seen_by(by), parent)
    proposed, notices = _admitted(reading, edit.tree, edit.facts, None)
    return make_in(edit, proposed, by, notices)


def _expect_one(edit: TreeEdit, reading: Reading[QueueReading]) -> None:
    """Let the edit read the tree around this queue alone, where that is enough to judge it.

    A path in an annotation is compared with those of all queues, and all are below root.
    """
    if reading.value is None:
        edit.expect_one(Around(frozenset()))
        return
    spec = reading.value.spec
    if spec.name != ROOT and not spec.annotations.get(HIERARCHY):
        edit.expect_one(Around(frozenset({spec.name}), frozenset({spec.parent or ROOT})))


def make_in(
    edit: TreeEdit, proposed: QueueReading, by: Actor, notices: tuple[Notice, ...] = ()
) -> Saved:
    """A queue that the rules have admitted."""
    spec = proposed.spec
    queue = edit.add(proposed, by)
    edit.record(by, "CreateQueue", spec.name, after=queue_manifest(spec))
    made = f"{spec.name} was created below {spec.parent}"
    edit.note(EventNote("Queue", spec.name, "CreateQueue", f"{by.name}: {made}.", queue=spec.name))
    state = derived_state_of(edit.tree, spec.name, edit.facts.live_podgroups, edit.unknown).state
    return Saved(queue, notices, message=f"{made} and is {state}.")


def _admitted(
    reading: Reading[QueueReading],
    tree: QueueTree,
    facts: Facts,
    old: QueueSpec | None,
) -> tuple[QueueReading, tuple[Notice, ...]]:
    verdict = verdict_on(reading, tree, facts, old)
    raise_if_refused(verdict)
    assert reading.value is not None  # without a value there is a violation
    return reading.value, verdict.notices


def update_queue(
    name: str,
    manifest: object,
    *,
    by: Actor = SYSTEM,
    merge: bool = False,
    expected_version: Expected = None,
    opened: Mapping[str, Any] | None = None,
    dry_run: bool = False,
) -> Saved:
    """Change a queue to what the manifest says.

    With `merge` the manifest is a patch, and what it leaves out stays (RFC 7386).

    `opened` is the manifest that the caller read at `expected_version`: where others have changed
    the queue since, only what differs from it is written, and what they changed is kept. Raises
    `EditConflict` where both changed the same field.

    A change of `spec.state` is the command it stands for, and refused where that is. Raises
    `Queue.DoesNotExist`, `StaleVersion` when `expected_version` is not the stored one and nothing
    was `opened`, and `Rejected` with every violation.
    """
    with tree_transaction(dry_run=dry_run):
        edit = TreeEdit(with_pods=True)
        queue = Queue.objects.select_related("parent").get(name=name)
        access.require_to_touch_queue(by, name, queue.parent_name or ROOT)
        stored = _Stored(spec_of(queue), queue.is_unknown, str(queue.uid))
        wanted = manifest
        kept: tuple[FieldChange, ...] = ()
        if opened is not None and not is_expected(queue.resource_version, expected_version):
            merged = _merged(queue, opened, manifest)
            wanted = merged.value
            kept = merged.kept
        else:
            check_queue_version(queue, expected_version)
            if merge:
                wanted = merge_patch(queue_manifest(stored.spec), manifest)
        changed = _change(edit, stored, wanted, by, names_state=_names_state(manifest), alone=True)
        edit.settle()
        saved = Saved(
            queue,
            changed.notices,
            changed.changed,
            changed.message,
            stored.spec,
            changed.command,
            kept,
        )
        return _as_stored(edit, saved)


def _merged(queue: Queue, opened: Mapping[str, Any], manifest: object) -> Merged:
    """What the caller changed over what is stored by now.

    Raises `Rejected` where their manifest cannot be read, `EditConflict`.
    """
    merged = merged_edit(opened, manifest, queue_manifest(spec_of(queue)))
    if merged.both:
        raise EditConflict(queue, merged)
    return merged


def merged_edit(opened: Mapping[str, Any], manifest: object, stored: Mapping[str, Any]) -> Merged:
    """Three manifests put together, each as the server writes it: 1000m and 1 are the same."""
    base = stored
    old = None
    before = read_queue(opened).value
    if before:
        old = before.spec
        base = queue_manifest(old)
    reading = read_queue(manifest, old)
    if reading.value is None or reading.violations:
        raise Rejected(reading.violations, reading.notices)
    return three_way.merge(base, queue_manifest(reading.value.spec), stored)


def update_in(edit: TreeEdit, name: str, manifest: object, by: Actor) -> Changed:
    """The same as part of an edit of the tree that has the queue in it.

    The manifest names no uid.
    """
    stored = _Stored(edit.tree[name], name in edit.unknown)
    access.require_to_touch_queue(edit.seen_by(by), name, stored.spec.parent or ROOT)
    return _change(edit, stored, manifest, by, names_state=_names_state(manifest))


@dataclass(frozen=True, slots=True)
class _Stored:
    """A queue as a change finds it."""

    spec: QueueSpec
    is_unknown: bool
    uid: str = ""


def _names_state(manifest: object) -> bool:
    """Whether the manifest asks for a state.

    One that was read while the queue was Unknown, and is sent back, does not: its `spec.state` is
    only what was stored.
    """
    if state_of(manifest) == QueueState.UNKNOWN.value:
        return False
    if not isinstance(manifest, Mapping):
        return False
    spec = manifest.get("spec")
    return isinstance(spec, Mapping) and bool(spec.get("state"))


def _change(
    edit: TreeEdit,
    stored: _Stored,
    manifest: object,
    by: Actor,
    *,
    names_state: bool,
    alone: bool = False,
) -> Changed:
    old = stored.spec
    nothing_to_do = f"{old.name} is already as asked; nothing was changed."
    reading = read_queue(manifest, old)
    _check_identity(stored, reading)
    if alone:
        _expect_one(edit, reading)
    leaves_unknown = stored.is_unknown and names_state
    if reading.value is not None and not reading.violations:
        if reading.value.spec == old and not leaves_unknown:
            return Changed(reading.notices, False, nothing_to_do)  # without a look at the tree
        mine = access.access_for(edit.seen_by(by))
        access.require_queue_change(mine, old, reading.value.spec)
    proposed, notices = _admitted(reading, edit.tree, edit.facts, old)
    differences = respecify_in(edit, old, proposed.spec, by)
    changed = bool(differences)
    sentences = []
    if differences:
        sentences.append(f"Changed {listed(differences)}.")
    command = None
    if leaves_unknown or proposed.spec.state is not old.state:
        ordered = _change_state(edit, old, proposed.spec, by)
        changed = changed or ordered.changed
        command = ordered.command
        if ordered.message:
            sentences.append(ordered.message)
    return Changed(notices, changed, " ".join(sentences) or nothing_to_do, command)


def respecify_in(edit: TreeEdit, old: QueueSpec, new: QueueSpec, by: Actor) -> list[str]:
    """What was changed, in words; nothing is done where nothing is.

    The rules have admitted it. The state stays: only an order changes that.
    """
    differences = _differences(old, new)
    if differences:
        message = f"changed {listed(differences)}."
        edit.respecify(new, by)
        manifests = {
            "before": queue_manifest(old),
            "after": queue_manifest(replace(new, state=old.state)),
        }
        edit.record(by, "UpdateQueue", old.name, **manifests, message=f"C{message[1:]}")
        edit.note(
            EventNote("Queue", old.name, "UpdateQueue", f"{by.name}: {message}", queue=old.name)
        )
    return differences


def _check_identity(stored: _Stored, reading: Reading[QueueReading]) -> None:
    """Refuse a manifest of another queue, or of an earlier one with the same name."""
    name = stored.spec.name
    if reading.value is None:
        return
    if reading.value.spec.name != name:
        message = (
            f"metadata.name is {reading.value.spec.name}, but the queue to change is {name}: a "
            "queue cannot be renamed."
        )
        renamed = Violation(
            "immutable_field_changed", name, "metadata.name", message, f"write {name}"
        )
        raise Rejected([renamed, *reading.violations])
    if reading.value.uid and reading.value.uid != stored.uid:
        message = f"metadata.uid is not that of {name}: it may have been deleted and created again."
        other = Violation("uid_mismatch", name, "metadata.uid", message, "leave the uid out")
        raise Rejected([other, *reading.violations])


def _differences(old: QueueSpec, new: QueueSpec) -> list[str]:
    """What changes, in words, but for the state: that is a command."""
    differences = []
    for name in (*names_of(QUEUE_FIELDS), *METADATA_FIELDS):
        before = getattr(old, name)
        after = getattr(new, name)
        if before != after and name != "state":
            words = name.replace("_", " ")
            differences.append(f"{words} from {_value_words(before)} to {_value_words(after)}")
    return differences


_LONGEST_VALUE = 80  # characters of a value in the sentence about a change


def _value_words(value: object) -> str:
    if isinstance(value, Resources):
        amounts = []
        for name, amount in value.to_quantities().items():
            amounts.append(f"{name} {amount}")
        return " ".join(amounts) or "nothing"
    if isinstance(value, Mapping):
        return f"{len(value)} entries"
    if value is None:
        return "nothing"
    return textwrap.shorten(str(value), _LONGEST_VALUE, placeholder=" …") or "nothing"


def _change_state(edit: TreeEdit, old: QueueSpec, new: QueueSpec, by: Actor) -> CommandOutcome:
    """Give the command that a change of `spec.state` stands for.

    Admission has seen that it is not refused.
    """
    reason = by.reason or "spec.state was changed"
    order = QueueOrder(new.name, command_for(new.state, old.state), reason)
    return carry_out_order(edit, order, by)
