"""What becomes of jobs: the steps that follow from their pods, their policies and commands, taken
for any number of jobs at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, Q
from django.utils import timezone

from scheduler import notify
from scheduler.domain.jobs.dependencies import dependency_of
from scheduler.domain.jobs.facts import DEFAULT_MAX_RETRY, JobFacts, JobStep, TaskCount
from scheduler.domain.jobs.phases import FINISHED, JobPhase
from scheduler.domain.jobs.policies import JobEvent, read_policies
from scheduler.domain.jobs.reactions import PolicyEvents, follow_policies
from scheduler.domain.jobs.running_time import Stage, run_begun
from scheduler.domain.jobs.settling import ready_tasks, settle
from scheduler.models import Job, Pod, PodGroup, UnmadePods
from scheduler.models.bulk import as_parameter, execute, json_column, values_table
from scheduler.services.jobs.pod_creation import create_pods, first_tasks
from scheduler.services.jobs.pod_stopping import stop_pods_of
from scheduler.services.jobs.pods import TASK_STARTS_ANEW, fresh_start, send_home
from scheduler.services.locks import alone_with_pods
from scheduler.services.notices.gangs import say_jobs_moved
from scheduler.services.queues.states import refresh_states
from scheduler.services.records.events import EventNote, record_events
from scheduler.services.sessions.requests import want_session

MOST_ROUNDS = 4
"""Stopping may be over at once, and so may what follows it; no chain of steps is longer."""


def sync_jobs(ids: Iterable[int], news: Mapping[int, PolicyEvents] | None = None) -> None:
    """Bring these jobs in line with their pods. `news` are those of each job, for its policies."""
    with transaction.atomic():
        alone_with_pods()
        jobs = list(
            Job.objects.select_for_update(of=("self",))
            .filter(pk__in=list(ids))
            .select_related("queue", "podgroup")
            .order_by("pk")
        )
        if not jobs:
            return
        now = timezone.now()
        if news:
            facts = facts_of(jobs)
            told = [job for job in jobs if job.pk in news]
            steps = []
            for job in told:
                for step in _by_policy(job, facts[job.pk], news[job.pk]):
                    steps.append((job, step))
            take_steps(steps, now)
        settle_jobs(jobs, now)
        announce(jobs)


def tell_jobs_of_unknown(podgroups: Iterable[int]) -> None:
    """Gangs that lost members while others run on: what their jobs' policies make of it."""
    jobs = list(Job.objects.filter(podgroup__in=list(podgroups)).values_list("pk", flat=True))
    if jobs:
        news = PolicyEvents([(JobEvent.JOB_UNKNOWN, "", None)])
        sync_jobs(jobs, dict.fromkeys(jobs, news))


def announce(jobs: Iterable[Job]) -> None:
    want_session()
    notify.jobs_changed(str(job) for job in jobs)


def _by_policy(job: Job, facts: JobFacts, news: PolicyEvents) -> list[JobStep]:
    own = read_policies(job.policies, "").policies
    by_task = {}
    for task in job.tasks:
        by_task[task["name"]] = read_policies(task.get("policies") or [], "").policies
    return follow_policies(facts, news, by_task, own)


# How many pods of each task have come how far

_COUNTED_AS = {
    "Pending": "pending",
    "Binding": "placed",
    "Bound": "placed",
    "Running": "running",
    "Unknown": "running",
    "Releasing": "leaving",
    "Succeeded": "succeeded",
    "Failed": "failed",
}


def facts_of(jobs: Sequence[Job]) -> dict[int, JobFacts]:
    """A pod that nobody wants any more still has its name and its place until it has left.

    One that is still to be made waits.
    """
    counted: dict[int, dict[str, dict[str, int]]] = {}
    pods = Pod.objects.filter(podgroup__job__in=[job.pk for job in jobs]).order_by()
    rows = pods.values_list("podgroup__job", "task", "phase", "unwanted").annotate(
        number=Count("pk")
    )
    for job_id, task, phase, unwanted, number in rows:
        sums = counted.setdefault(job_id, {}).setdefault(task, {})
        if unwanted:
            counted_as = "leaving"
        else:
            counted_as = _COUNTED_AS[phase]
        sums[counted_as] = sums.get(counted_as, 0) + number
    unmade = UnmadePods.objects.filter(podgroup__job__in=[job.pk for job in jobs]).order_by()
    for job_id, task, first, end in unmade.values_list(
        "podgroup__job", "task", "next_index", "end_index"
    ):
        sums = counted.setdefault(job_id, {}).setdefault(task, {})
        sums["pending"] = sums.get("pending", 0) + end - first
    facts: dict[int, JobFacts] = {}
    for job in jobs:
        facts[job.pk] = _job_facts(job, counted.get(job.pk, {}))
    return facts


