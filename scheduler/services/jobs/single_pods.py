"""Single pods that come from outside: one more of a gang, or a gang of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from scheduler.admission.reading.workload import (
    PodGroupManifest,
    PodManifest,
    read_pod,
)
from scheduler.admission.rules.backlogs import check_backlogs
from scheduler.admission.rules.workloads import admit_pod
from scheduler.admission.violations import Notice, Rejected, Verdict, Violation
from scheduler.domain.access import Permission
from scheduler.domain.queues import DEFAULT
from scheduler.models import Pod, PodGroup
from scheduler.selectors.queues.backlogs import judged
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor, submitter
from scheduler.services.cluster.mirrored import changed_in_cluster
from scheduler.services.files.merge import readable
from scheduler.services.jobs.podgroups import (
    DELETED_MARK,
    asked_scene,
    create_group,
    exists_violation,
    refuse_if_wrong,
    refuse_owned,
    remove_when_empty,
    settle_phase,
)
from scheduler.services.jobs.pods import (
    Priorities,
    class_for,
    longest_run,
    new_pods,
    send_home,
    take_away,
)
from scheduler.services.locks import alone_with_pods, share_tree
from scheduler.services.records import audit

BARE_POD_MARK = "fumarole.io/bare-pod"
"""The annotation of a gang that was made for a single pod, and goes with it."""


@dataclass(frozen=True, slots=True)
class SavedPod:
    pod: Pod
    notices: tuple[Notice, ...] = ()


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
        settle_phase(group)
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
    scene = asked_scene({value.queue or DEFAULT}, namespace, submitter(by))
    queue = value.queue or scene.facts.queue_of_namespace(namespace) or DEFAULT
    access.require_to_submit(by, queue)
    verdict = judged(
        lambda facts: admit_pod(_owner_of_ours(manifest), scene.tree, facts), scene.facts
    )
    refuse_if_wrong(verdict.violations, ())
    marked = replace(
        value.metadata, annotations={**value.metadata.annotations, BARE_POD_MARK: "true"}
    )
    own = PodGroupManifest(
        metadata=marked,
        queue=queue,
        min_member=1,
        priority_class=value.template.priority_class,
    )
    return create_group(own, by), ()


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
    refuse_owned(group, "given its pods")
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
    facts = asked_scene({queue}, group.namespace, group.owner).facts
    verdict = judged(
        lambda known: Verdict(tuple(check_backlogs(queue, known, jobs=0, pods=1))), facts
    )
    refuse_if_wrong(verdict.violations, ())


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
            [exists_violation("pod", group.namespace, pod.name, group.queue.name)], by_state=True
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
        settle_phase(group)
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
        remove_when_empty(pod.podgroup)
    if leaving:
        return f"{pod} was told to leave its node."
    return f"{pod} was deleted."
