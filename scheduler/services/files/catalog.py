"""Namespaces and priority classes: created, changed and deleted by cluster admins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import F

from scheduler.admission.reading.cluster import read_namespace, read_priority_class, with_spec
from scheduler.admission.reading.queue import Reading
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.plans import counted
from scheduler.domain.queues import DEFAULT
from scheduler.models import Job, Namespace, PodGroup, PriorityClass
from scheduler.selectors.files.manifests import stored_namespace, stored_priority_class
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
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
    kind: Kind, manifest: object, *, by: Actor = SYSTEM, dry_run: bool = False
) -> SavedEntry:
    access.require_cluster(by, doing=f"create a {kind.name}")
    reading = kind.read(manifest)
    value = readable(reading)
    with transaction.atomic():
        if kind.model.objects.filter(name=value.metadata.name).exists():
            message = f"There is already a {kind.name} {value.metadata.name}."
            raise Rejected(
                [
                    Violation(
                        "already_exists",
                        "",
                        "metadata.name",
                        message,
                        "change the one that is there",
                    )
                ],
                by_state=True,
            )
        columns = kind.columns(value)
        _one_default(columns, None)
        row = kind.model.objects.create(name=value.metadata.name, **columns)
        audit.record(by, f"Create{kind.name}", kind.name, row.name, after=kind.stored(row))
        transaction.set_rollback(dry_run)
    return SavedEntry(row, reading.notices, created=True)


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
    with transaction.atomic():
        row = kind.model.objects.select_for_update().get(name=name)
        check_version(f"The {kind.name} {name}", row, expected_version)
        before = kind.stored(row)
        reading = kind.read(merge_patch(before, kind.shaped(manifest)) if merge else manifest)
        columns = kind.columns(readable(reading, name))
        changed = any(getattr(row, column) != new for column, new in columns.items())
        if changed:
            _one_default(columns, row)
            kind.model.objects.filter(pk=row.pk).update(
                **columns, resource_version=F("resource_version") + 1
            )
            row.refresh_from_db()
            audit.record(
                by, f"Update{kind.name}", kind.name, name, before=before, after=kind.stored(row)
            )
        transaction.set_rollback(dry_run)
    return SavedEntry(row, reading.notices, changed=changed)


def _one_default(columns: dict[str, Any], row: PriorityClass | None) -> None:
    if not columns.get("global_default"):
        return
    others = PriorityClass.objects.filter(global_default=True)
    other = (others.exclude(pk=row.pk) if row is not None else others).first()
    if other is not None:
        message = f"{other.name} is the default priority class already; there can be only one."
        raise Rejected(
            [
                Violation(
                    "already_exists",
                    "",
                    "spec.globalDefault",
                    message,
                    f"unset it on {other.name} first",
                )
            ],
            by_state=True,
        )


@transaction.atomic
def delete_entry(
    kind: Kind,
    name: str,
    *,
    by: Actor = SYSTEM,
    expected_version: Expected = None,
    dry_run: bool = False,
) -> None:
    access.require_cluster(by, doing=f"delete a {kind.name}")
    row = kind.model.objects.select_for_update().get(name=name)
    check_version(f"The {kind.name} {name}", row, expected_version)
    problem = kind.in_use(row)
    if problem:
        raise Rejected(
            [Violation("in_use", "", "metadata.name", problem, "let its work finish first")],
            by_state=True,
        )
    audit.record(by, f"Delete{kind.name}", kind.name, name, before=kind.stored(row))
    row.delete()
    transaction.set_rollback(dry_run)