def _job_facts(job: Job, counted: Mapping[str, Mapping[str, int]]) -> JobFacts:
    dependencies = {}
    tasks = []
    for task in job.tasks:
        name = task["name"]
        dependencies[name] = dependency_of(task)
        tasks.append(_task_count(task, counted.get(name), job.task_retries.get(name, 0)))
    return JobFacts(
        phase=JobPhase(job.phase),
        min_available=job.min_available,
        tasks=tuple(tasks),
        dependencies=dependencies,
        min_success=job.min_success,
        retry_count=job.retry_count,
        max_retry=job.max_retry,
    )


_NO_LIMIT_OF_ITS_OWN = (-1, DEFAULT_MAX_RETRY)
"""The default is written into every task that says nothing, by Volcano's webhook too: then the
job's limit is meant.
"""


def _task_count(
    task: Mapping[str, Any],
    counted: Mapping[str, int] | None,
    retries: int,
) -> TaskCount:
    created = counted is not None or task["replicas"] == 0
    if task["maxRetry"] in _NO_LIMIT_OF_ITS_OWN:
        most = None
    else:
        most = task["maxRetry"]
    return TaskCount(
        task["name"],
        task["replicas"],
        task["minAvailable"],
        created=created,
        retries=retries,
        max_retry=most,
        **(counted or {}),
    )


# Steps


def settle_jobs(jobs: Sequence[Job], now: datetime) -> None:
    """Let every job go where its pods take it, until none moves any more."""
    finished = False
    for _ in range(MOST_ROUNDS):
        facts = facts_of(jobs)
        settled = [job for job in jobs if not job.podgroup.stopping]
        steps = []
        for job in settled:
            if step := settle(facts[job.pk]):
                steps.append((job, step))
        take_steps(steps, now)
        moved = {job.pk for job, _ in steps}
        _start_ready_tasks([(job, facts[job.pk]) for job in jobs if job.pk not in moved], now)
        finished |= _complete_podgroups(
            [job for job in jobs if JobPhase(job.phase) in FINISHED], now
        )
        if not steps:
            break
    if finished:
        refresh_states()


def _start_ready_tasks(jobs: Sequence[tuple[Job, JobFacts]], now: datetime) -> None:
    waiting = []
    for job, facts in jobs:
        if facts.phase in (JobPhase.PENDING, JobPhase.RUNNING):
            waiting.append((job, facts))
    ready = []
    for job, facts in waiting:
        if not all(task.created for task in facts.tasks):
            ready.append((job, _ready_task_templates(job, facts)))
    stuck = _make_pods(ready)
    take_steps([(job, NAMES_TAKEN) for job in stuck], now)


NAMES_TAKEN = JobStep(
    JobPhase.FAILED, "other pods already have the names that its pods would get", stop_pods=True
)


def _make_pods(wanted: Sequence[tuple[Job, Sequence[Mapping[str, Any]]]]) -> list[Job]:
    """The jobs whose pods cannot be made: names were free when they were submitted, and one such
    job must not stop all others.
    """
    try:
        with transaction.atomic():
            create_pods(wanted)
    except IntegrityError:
        if len(wanted) == 1:
            return [wanted[0][0]]
        found: list[Job] = []
        for one in wanted:
            for job in _make_pods([one]):
                found.append(job)
        return found
    return []


def _ready_task_templates(job: Job, facts: JobFacts) -> list[Mapping[str, Any]]:
    ready = set(ready_tasks(facts))
    templates: list[Mapping[str, Any]] = []
    for task in job.tasks:
        if task["name"] in ready:
            templates.append(task)
    return templates


def _complete_podgroups(jobs: Sequence[Job], now: datetime) -> bool:
    """A job that ended has no live podgroup, once the last of its pods has left its node.

    Whether any was completed.
    """
    groups = PodGroup.objects.filter(job__in=[job.pk for job in jobs]).exclude(phase="Completed")
    ended = groups.exclude(
        pods__phase__in=("Pending", "Binding", "Bound", "Running", "Releasing", "Unknown")
    )
    if jobs:
        ids = list(ended.values_list("pk", flat=True))
    else:
        ids = []
    if ids:
        PodGroup.objects.filter(pk__in=ids).update(
            phase="Completed",
            finished_at=now,
            reason_code="",
            reason_message="",
            reason_figures={},
            reason_checks=[],
        )
    return bool(ids)


