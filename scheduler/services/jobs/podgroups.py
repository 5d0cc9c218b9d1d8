"""Gangs that come from outside, from a customised controller: submitted, changed and taken away.

Their pods: `scheduler/services/jobs/single_pods.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from scheduler import notify
from scheduler.admission.reading.queue import Reading, place_of
from scheduler.admission.reading.waiting_times import waiting_time
from scheduler.admission.reading.workload import (
    PodGroupManifest,
    read_podgroup,
)
from scheduler.admission.rules.backlogs import is_forbidden_by_state
from scheduler.admission.rules.workloads import admit_podgroup_change, podgroup_verdict
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.plans import counted
from scheduler.domain.queues import DEFAULT
from scheduler.models import Namespace, Pod, PodGroup, Queue
from scheduler.selectors.files.manifests import stored_podgroup
from scheduler.selectors.queues.backlogs import judged
from scheduler.selectors.queues.submission import Scene, submission_scene
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor, submitter
from scheduler.services.cluster.mirrored import changed_in_cluster
from scheduler.services.files.merge import merge_patch, readable
from scheduler.services.files.versions import Expected, check_version
from scheduler.services.jobs.limit_turns import take_turn
from scheduler.services.jobs.pods import (
    Priorities,
    take_away,
)
from scheduler.services.locks import alone_with_pods, share_tree
from scheduler.services.queues.states import refresh_states
from scheduler.services.records import audit
from scheduler.services.sessions.requests import want_session

DELETED_MARK = "fumarole.io/deleted"
"""The annotation of a gang that goes as soon as the last of its pods has left."""


@dataclass(frozen=True, slots=True)
class SavedPodGroup:
    podgroup: PodGroup
    notices: tuple[Notice, ...] = ()
    changed: bool = True


def check_podgroup(
    manifest: object, user: str
) -> tuple[Reading[PodGroupManifest], tuple[Violation, ...], tuple[Notice, ...]]:
    namespace, queue = place_of(manifest)
    scene = asked_scene({queue, DEFAULT}, namespace, user)
    reading = read_podgroup(manifest, scene.facts)
    verdict = judged(lambda facts: podgroup_verdict(reading, scene.tree, facts), scene.facts)
    return reading, verdict.violations, verdict.notices


def asked_scene(queues: set[str], namespace: str, user: str) -> Scene:
    """What is asked of the queues; in a transaction that writes, with nobody else at a limit."""
    scene = submission_scene(queues, namespace, user)
    if take_turn(scene.facts, pods=1):
        return submission_scene(queues, namespace, user)
    return scene


@changed_in_cluster("PodGroup")
def submit_podgroup(
    manifest: object,
    *,
    by: Actor = SYSTEM,
    dry_run: bool = False,
) -> SavedPodGroup:
    """A gang without a job of ours.

    Raises `Rejected` with every violation, and writes nothing then.
    """
    with transaction.atomic():
        share_tree()
        reading, violations, notices = check_podgroup(manifest, submitter(by))
        access.require_to_submit(
            by, reading.value.queue if reading.value else place_of(manifest)[1]
        )
        refuse_if_wrong(violations, notices)
        assert reading.value is not None
        group = create_group(reading.value, by)
        audit.record(
            by,
            "CreatePodGroup",
            "PodGroup",
            group.name,
            namespace=group.namespace,
            queue=group.queue.name,
            after=stored_podgroup(group),
        )
        settle_phase(group)
        transaction.set_rollback(dry_run)
    return SavedPodGroup(group, notices)


def refuse_if_wrong(violations: Iterable[Violation], notices: Iterable[Notice]) -> None:
    violations = tuple(violations)
    if violations:
        raise Rejected(violations, notices, by_state=is_forbidden_by_state(violations))


def create_group(value: PodGroupManifest, by: Actor) -> PodGroup:
    namespace = value.metadata.namespace or DEFAULT
    Namespace.objects.get_or_create(name=namespace)
    try:
        with transaction.atomic():
            return PodGroup.objects.create(
                namespace=namespace,
                name=value.metadata.name,
                queue=Queue.objects.get(name=value.queue),
                owner=by.name,
                labels=value.metadata.labels,
                annotations=value.metadata.annotations,
                **_podgroup_columns(value),
            )
    except IntegrityError:
        raise Rejected(
            [exists_violation("podgroup", namespace, value.metadata.name, value.queue)],
            by_state=True,
        ) from None


def exists_violation(kind: str, namespace: str, name: str, queue: str) -> Violation:
    return Violation(
        "already_exists",
        queue,
        "metadata.name",
        f"There is a {kind} {namespace}/{name} already.",
        "choose another name",
    )


def _podgroup_columns(value: PodGroupManifest) -> dict[str, Any]:
    return {
        "min_member": value.min_member,
        "min_task_member": dict(value.min_task_member),
        "min_resources": value.min_resources,
        "priority_class": value.priority_class,
        "priority": Priorities.load().of(value.priority_class).value,
        "network_topology": dict(value.network_topology),
        "sla_waiting_seconds": waiting_time(value.metadata.annotations),
    }


def settle_phase(group: PodGroup) -> None:
    want_session()
    notify.jobs_changed([str(group)], queues=[group.queue.name])


@changed_in_cluster("PodGroup")
def update_podgroup(
    namespace: str,
    name: str,
    manifest: object,
    *,
    by: Actor = SYSTEM,
    merge: bool = False,
    expected_version: Expected = None,
    dry_run: bool = False,
) -> SavedPodGroup:
    """Everything but its queue may change. Raises `PodGroup.DoesNotExist`, `Stale`, `Rejected`."""
    with transaction.atomic():
        share_tree()
        group = (
            PodGroup.objects.select_for_update(of=("self",))
            .select_related("queue", "job")
            .get(namespace=namespace, name=name)
        )
        access.require_job_command(by, group.queue.place, group.owner)
        check_version(f"The podgroup {group}", group, expected_version)
        before = stored_podgroup(group)
        reading, notices = _changed_reading(
            group, merge_patch(before, manifest) if merge else manifest, before
        )
        columns = {
            **_podgroup_columns(reading),
            "labels": reading.metadata.labels,
            "annotations": reading.metadata.annotations,
        }
        changed = any(getattr(group, column) != new for column, new in columns.items())
        if changed:
            refuse_owned(group, "changed")
            PodGroup.objects.filter(pk=group.pk).update(
                **columns, resource_version=F("resource_version") + 1
            )
            group.refresh_from_db()
            audit.record(
                by,
                "UpdatePodGroup",
                "PodGroup",
                name,
                namespace=namespace,
                queue=group.queue.name,
                before=before,
                after=stored_podgroup(group),
            )
            settle_phase(group)
        transaction.set_rollback(dry_run)
    return SavedPodGroup(group, notices, changed)


def _changed_reading(
    group: PodGroup,
    manifest: object,
    before: Mapping[str, Any],
) -> tuple[PodGroupManifest, tuple[Notice, ...]]:
    facts = submission_scene({group.queue.name}, group.namespace).facts
    verdict = admit_podgroup_change(manifest, before, facts)
    refuse_if_wrong(verdict.violations, verdict.notices)
    return readable(read_podgroup(manifest, facts), group.name, group.namespace), verdict.notices


def refuse_owned(group: PodGroup, done: str) -> None:
    if group.job is not None:
        message = f"The podgroup {group} belongs to the job {group.job} and is {done} with it."
        raise Rejected(
            [
                Violation(
                    "owned_by_job",
                    group.queue.name,
                    "metadata.name",
                    message,
                    "use the job instead",
                )
            ],
            by_state=True,
        )


@changed_in_cluster("PodGroup")
def delete_podgroup(
    namespace: str,
    name: str,
    *,
    by: Actor = SYSTEM,
    expected_version: Expected = None,
    dry_run: bool = False,
) -> str:
    """Take a gang away with its pods.

    Pods on nodes leave first; until then the gang stays. What happened, in words.
    """
    with transaction.atomic():
        share_tree()
        alone_with_pods()
        group = (
            PodGroup.objects.select_for_update(of=("self",))
            .select_related("queue", "job")
            .get(namespace=namespace, name=name)
        )
        access.require_job_command(by, group.queue.place, group.owner)
        check_version(f"The podgroup {group}", group, expected_version)
        refuse_owned(group, "deleted")
        audit.record(
            by,
            "DeletePodGroup",
            "PodGroup",
            name,
            namespace=namespace,
            queue=group.queue.name,
            before=stored_podgroup(group),
        )
        leaving = take_away(Pod.objects.filter(podgroup=group))
        remove_when_empty(group)
        settle_phase(group)
        transaction.set_rollback(dry_run)
    if not leaving:
        return f"{namespace}/{name} was deleted."
    return (
        f"{counted(leaving, 'pod')} of {namespace}/{name} {'was' if leaving == 1 else 'were'} told "
        "to leave."
    )


def remove_when_empty(group: PodGroup) -> None:
    """Now, or when the last of its pods has left: until then the gang keeps their places on the
    nodes accounted for.
    """
    if group.pods.exists():
        PodGroup.objects.filter(pk=group.pk).update(
            annotations={**group.annotations, DELETED_MARK: "true"}
        )
    else:
        group.delete()
        refresh_states()
