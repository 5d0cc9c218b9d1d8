"""Where a job stands by its pods alone, and which of its tasks may begin now."""

from __future__ import annotations

from dataclasses import replace

from scheduler.domain.jobs.dependencies import Dependency, first_to_begin
from scheduler.domain.jobs.facts import JobFacts, JobStep, TaskCount
from scheduler.domain.jobs.phases import AFTER_STOPPING, JobPhase
from scheduler.domain.plans import counted


def settle(facts: JobFacts) -> JobStep | None:
    """Where the job stands by its pods alone; None when it stays where it is."""
    if facts.phase in AFTER_STOPPING:
        return _settle_stopping(facts)
    has_started = facts.total("started") >= max(1, facts.min_available)
    if facts.phase is JobPhase.PENDING and has_started:
        return _settle_running(facts) or JobStep(JobPhase.RUNNING)
    if facts.phase in (JobPhase.RUNNING, JobPhase.PENDING):
        return _settle_running(facts)
    return None


def phase_after_stopping(facts: JobFacts, step: JobStep) -> JobPhase:
    """The phase of a job as soon as this step has stopped its pods.

    Pods that wait are gone at once. Those on nodes are still leaving.
    """
    tasks = []
    for task in facts.tasks:
        leaving = task.placed + task.running + task.leaving
        tasks.append(replace(task, pending=0, placed=0, running=0, leaving=leaving))
    following = settle(replace(facts, phase=step.phase, tasks=tuple(tasks)))
    if following is None:
        return step.phase
    return following.phase


def _settle_stopping(facts: JobFacts) -> JobStep | None:
    if facts.total("alive"):
        return None
    gone = AFTER_STOPPING[facts.phase]
    return JobStep(gone, new_pods=gone is JobPhase.PENDING)


def _settle_running(facts: JobFacts) -> JobStep | None:
    succeeded = facts.total("succeeded")
    if facts.min_success is not None and succeeded >= facts.min_success:
        phase = JobPhase.COMPLETED
        if facts.total("alive"):
            phase = JobPhase.COMPLETING
        return JobStep(phase, f"{counted(succeeded, 'pod')} succeeded", stop_pods=True)
    if not facts.total("alive") and any(not task.created for task in facts.tasks):
        return _settle_waiting(facts)
    if _has_lost_its_gang(facts):
        message = (
            f"{counted(facts.total('failed'), 'pod')} failed: with those that are left the gang "
            "cannot be whole again"
        )
        return JobStep(JobPhase.FAILED, message, stop_pods=True)
    replicas = facts.total("replicas")
    if not replicas or facts.total("finished") < replicas:
        return None
    if _is_success(facts, succeeded):
        return JobStep(JobPhase.COMPLETED)
    return JobStep(JobPhase.FAILED, _shortfall_message(facts, succeeded))


def _has_lost_its_gang(facts: JobFacts) -> bool:
    """Whether pods wait that no session will ever place.

    None runs any more, and fewer are left than must run together.
    """
    pending = facts.total("pending")
    some_run = facts.total("alive") > pending
    if not facts.total("failed") or not pending or some_run:
        return False
    replicas = {task.name: task.replicas for task in facts.tasks}
    first = first_to_begin(replicas, facts.dependencies)
    gang = [task for task in facts.tasks if task.name in first]
    least = min(facts.min_available, sum(task.replicas for task in gang))
    if pending + facts.total("succeeded") < least:
        return True
    roles_count = sum(task.min_available for task in gang) <= least
    return roles_count and any(task.pending + task.succeeded < task.min_available for task in gang)


def _settle_waiting(facts: JobFacts) -> JobStep | None:
    """Everything that began is over: either more can begin now, or it never can."""
    if ready_tasks(facts):
        return None
    waiting = next(task.name for task in facts.tasks if not task.created)
    needed = ", ".join(facts.dependencies[waiting].names)
    return JobStep(
        JobPhase.FAILED, f"task {waiting} cannot begin: too few pods of {needed} succeeded"
    )


def _is_success(facts: JobFacts, succeeded: int) -> bool:
    if facts.min_success is not None:
        return succeeded >= facts.min_success
    return succeeded >= facts.min_available and not _short_tasks(facts)


def _short_tasks(facts: JobFacts) -> list[TaskCount]:
    """Role minimums count only where together they do not ask for more than the job does."""
    if sum(task.min_available for task in facts.tasks) > facts.min_available:
        return []
    tasks: list[TaskCount] = []
    for task in facts.tasks:
        if task.succeeded < task.min_available:
            tasks.append(task)
    return tasks


def _shortfall_message(facts: JobFacts, succeeded: int) -> str:
    short = _short_tasks(facts)
    if short:
        task = short[0]
        return (
            f"task {task.name}: {counted(task.succeeded, 'pod')} succeeded, {task.min_available} "
            "needed"
        )
    return (
        f"{counted(succeeded, 'pod')} succeeded, {facts.min_success or facts.min_available} needed"
    )


def ready_tasks(facts: JobFacts) -> list[str]:
    """Tasks not yet created whose every dependency runs with its minimum, or has finished."""
    under_way = set()
    for task in facts.tasks:
        if _is_under_way(task):
            under_way.add(task.name)
    waiting = []
    for task in facts.tasks:
        if not task.created:
            waiting.append(task.name)
    found: list[str] = []
    for name in waiting:
        if facts.dependencies.get(name, Dependency()).is_met(under_way):
            found.append(name)
    return found


def _is_under_way(task: TaskCount) -> bool:
    least = min(task.replicas, max(1, task.min_available))
    return task.created and task.running + task.succeeded >= least
