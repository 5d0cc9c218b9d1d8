"""Namespaces and priority classes: created, changed and deleted by cluster admins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from scheduler.admission.reading.cluster import read_namespace, read_priority_class, with_spec
from scheduler.admission.reading.queue import Reading
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.plans import counted
from scheduler.domain.queues import DEFAULT
from scheduler.models import Job, Namespace, PodGroup, PriorityClass
from scheduler.selectors.files.manifests import stored_namespace, stored_priority_class
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.cluster.mirrored import refuse_if_mirrored
from scheduler.services.files.merge import merge_patch, readable
from scheduler.services.files.versions import Expected, check_version
from scheduler.services.records import audit


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind of catalogue object is read, stored and shown."""

    name: str
    model: type[Any]
    read: Callable[[object], Reading[Any]]
    columns: Callable[[Any], dict[str, Any]]
    stored: Callable[[Any], dict[str, Any]]
    in_use: Callable[[Any], str]
    shaped: Callable[[Any], Any] = lambda manifest: manifest  # as ours, with a spec


@dataclass(frozen=True, slots=True)
class SavedEntry:
    row: Any
    notices: tuple[Notice, ...] = ()
    created: bool = False
    changed: bool = True


def _metadata_columns(value: Any) -> dict[str, Any]:
    return {"labels": value.metadata.labels, "annotations": value.metadata.annotations}


def _priority_columns(value: Any) -> dict[str, Any]:
    return {
        **_metadata_columns(value),
        "value": value.value,
        "global_default": value.global_default,
        "preemption_policy": value.preemption_policy,
        "description": value.description,
    }


def _namespace_in_use(namespace: Namespace) -> str:
    if namespace.name == DEFAULT:
        return "The namespace default cannot be deleted."
    jobs = Job.objects.filter(namespace=namespace.name).count()
    groups = PodGroup.objects.filter(namespace=namespace.name).count()
    if jobs or groups:
        return (
            f"The namespace {namespace.name} holds {counted(jobs, 'job')} and "
            f"{counted(groups, 'podgroup')}."
        )
    return ""


def _class_in_use(row: PriorityClass) -> str:
    groups = PodGroup.objects.filter(priority_class=row.name).exclude(phase="Completed").count()
    if groups:
        return f"The priority class {row.name} is used by {counted(groups, 'podgroup')}."
    return ""


NAMESPACES: Final = Kind(
    "Namespace", Namespace, read_namespace, _metadata_columns, stored_namespace, _namespace_in_use
)
PRIORITY_CLASSES: Final = Kind(
    "PriorityClass",
    PriorityClass,
    read_priority_class,
    _priority_columns,
    stored_priority_class,
    _class_in_use,
    with_spec,
)


def create_entry(
    kind: Kind,
    manifest: object,
    *,
    by: Actor = SYSTEM,
    dry_run: bool = False,
) -> SavedEntry:
    access.require_cluster(by, doing=f"create a {kind.name}")
    refuse_if_mirrored(kind.name)
    reading = kind.read(manifest)
    value = readable(reading)
    row = kind.model(name=value.metadata.name, created_at=timezone.now(), **kind.columns(value))
    made = SavedEntry(row, reading.notices, created=True)
    if dry_run:
        _refuse_new_entry(kind, row)
        return made
    with transaction.atomic():
        _refuse_new_entry(kind, row)
        row.save(force_insert=True)
        audit.record(by, f"Create{kind.name}", kind.name, row.name, after=kind.stored(row))
    return made


def _refuse_new_entry(kind: Kind, row: Any) -> None:
    if kind.model.objects.filter(name=row.name).exists():
        message = f"There is already a {kind.name} {row.name}."
        fix = "change the one that is there"
        raise Rejected(
            [Violation("already_exists", "", "metadata.name", message, fix)], by_state=True
        )
    _refuse_second_default(row)


def update_entry(
    kind: Kind,
    name: str,
    manifest: object,
    *,
    by: Actor = SYSTEM,
    merge: bool = False,
    expected_version: Expected = None,
    dry_run: bool = False,
) -> SavedEntry:
    """Raises the model's `DoesNotExist`, `Stale`, `Rejected`."""
    access.require_cluster(by, doing=f"change a {kind.name}")
    refuse_if_mirrored(kind.name)
    if dry_run:
        row = kind.model.objects.get(name=name)
        check_version(f"The {kind.name} {name}", row, expected_version)
        return _changed_in_memory(kind, row, manifest, merge)
    with transaction.atomic():
        row = kind.model.objects.select_for_update().get(name=name)
        check_version(f"The {kind.name} {name}", row, expected_version)
        before = kind.stored(row)
        saved = _changed_in_memory(kind, row, manifest, merge)
        if saved.changed:
            row.save()
            action = f"Update{kind.name}"
            audit.record(by, action, kind.name, name, before=before, after=kind.stored(row))
    return saved


def _changed_in_memory(kind: Kind, row: Any, manifest: object, merge: bool) -> SavedEntry:
    """The object as the manifest wants it. Nothing is written."""
    if merge:
        manifest = merge_patch(kind.stored(row), kind.shaped(manifest))
    reading = kind.read(manifest)
    columns = kind.columns(readable(reading, row.name))
    changed = any(getattr(row, column) != new for column, new in columns.items())
    if changed:
        for column, new in columns.items():
            setattr(row, column, new)
        row.resource_version += 1
        _refuse_second_default(row)
    return SavedEntry(row, reading.notices, changed=changed)


def _refuse_second_default(row: Any) -> None:
    if not getattr(row, "global_default", False):
        return
    other = PriorityClass.objects.filter(global_default=True).exclude(pk=row.pk).first()
    if other is None:
        return
    message = f"{other.name} is the default priority class already; there can be only one."
    fix = f"unset it on {other.name} first"
    raise Rejected(
        [Violation("already_exists", "", "spec.globalDefault", message, fix)], by_state=True
    )


def delete_entry(
    kind: Kind,
    name: str,
    *,
    by: Actor = SYSTEM,
    expected_version: Expected = None,
    dry_run: bool = False,
) -> None:
    access.require_cluster(by, doing=f"delete a {kind.name}")
    refuse_if_mirrored(kind.name)
    if dry_run:
        _refuse_deletion(kind, kind.model.objects.get(name=name), expected_version)
        return
    with transaction.atomic():
        row = kind.model.objects.select_for_update().get(name=name)
        _refuse_deletion(kind, row, expected_version)
        audit.record(by, f"Delete{kind.name}", kind.name, name, before=kind.stored(row))
        row.delete()


def _refuse_deletion(kind: Kind, row: Any, expected_version: Expected) -> None:
    check_version(f"The {kind.name} {row.name}", row, expected_version)
    problem = kind.in_use(row)
    if problem:
        raise Rejected(
            [Violation("in_use", "", "metadata.name", problem, "let its work finish first")],
            by_state=True,
        )
