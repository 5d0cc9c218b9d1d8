"""What the policies of a job make of the events in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduler.domain.jobs.facts import JobFacts, JobStep
from scheduler.domain.jobs.phases import AFTER_STOPPING, FINISHED, STOPPING, JobPhase
from scheduler.domain.jobs.policies import JobAction, JobEvent, LifePolicy, action_for
from scheduler.domain.plans import counted

PolicyEvent = tuple[JobEvent, str, int | None]
"""What happened, in which task, with which exit code."""


@dataclass(frozen=True, slots=True)
class PolicyEvents:
    """What happened to a job: events, and the tasks that may have ended by them."""

    events: Sequence[PolicyEvent] = ()
    tasks: frozenset[str] = frozenset()


def react(facts: JobFacts, action: JobAction, task: str = "") -> JobStep | None:
    """What a policy's action makes of a live job; None when nothing changes.

    `task` is the one in which it happened.
    """
    if facts.phase in FINISHED or facts.phase in AFTER_STOPPING:
        return None
    if action in (JobAction.RESTART, JobAction.RESTART_TASK, JobAction.RESTART_POD):
        return _retry_step(facts, action, task)
    if action not in STOPPING:
        return None
    going, _ = STOPPING[action]
    return JobStep(going, f"{action} by policy", stop_pods=True)


def _retry_step(facts: JobFacts, action: JobAction, task: str) -> JobStep:
    if facts.retry_count >= facts.max_retry:
        return JobStep(
            JobPhase.FAILED,
            f"failed after {facts.retry_count} of {counted(facts.max_retry, 'retry', 'retries')}",
            stop_pods=True,
        )
    part = facts.task(task)
    # What happened to the whole job belongs to no one task.
    if action is JobAction.RESTART or part is None:
        return JobStep(
            JobPhase.RESTARTING,
            f"retry {facts.retry_count + 1} of {facts.max_retry}",
            stop_pods=True,
            retries=1,
        )
    number = facts.retry_count
    most = facts.max_retry
    if part.max_retry is not None:
        number = part.retries
        most = part.max_retry
    message = f"task {task}: retry {number + 1} of {most}"
    only_failed = action is JobAction.RESTART_POD
    return JobStep(facts.phase, message, retries=1, again=task, only_failed=only_failed)


_OF_A_PART = (JobAction.RESTART_TASK, JobAction.RESTART_POD)
_ENDS_OF_A_TASK = (JobEvent.TASK_COMPLETED, JobEvent.TASK_FAILED)


def follow_policies(
    facts: JobFacts,
    news: PolicyEvents,
    tasks: Mapping[str, Sequence[LifePolicy]],
    job: Sequence[LifePolicy],
) -> list[JobStep]:
    """The steps that the policies of a job ask for.

    Either parts of it start again, or there is one step for the whole job.
    """
    steps: dict[str, JobStep] = {}
    for happened in (*news.events, *_ends_of_tasks(facts, news.tasks)):
        event, task, _ = happened
        # it starts again: it has not ended
        if task in steps and event in _ENDS_OF_A_TASK:
            continue
        action = _action_by_policy(facts, happened, tasks.get(task, ()), job)
        # several pods of a task that fail together are one retry
        if task in steps and action in _OF_A_PART:
            only_failed = steps[task].only_failed and action is JobAction.RESTART_POD
            steps[task] = replace(steps[task], only_failed=only_failed)
            continue
        step = react(facts, action, task)
        if step and not step.again:
            return [step]
        if step:
            steps[task] = step
            facts = facts.retrying(task)
    return list(steps.values())


def _action_by_policy(
    facts: JobFacts,
    policy_event: PolicyEvent,
    own: Sequence[LifePolicy],
    job: Sequence[LifePolicy],
) -> JobAction:
    """What the policies want.

    A task that was started again as often as it may be has failed instead, and goes on as it is.
    """
    event, task, exit_code = policy_event
    action = action_for(event, exit_code, own, job)
    # none of its pods failed
    if action is JobAction.RESTART_POD and event is JobEvent.TASK_COMPLETED:
        return JobAction.SYNC
    part = facts.task(task)
    if action not in _OF_A_PART or part is None or not part.is_used_up:
        return action
    action = action_for(JobEvent.TASK_FAILED, None, own, job)
    if action in _OF_A_PART:
        return JobAction.SYNC
    return action


def _ends_of_tasks(facts: JobFacts, names: Collection[str]) -> list[PolicyEvent]:
    """Events of those of these tasks that have ended.

    First the tasks all of whose pods have succeeded, then those all of whose pods have failed.
    """
    completed: list[PolicyEvent] = []
    failed: list[PolicyEvent] = []
    for task in facts.tasks:
        if not task.created or task.replicas <= 0 or task.name not in names:
            continue
        if task.succeeded >= task.replicas:
            completed.append((JobEvent.TASK_COMPLETED, task.name, None))
        if task.failed >= task.replicas:
            failed.append((JobEvent.TASK_FAILED, task.name, None))
    return completed + failed
