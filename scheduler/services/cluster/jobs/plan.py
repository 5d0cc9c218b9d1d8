"""What is to be done for a job now: a decision, or what an earlier decision left to do.

Pure. A decision is one write of the status, and nothing else is done in that round. What follows
from it is worked out anew from what the cluster then tells, so it makes no difference who decided,
and whether they lived to carry it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from scheduler.admission.reading.workload import TaskManifest
from scheduler.clusters.kubernetes import job_objects, job_plugins
from scheduler.clusters.kubernetes.values import CommandObject, PodGroupObject, PodObject
from scheduler.domain.jobs.commands import COMMANDS, NotPossible, command
from scheduler.domain.jobs.facts import JobFacts, JobStep
from scheduler.domain.jobs.phases import FINISHED, JobPhase
from scheduler.domain.jobs.policies import ACTION_NAMES, JobEvent, read_policies
from scheduler.domain.jobs.reactions import PolicyEvents, follow_policies
from scheduler.domain.jobs.settling import ready_tasks, settle
from scheduler.domain.resources import Resources
from scheduler.services.cluster.jobs import status as job_status
from scheduler.services.cluster.jobs.restarts import LAST_COMMAND
from scheduler.services.cluster.jobs.situation import Situation
from scheduler.services.jobs.pods import minimum_resources

MOST_PODS: Final = 500
"""Made in one round, so that the job's status and others have their turn."""
CANNOT_MAKE: Final = "Its pods cannot be made: "


@dataclass(frozen=True, slots=True)
class NewPod:
    task: TaskManifest = field(hash=False)
    index: int


@dataclass(frozen=True, slots=True)
class Obeyed:
    """A Command that is over once its status was written. `message` says what came of it."""

    command: CommandObject
    message: str
    step: JobStep | None = None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """`status` holds the changes to the status; `is_decision` that all else has to wait for them.

    `doubts_pods`: it was decided because pods seem to be gone that the mirror may not know yet.
    """

    status: dict[str, Any] = field(default_factory=dict)
    is_decision: bool = False
    doubts_pods: bool = False
    obeyed: Obeyed | None = None
    podgroup: dict[str, Any] | None = None
    podgroup_changes: dict[str, Any] = field(default_factory=dict)
    service: dict[str, Any] | None = None
    pods_to_delete: tuple[PodObject, ...] = ()
    pods_to_make: tuple[NewPod, ...] = ()
    ended_podgroup: PodGroupObject | None = None
    ends_job: bool = False
    look_at: datetime | None = None

    @property
    def is_empty(self) -> bool:
        return not (
            self.status
            or self.obeyed
            or self.podgroup
            or self.podgroup_changes
            or self.pods_to_delete
            or self.pods_to_make
            or self.ended_podgroup
            or self.ends_job
        )


def plan_for(situation: Situation) -> Plan:
    job = situation.job
    if job.meta.deleted:
        return Plan()
    if situation.commands:
        return _obey(situation, situation.commands[0])
    if not job.phase:
        return _decision(situation, job_status.first_status(situation))
    steps, doubts = _steps(situation)
    if steps:
        return _decision(situation, job_status.status_after(situation, steps), doubts=doubts)
    return _carry_on(situation)


def _decision(situation: Situation, wanted: dict[str, Any], *, doubts: bool = False) -> Plan:
    changes = job_status.changes(situation.job.status, wanted)
    return Plan(status=changes, is_decision=True, doubts_pods=doubts)


# Decisions


def _steps(situation: Situation) -> tuple[list[JobStep], bool]:
    """The steps that policies or the pods themselves ask for, and whether pods are missed."""
    facts = situation.facts()
    if situation.is_live:
        events = situation.events()
        names = frozenset(task.name for task in facts.tasks)
        steps = _by_policy(situation, facts, PolicyEvents(events, names))
        if steps:
            return steps, any(event is JobEvent.POD_EVICTED for event, _, _ in events)
    step = settle(facts)
    if step is None:
        return [], False
    return [step], False


def _by_policy(situation: Situation, facts: JobFacts, news: PolicyEvents) -> list[JobStep]:
    job = situation.job.job
    by_task = {}
    for task in job.tasks:
        by_task[task.name] = read_policies(task.policies, "").policies
    return follow_policies(facts, news, by_task, read_policies(job.policies, "").policies)


def _obey(situation: Situation, order: CommandObject) -> Plan:
    if situation.controlled.get(LAST_COMMAND) == order.meta.uid:
        return Plan(obeyed=Obeyed(order, situation.job.message))
    action = ACTION_NAMES.get(order.action)
    if action not in COMMANDS:
        return Plan(obeyed=Obeyed(order, f"{order.action} is no command for a job", refused=True))
    try:
        step = command(situation.facts(), action)
    except NotPossible as refusal:
        return Plan(obeyed=Obeyed(order, str(refusal), refused=True))
    if step is None:
        message = f"it is {situation.phase} already"
        return Plan(obeyed=Obeyed(order, message))
    wanted = job_status.status_after(situation, [step], command_uid=order.meta.uid)
    changes = job_status.changes(situation.job.status, wanted)
    return Plan(status=changes, is_decision=True, obeyed=Obeyed(order, step.message, step))


