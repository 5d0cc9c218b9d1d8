"""Gangs and pods that come from outside, from a customised controller: submitted, changed and taken
away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from scheduler import notify
from scheduler.admission.reading.queue import Reading, place_of
from scheduler.admission.reading.waiting_times import waiting_time
from scheduler.admission.reading.workload import (
    PodGroupManifest,
    PodManifest,
    read_pod,
    read_podgroup,
)
from scheduler.admission.rules.backlogs import check_backlogs, is_forbidden_by_state
from scheduler.admission.rules.workloads import admit_pod, admit_podgroup_change, podgroup_verdict
from scheduler.admission.violations import Notice, Rejected, Verdict, Violation
from scheduler.domain.access import Permission
from scheduler.domain.plans import counted
from scheduler.domain.queues import DEFAULT
from scheduler.models import Namespace, Pod, PodGroup, Queue
from scheduler.selectors.files.manifests import stored_podgroup
from scheduler.selectors.queues.backlogs import judged
from scheduler.selectors.queues.facts import Scene, submission_scene
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor, submitter
from scheduler.services.cluster.mirrored import changed_in_cluster
from scheduler.services.files.merge import merge_patch, readable
from scheduler.services.files.versions import Expected, check_version
from scheduler.services.jobs.limit_turns import take_turn
from scheduler.services.jobs.pods import (
    Priorities,
    class_for,
    longest_run,
    new_pods,
    send_home,
    take_away,
)
from scheduler.services.locks import alone_with_pods, share_tree
from scheduler.services.queues.states import refresh_states
from scheduler.services.records import audit
from scheduler.services.sessions.requests import want_session

DELETED_MARK = "fumarole.io/deleted"
BARE_POD_MARK = "fumarole.io/bare-pod"  # a gang that was made for a single pod, and goes with it
"""The annotation of a gang that goes as soon as the last of its pods has left."""


@dataclass(frozen=True, slots=True)
class SavedPodGroup:
    podgroup: PodGroup
    notices: tuple[Notice, ...] = ()
    changed: bool = True


@dataclass(frozen=True, slots=True)
class SavedPod:
    pod: Pod
    notices: tuple[Notice, ...] = ()


def check_podgroup(
    manifest: object, user: str
) -> tuple[Reading[PodGroupManifest], tuple[Violation, ...], tuple[Notice, ...]]:
    namespace, queue = place_of(manifest)
    scene = _scene({queue, DEFAULT}, namespace, user)
    reading = read_podgroup(manifest, scene.facts)
    verdict = judged(lambda facts: podgroup_verdict(reading, scene.tree, facts), scene.facts)
    return reading, verdict.violations, verdict.notices


def _scene(queues: set[str], namespace: str, user: str) -> Scene:
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
        _refuse_if_wrong(violations, notices)
        assert reading.value is not None
        group = _create_group(reading.value, by)
        audit.record(
            by,
            "CreatePodGroup",
            "PodGroup",
            group.name,
            namespace=group.namespace,
            queue=group.queue.name,
            after=stored_podgroup(group),
        )
        _settle_phase(group)
        transaction.set_rollback(dry_run)
    return SavedPodGroup(group, notices)


def _refuse_if_wrong(violations: Iterable[Violation], notices: Iterable[Notice]) -> None:
    violations = tuple(violations)
    if violations:
        raise Rejected(violations, notices, by_state=is_forbidden_by_state(violations))


def _create_group(value: PodGroupManifest, by: Actor) -> PodGroup:
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
            [_exists_violation("podgroup", namespace, value.metadata.name, value.queue)],
            by_state=True,
        ) from None


def _exists_violation(kind: str, namespace: str, name: str, queue: str) -> Violation:
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


def _settle_phase(group: PodGroup) -> None:
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
            _refuse_owned(group, "changed")
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
            _settle_phase(group)
        transaction.set_rollback(dry_run)
    return SavedPodGroup(group, notices, changed)


def _changed_reading(
    group: PodGroup,
    manifest: object,
    before: Mapping[str, Any],
) -> tuple[PodGroupManifest, tuple[Notice, ...]]:
    facts = submission_scene({group.queue.name}, group.namespace).facts
    verdict = admit_podgroup_change(manifest, before, facts)
    _refuse_if_wrong(verdict.violations, verdict.notices)
    return readable(read_podgroup(manifest, facts), group.name, group.namespace), verdict.notices


def _refuse_owned(group: PodGroup, done: str) -> None:
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
        _refuse_owned(group, "deleted")
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
        _remove_when_empty(group)
        _settle_phase(group)
        transaction.set_rollback(dry_run)
    if not leaving:
        return f"{namespace}/{name} was deleted."
    return (
        f"{counted(leaving, 'pod')} of {namespace}/{name} {'was' if leaving == 1 else 'were'} told "
        "to leave."
    )


def _remove_when_empty(group: PodGroup) -> None:
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


# Single pods


@changed_in_cluster("Pod")
def submit_pod(manifest: object, *, by: Actor = SYSTEM, dry_run: bool = False) -> SavedPod:
    """A pod of a gang that is there already, or a bare one, which becomes a gang of its own."""
    with transaction.atomic():
        share_tree()
        reading = read_pod(_owner_of_ours(manifest))
        value = readable(reading)
        group, notices = _group_for(value, manifest, by)
        pod = _create_pod(value, group)
        audit.record(
            by,
            "CreatePod",
            "Pod",
            pod.name,
            namespace=pod.namespace,
            queue=group.queue.name,
            after={"podgroup": str(group)},
        )
        _settle_phase(group)
        transaction.set_rollback(dry_run)
    return SavedPod(pod, (*reading.notices, *notices))


def _owner_of_ours(manifest: object) -> object:
    """Whatever comes here is meant for this scheduler."""
    if not isinstance(manifest, Mapping) or not isinstance(manifest.get("spec") or {}, Mapping):
        return manifest
    return {**manifest, "spec": {**(manifest.get("spec") or {}), "schedulerName": "volcano"}}


def _group_for(
    value: PodManifest,
    manifest: object,
    by: Actor,
) -> tuple[PodGroup, tuple[Notice, ...]]:
    namespace = value.metadata.namespace or DEFAULT
    if value.podgroup:
        group = _named_group(namespace, value.podgroup, by)
        _refuse_one_too_many(group)
        return group, ()
    scene = _scene({value.queue or DEFAULT}, namespace, submitter(by))
    queue = value.queue or scene.facts.queue_of_namespace(namespace) or DEFAULT
    access.require_to_submit(by, queue)
    verdict = judged(
        lambda facts: admit_pod(_owner_of_ours(manifest), scene.tree, facts), scene.facts
    )
    _refuse_if_wrong(verdict.violations, ())
    marked = replace(
        value.metadata, annotations={**value.metadata.annotations, BARE_POD_MARK: "true"}
    )
    own = PodGroupManifest(
        metadata=marked,
        queue=queue,
        min_member=1,
        priority_class=value.template.priority_class,
    )
    return _create_group(own, by), ()


def _named_group(namespace: str, name: str, by: Actor) -> PodGroup:
    """Nobody can end or delete it until the pod is there: a session that completed it meanwhile
    would never look at the pod.
    """
    alone_with_pods()
    group = (
        PodGroup.objects.select_related("queue", "job")
        .filter(namespace=namespace, name=name)
        .first()
    )
    if group is None or not access.access_for(by).may(Permission.VIEW, group.queue.place):
        message = f"There is no podgroup {namespace}/{name}."
        field = "metadata.annotations[scheduling.k8s.io/group-name]"
        raise Rejected(
            [Violation("podgroup_not_found", "", field, message, "create the podgroup first")]
        )
    access.require_job_command(by, group.queue.place, group.owner)
    _refuse_owned(group, "given its pods")
    if group.phase == "Completed" or DELETED_MARK in group.annotations:
        message = (
            f"The podgroup {group} is "
            f"{'being deleted' if DELETED_MARK in group.annotations else 'Completed'} and takes no "
            "more pods."
        )
        raise Rejected(
            [
                Violation(
                    "podgroup_completed",
                    group.queue.name,
                    "metadata.name",
                    message,
                    "create another",
                )
            ],
            by_state=True,
        )
    return group


def _refuse_one_too_many(group: PodGroup) -> None:
    queue = group.queue.name
    facts = _scene({queue}, group.namespace, group.owner).facts
    verdict = judged(
        lambda known: Verdict(tuple(check_backlogs(queue, known, jobs=0, pods=1))), facts
    )
    _refuse_if_wrong(verdict.violations, ())


def _create_pod(value: PodManifest, group: PodGroup) -> Pod:
    template = value.template
    own_class = template.priority_class or group.priority_class
    priority = Priorities.load().of(own_class)
    pod_class = class_for(template, priority, namespace=group.namespace, priority_class=own_class)
    task = (
        template.annotations.get("volcano.sh/task-spec")
        or template.labels.get("volcano.sh/task-spec")
        or ""
    )
    pod = new_pods(
        group,
        pod_class,
        template,
        task[:63],
        {group.pods.count(): value.metadata.name},
    )[0]
    PodGroup.objects.filter(pk=group.pk).update(
        size=F("size") + 1, expected_seconds=_run_time_with(group, template.run_seconds)
    )
    try:
        with transaction.atomic():
            pod.save(force_insert=True)
    except IntegrityError:
        raise Rejected(
            [_exists_violation("pod", group.namespace, pod.name, group.queue.name)], by_state=True
        ) from None
    return pod


def _run_time_with(group: PodGroup, seconds: float | None) -> float | None:
    """How long the gang is declared to run once it has one more pod of so many seconds."""
    is_first = group.size == 0
    if is_first:
        return seconds
    return longest_run([group.expected_seconds, seconds])


@changed_in_cluster("Pod")
def delete_pod(namespace: str, name: str, *, by: Actor = SYSTEM, dry_run: bool = False) -> str:
    """A job's pod comes back as a new one; any other is gone once it has left its node."""
    with transaction.atomic():
        share_tree()
        alone_with_pods()
        pod = (
            Pod.objects.select_for_update(of=("self",))
            .select_related("podgroup__queue", "podgroup__job")
            .get(namespace=namespace, name=name)
        )
        group = pod.podgroup
        access.require_job_command(by, group.queue.place, group.owner)
        audit.record(
            by,
            "DeletePod",
            "Pod",
            name,
            namespace=namespace,
            queue=group.queue.name,
            before={"podgroup": str(group), "phase": pod.phase},
        )
        if group.job is not None:
            message = _restart_pod(pod)
        else:
            message = _take_away_one(pod)
        _settle_phase(group)
        transaction.set_rollback(dry_run)
    return message


def _restart_pod(pod: Pod) -> str:
    if pod.phase not in ("Binding", "Bound", "Running"):
        message = (
            f"The pod {pod} belongs to the job {pod.podgroup.job} and is {pod.phase}: there is "
            "nothing to stop."
        )
        raise Rejected(
            [
                Violation(
                    "owned_by_job",
                    pod.podgroup.queue.name,
                    "metadata.name",
                    message,
                    "cancel the job",
                )
            ],
            by_state=True,
        )
    send_home(Pod.objects.filter(pk=pod.pk), "stopped on request", timezone.now())
    return f"{pod} was told to stop; its job will create it again."


def _take_away_one(pod: Pod) -> str:
    leaving = take_away(Pod.objects.filter(pk=pod.pk))
    if BARE_POD_MARK in pod.podgroup.annotations:
        _remove_when_empty(pod.podgroup)
    if leaving:
        return f"{pod} was told to leave its node."
    return f"{pod} was deleted."
