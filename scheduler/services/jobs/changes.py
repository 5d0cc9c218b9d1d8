"""What may change of a job once it exists: the size of the gang, replicas and the priority class;
and its end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import QuerySet

from scheduler import notify
from scheduler.admission.reading.workload import JobManifest, read_job
from scheduler.admission.rules.backlogs import is_forbidden_by_state
from scheduler.admission.rules.workloads import admit_job_change
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.jobs.phases import FINISHED, JobPhase
from scheduler.domain.jobs.reactions import PolicyEvents
from scheduler.domain.plans import counted
from scheduler.models import Job, Pod, UnmadePods
from scheduler.selectors.cluster.nodes import OCCUPYING
from scheduler.selectors.files.manifests import stored_job
from scheduler.selectors.queues.backlogs import judged
from scheduler.selectors.queues.submission import submission_scene
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.cluster import job_writes
from scheduler.services.cluster.mirrored import changed_in_cluster
from scheduler.services.files.merge import merge_patch, readable
from scheduler.services.files.versions import Expected, check_version
from scheduler.services.jobs import pod_creation
from scheduler.services.jobs.limit_turns import take_turn
from scheduler.services.jobs.pod_creation import (
    create_some,
    follow_job,
    note_unmade,
    update_podgroup_of,
)
from scheduler.services.jobs.pod_stopping import stop_in_steps
from scheduler.services.jobs.pods import take_away
from scheduler.services.jobs.submit import stored_jobs, sync_jobs
from scheduler.services.locks import alone_with_pods, share_tree
from scheduler.services.queues.states import refresh_states
from scheduler.services.records import audit


@dataclass(frozen=True, slots=True)
class ChangedJob:
    job: Job
    notices: tuple[Notice, ...] = ()
    changed: bool = True


@changed_in_cluster("Job")
def update_job(
    namespace: str,
    name: str,
    manifest: object,
    *,
    by: Actor = SYSTEM,
    merge: bool = False,
    expected_version: Expected = None,
    dry_run: bool = False,
) -> ChangedJob:
    """Raises `Job.DoesNotExist`, `Stale`, and `Rejected` for what may not change."""
    if dry_run:
        job = stored_jobs().get(namespace=namespace, name=name)
        _check_caller(job, by, expected_version)
        return _changed_in_memory(job, manifest, merge)
    if job_writes.are_jobs_in_cluster():
        job = stored_jobs().get(namespace=namespace, name=name)
        _check_caller(job, by, expected_version)
        return _update_in_cluster(job, manifest, by, merge=merge)
    with transaction.atomic():
        share_tree()
        alone_with_pods()
        job = stored_jobs(locked=True).get(namespace=namespace, name=name)
        _check_caller(job, by, expected_version)
        before = stored_job(job)
        old_tasks = job.tasks
        saved = _changed_in_memory(job, manifest, merge)
        if saved.changed:
            _write_change(job, old_tasks)
            _record_update(job, by, before, stored_job(job))
            sync_jobs([job.pk], {job.pk: PolicyEvents(tasks=_shrunk_tasks(old_tasks, job.tasks))})
            job.refresh_from_db()
    return saved


def _update_in_cluster(job: Job, manifest: object, by: Actor, *, merge: bool) -> ChangedJob:
    """The API server stores it, and the mirror brings it in."""
    before = stored_job(job)
    saved = _changed_in_memory(job, manifest, merge)
    if not saved.changed:
        return saved
    after = stored_job(job)
    version = int(job_writes.send_changes(job, before, after))
    _record_update(job, by, before, after)
    rows = Job.objects.filter(pk=job.pk, resource_version__gte=version)
    if not job_writes.shows(rows.exists):
        notice = job_writes.sent_notice(job.queue.name)
        return replace(saved, notices=(*saved.notices, notice))
    job.refresh_from_db()
    return saved


def _record_update(job: Job, by: Actor, before: dict[str, Any], after: dict[str, Any]) -> None:
    audit.record(
        by,
        "UpdateJob",
        "Job",
        job.name,
        namespace=job.namespace,
        queue=job.queue.name,
        before=_short_manifest(before),
        after=_short_manifest(after),
    )


def _check_caller(job: Job, by: Actor, expected_version: Expected) -> None:
    access.require_job_command(by, job.queue.place, job.owner)
    check_version(f"The job {job}", job, expected_version)


def _changed_in_memory(job: Job, manifest: object, merge: bool) -> ChangedJob:
    """The job as the manifest wants it. Nothing is written."""
    before = stored_job(job)
    if merge:
        manifest = merge_patch(before, manifest)
    wanted, notices = _admit_change(job, manifest, before)
    _refuse_while_shrinking(job, wanted)
    changed = _assign_values(job, wanted)
    if changed and hasattr(job, "podgroup"):
        follow_job(job.podgroup, job)
    return ChangedJob(job, notices, changed)


def _refuse_while_shrinking(job: Job, wanted: JobManifest) -> None:
    """The pods of the last change have names that new ones would get."""
    replicas = [task["replicas"] for task in job.tasks]
    if replicas == [task.replicas for task in wanted.tasks]:
        return
    if not hasattr(job, "podgroup") or not job.podgroup.stopping:
        return
    message = f"Pods of {job} are still being removed, so its replicas cannot change now."
    fix = "try again in a minute"
    raise Rejected(
        [Violation("job_is_shrinking", job.queue.name, "spec.tasks", message, fix)], by_state=True
    )


def _shrunk_tasks(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> frozenset[str]:
    """Tasks that have fewer pods now: what is left of them may be done already."""
    found: set[str] = set()
    for old, new in zip(before, after, strict=True):
        if new["replicas"] < old["replicas"]:
            found.add(new["name"])
    return frozenset(found)


def _admit_change(
    job: Job,
    manifest: object,
    before: dict[str, Any],
) -> tuple[JobManifest, tuple[Notice, ...]]:
    facts = submission_scene({job.queue.name}, job.namespace, job.owner).facts
    if take_turn(facts, pods=0):
        facts = submission_scene({job.queue.name}, job.namespace, job.owner).facts
    verdict = judged(lambda known: admit_job_change(manifest, before, known), facts)
    if verdict.violations:
        raise Rejected(
            verdict.violations, verdict.notices, by_state=is_forbidden_by_state(verdict.violations)
        )
    return readable(read_job(manifest, facts), job.name, job.namespace), verdict.notices


def _short_manifest(manifest: dict[str, Any]) -> dict[str, Any]:
    """What can differ, for the audit log; templates can be long and cannot change."""
    spec = manifest["spec"]
    tasks = {}
    for task in spec["tasks"]:
        tasks[task["name"]] = {"replicas": task["replicas"], "minAvailable": task["minAvailable"]}
    labels = {}
    for key in ("labels", "annotations"):
        labels[key] = manifest["metadata"][key]
    return {
        "minAvailable": spec["minAvailable"],
        "priorityClassName": spec.get("priorityClassName", ""),
        "tasks": tasks,
        **labels,
    }


_CHANGEABLE: Final = ("tasks", "min_available", "priority_class", "labels", "annotations")


def _assign_values(job: Job, wanted: JobManifest) -> bool:
    """Whether anything differs from what is stored."""
    tasks = []
    for task, new in zip(job.tasks, wanted.tasks, strict=True):
        tasks.append({**task, "replicas": new.replicas, "minAvailable": new.min_available})
    values = {
        "tasks": tasks,
        "min_available": wanted.min_available,
        "priority_class": wanted.priority_class,
        "labels": wanted.metadata.labels,
        "annotations": wanted.metadata.annotations,
    }
    if all(getattr(job, column) == value for column, value in values.items()):
        return False
    for column, value in values.items():
        setattr(job, column, value)
    job.resource_version += 1
    return True


def _write_change(job: Job, old_tasks: list[dict[str, Any]]) -> None:
    job.save(update_fields=[*_CHANGEABLE, "resource_version"])
    update_podgroup_of(job)
    if JobPhase(job.phase) in (JobPhase.PENDING, JobPhase.RUNNING):
        for old, new in zip(old_tasks, job.tasks, strict=True):
            _scale_task(job, new, old["replicas"])


def _scale_task(job: Job, task: dict[str, Any], before: int) -> None:
    """The last pods of a task go first; new ones are numbered on."""
    pods = Pod.objects.filter(podgroup__job=job, task=task["name"])
    unmade = UnmadePods.objects.filter(podgroup__job=job, task=task["name"])
    if task["replicas"] < before:
        unmade.filter(next_index__gte=task["replicas"]).delete()
        unmade.update(end_index=task["replicas"])
        _remove_surplus(job, pods.filter(index__gte=task["replicas"]))
    elif task["replicas"] > before:
        # those that are still leaving come back when they have left
        pods.filter(index__lt=task["replicas"]).update(unwanted=False)
        # one that has not begins when those it depends on are under way, or at once
        has_begun = pods.exists()
        if not unmade.update(end_index=task["replicas"]) and has_begun:
            note_unmade(
                [
                    UnmadePods(
                        podgroup=job.podgroup,
                        task=task["name"],
                        next_index=before,
                        end_index=task["replicas"],
                    )
                ]
            )
            create_some(job, unmade.get())


def _remove_surplus(job: Job, pods: QuerySet[Pod]) -> None:
    if pods.count() > pod_creation.AT_ONCE:
        stop_in_steps([job])
    else:
        take_away(pods)


@changed_in_cluster("Job")
def delete_job(
    namespace: str,
    name: str,
    *,
    by: Actor = SYSTEM,
    expected_version: Expected = None,
    dry_run: bool = False,
) -> None:
    """Forget a job that has ended and whose pods have left their nodes.

    One that lives is cancelled first.
    """
    if dry_run:
        job = stored_jobs().get(namespace=namespace, name=name)
        _check_caller(job, by, expected_version)
        _refuse_unfinished(job)
        return
    if job_writes.are_jobs_in_cluster():
        job = stored_jobs().get(namespace=namespace, name=name)
        _check_caller(job, by, expected_version)
        _refuse_unfinished(job)
        job_writes.send_deletion(job)
        _record_deletion(job, by)
        job_writes.shows(lambda: not Job.objects.filter(pk=job.pk).exists())
        return
    while _delete_some_pods(namespace, name, by, expected_version):
        pass
    with transaction.atomic():
        share_tree()
        alone_with_pods()
        job = stored_jobs(locked=True).get(namespace=namespace, name=name)
        _check_caller(job, by, expected_version)
        _refuse_unfinished(job)
        _record_deletion(job, by)
        key = str(job)
        queue = job.queue.name
        job.delete()
        refresh_states()
        notify.jobs_changed([key], queues=[queue])


def _record_deletion(job: Job, by: Actor) -> None:
    audit.record(
        by,
        "DeleteJob",
        "Job",
        job.name,
        namespace=job.namespace,
        queue=job.queue.name,
        before=_short_manifest(stored_job(job)),
    )


def _delete_some_pods(namespace: str, name: str, by: Actor, expected_version: Expected) -> bool:
    """A step before the deletion of a job with very many pods. False when few are left.

    Other writers take their turns in between. As part of a larger transaction there are no steps.
    """
    if connection.in_atomic_block:
        return False
    with transaction.atomic():
        share_tree()
        alone_with_pods()
        began = time.monotonic()
        job = stored_jobs(locked=True).get(namespace=namespace, name=name)
        _check_caller(job, by, expected_version)
        _refuse_unfinished(job)
        first = Pod.objects.filter(podgroup__job=job).order_by("pk").values_list("pk", flat=True)
        chosen = list(first[: pod_creation.AT_ONCE])
        if len(chosen) < pod_creation.AT_ONCE:
            return False
        Pod.objects.filter(pk__in=chosen).delete()
    time.sleep(time.monotonic() - began)
    return True


def _refuse_unfinished(job: Job) -> None:
    """Whoever forgot a pod that is still on its node would never tell the cluster to stop it."""
    leaving = Pod.objects.filter(podgroup__job=job, phase__in=OCCUPYING).count()
    if JobPhase(job.phase) not in FINISHED:
        message = f"{job} is {job.phase}; only a job that has ended can be deleted."
        fix = "cancel it first"
    elif leaving:
        message = f"{job} is {job.phase}, but has {counted(leaving, 'pod')} on nodes still."
        fix = "wait until they have left"
    else:
        return
    raise Rejected(
        [Violation("job_not_finished", job.queue.name, "status.state.phase", message, fix)],
        by_state=True,
    )