# What is left to do


def _carry_on(situation: Situation) -> Plan:
    if situation.is_live:
        return _live_plan(situation)
    counts = job_status.changes(situation.job.status, job_status.counts_of(situation))
    unwanted = tuple(_unwanted_pods(situation))
    if situation.phase not in FINISHED:
        return Plan(status=counts, pods_to_delete=unwanted)
    return Plan(
        status=counts,
        pods_to_delete=unwanted,
        ended_podgroup=_ended_podgroup(situation),
        **_end_of_life(situation),
    )


def _unwanted_pods(situation: Situation) -> Iterator[PodObject]:
    """Pods that have ended are kept for their logs, unless the job starts again."""
    for pod in situation.pods:
        stays = pod.is_finished and situation.phase is not JobPhase.RESTARTING
        if not stays and not pod.meta.deleted:
            yield pod


def _ended_podgroup(situation: Situation) -> PodGroupObject | None:
    """Once no pod of it is left on a node."""
    if any(not pod.is_finished for pod in situation.pods):
        return None
    group = situation.podgroup
    if group is None or group.meta.deleted:
        return None
    return group


def _end_of_life(situation: Situation) -> dict[str, Any]:
    lifetime = situation.job.job.ttl_seconds_after_finished
    ended = situation.job.phase_since
    if lifetime is None or ended is None or situation.phase is JobPhase.ABORTED:
        return {}
    due = ended + timedelta(seconds=lifetime)
    if due <= situation.now:
        return {"ends_job": True}
    return {"look_at": due}


def _live_plan(situation: Situation) -> Plan:
    leftovers = []
    for pod in situation.pods:
        if not pod.meta.deleted and (situation.is_leftover(pod) or situation.is_surplus(pod)):
            leftovers.append(pod)
    missing = tuple(_missing_pods(situation))[:MOST_PODS]
    wanted = job_status.counts_of(situation)
    if not missing and situation.job.message.startswith(CANNOT_MAKE):
        wanted["state"] = {"phase": situation.job.phase, "message": ""}
    changes = job_status.changes(situation.job.status, wanted)
    least = _min_resources(situation)
    group = situation.podgroup
    if group is None:
        return Plan(
            status=changes,
            podgroup=job_objects.podgroup_manifest(situation.job, least),
            service=job_plugins.service_manifest(situation.job),
            pods_to_delete=tuple(leftovers),
            pods_to_make=missing,
        )
    return Plan(
        status=changes,
        podgroup_changes=_podgroup_changes(situation, group, least),
        pods_to_delete=tuple(leftovers),
        pods_to_make=missing,
    )


def _missing_pods(situation: Situation) -> Iterator[NewPod]:
    """Of the tasks that have begun or may begin now. A name is free once its last pod is gone."""
    facts = situation.facts()
    ready = set(ready_tasks(facts))
    held: dict[str, set[int]] = {}
    for pod in situation.pods:
        held.setdefault(pod.task, set()).add(pod.task_index or 0)
    for task, count in zip(situation.job.job.tasks, facts.tasks, strict=True):
        if not count.created and task.name not in ready:
            continue
        taken = held.get(task.name, set())
        for index in range(task.replicas):
            if index not in taken:
                yield NewPod(task, index)


def _min_resources(situation: Situation) -> Resources:
    gang = job_objects.gang_tasks(situation.job)
    least = min(situation.job.job.min_available, sum(task.replicas for task in gang))
    rows = [(task.template.requests, task.min_available, task.replicas) for task in gang]
    return minimum_resources(rows, least)


def _podgroup_changes(
    situation: Situation, group: PodGroupObject, least: Resources
) -> dict[str, Any]:
    """After the job was scaled, or got another priority."""
    wanted = job_objects.podgroup_spec(situation.job, least)
    changes: dict[str, Any] = {}
    if group.min_member != wanted["minMember"]:
        changes["minMember"] = wanted["minMember"]
    members = job_status.merged_changes(group.min_task_member, wanted["minTaskMember"])
    if members:
        changes["minTaskMember"] = members
    if group.min_resources != least:
        gone = dict.fromkeys(group.min_resources or {})
        changes["minResources"] = {**gone, **wanted["minResources"]}
    if group.priority_class != wanted["priorityClassName"]:
        changes["priorityClassName"] = wanted["priorityClassName"]
    return changes