def take_steps(steps: Sequence[tuple[Job, JobStep]], now: datetime) -> None:
    """Write steps of many jobs: pods first, then podgroups, then the jobs.

    The number of statements does not grow with them.
    """
    if not steps:
        return
    stop_pods_of([(job, step) for job, step in steps if step.stop_pods], now)
    _restart_parts([(job, step) for job, step in steps if step.again], now)
    cleared = []
    for job, step in steps:
        if step.phase in (JobPhase.ABORTED, JobPhase.PENDING) and not step.again:
            cleared.append(job.pk)
    if cleared:
        Pod.objects.filter(podgroup__job__in=cleared, phase__in=("Succeeded", "Failed")).delete()
    moved = [(job, job.phase) for job, _ in steps]
    for job, step in steps:
        _change_job(job, step, now)
    begun = [job for job, step in steps if step.new_pods]
    stuck = _make_pods([(job, first_tasks(job)) for job in begun])
    for job in stuck:
        _change_job(job, NAMES_TAKEN, now)
    if begun:
        PodGroup.objects.filter(job__in=[job.pk for job in begun]).update(
            phase="Pending",
            stopping=False,
            finished_at=None,
            started_at=None,
            enqueued_at=None,
            starving_since=None,
            conditions=[],
            pod_conditions=[],
        )
    _save_jobs([job for job, _ in steps])
    notes = []
    for job, step in steps:
        shown = NAMES_TAKEN if job in stuck else step
        notes.append(_event_note(job, shown))
    record_events(notes, now)
    say_jobs_moved(moved)


def _restart_parts(steps: Sequence[tuple[Job, JobStep]], now: datetime) -> None:
    """Pods that ended come back at once, those on a node once they have left it."""
    if not steps:
        return
    parts = Q()
    for job, step in steps:
        part = Q(podgroup__job=job, task=step.again)
        parts |= part & Q(phase="Failed") if step.only_failed else part
    chosen = list(Pod.objects.filter(parts).exclude(phase="Pending").values_list("pk", "phase"))
    ended = []
    placed = []
    for pk, phase in chosen:
        if phase in ("Succeeded", "Failed"):
            ended.append(pk)
        else:
            placed.append(pk)
    fresh_start(Pod.objects.filter(pk__in=ended), now)
    if placed:
        send_home(Pod.objects.filter(pk__in=placed), TASK_STARTS_ANEW, now)
        # those that were leaving anyway come back for this too
        Pod.objects.filter(pk__in=placed).update(message=TASK_STARTS_ANEW)


def _change_job(job: Job, step: JobStep, now: datetime) -> None:
    if job.phase != step.phase.value:
        before = Stage(job.phase, job.phase_since, job.run_begun_at, job.run_paused_at)
        job.run_begun_at = run_begun(before, step.phase, now)
        job.run_paused_at = None
        job.phase = step.phase.value
        job.phase_since = now
    job.message = step.message[:1024]
    _count_retries(job, step)
    job.version += step.new_pods
    job.resource_version += 1
    if step.phase is JobPhase.RUNNING and job.started_at is None:
        job.started_at = now
    if step.phase in FINISHED:
        job.finished_at = now
    else:
        job.finished_at = None


def _count_retries(job: Job, step: JobStep) -> None:
    """The retries of a task count its pods: when all are created again, the count starts over."""
    if step.forgives:
        job.retry_count = 0
    else:
        job.retry_count = job.retry_count + step.retries
    if step.forgives or step.new_pods:
        job.task_retries = {}
    elif step.again:
        job.task_retries = {
            **job.task_retries,
            step.again: job.task_retries.get(step.again, 0) + step.retries,
        }


_COLUMNS = {
    "id": "bigint",
    "phase": "text",
    "phase_since": "timestamptz",
    "run_begun_at": "timestamptz",
    "run_paused_at": "timestamptz",
    "message": "text",
    "retry_count": "integer",
    "task_retries": "text",
    "resource_version": "bigint",
    "version": "integer",
    "started_at": "timestamptz",
    "finished_at": "timestamptz",
}


def _save_jobs(jobs: Sequence[Job]) -> None:
    changed = ", ".join(f"{name} = {_stored_column(name)}" for name in _COLUMNS if name != "id")
    rows = []
    for job in {job.pk: job for job in jobs}.values():
        rows.append(
            {name: getattr(job, name) for name in _COLUMNS}
            | {"task_retries": json.dumps(job.task_retries)}
        )
    execute(
        f"UPDATE scheduler_job SET {changed} FROM {values_table('d', _COLUMNS)} WHERE "
        "scheduler_job.id = d.id",
        [as_parameter(rows)],
    )


def _stored_column(column: str) -> str:
    if column == "task_retries":
        return json_column(f"d.{column}")
    return f"d.{column}"


def _event_note(job: Job, step: JobStep) -> EventNote:
    message = step.message or f"job is {step.phase}"
    return EventNote(
        "Job",
        job.name,
        step.phase.value,
        message,
        job.namespace,
        job.queue.name,
        warning=step.phase is JobPhase.FAILED,
    )
