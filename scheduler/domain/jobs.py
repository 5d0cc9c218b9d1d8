"""The life of a batch job: what its pods, its policies and its owner's commands make of it.

Pure: facts in, the next step out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from scheduler.domain.job_policies import JobAction, JobEvent, LifePolicy, action_for
from scheduler.domain.plans import counted


class JobPhase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"


DEFAULT_MAX_RETRY = 3
"""Of a job, and written into every task that gives none."""


FINISHED = frozenset({JobPhase.ABORTED, JobPhase.COMPLETED, JobPhase.TERMINATED, JobPhase.FAILED})


PolicyEvent = tuple[JobEvent, str, int | None]
"""What happened, in which task, with which exit code."""


@dataclass(frozen=True, slots=True)
class PolicyEvents:
    """What happened to a job: events, and the tasks that may have ended by them."""

    events: Sequence[PolicyEvent] = ()
    tasks: frozenset[str] = frozenset()


COMMANDS = frozenset(
    {JobAction.ABORT, JobAction.RESUME, JobAction.RESTART, JobAction.TERMINATE, JobAction.COMPLETE}
)


@dataclass(frozen=True, slots=True)
class TaskCount:
    """One task and its pods by how far they have come.

    `created` is False while it waits for the tasks it depends on.
    """

    name: str
    replicas: int
    min_available: int
    pending: int = 0
    placed: int = 0  # has a node and has not started yet
    running: int = 0
    leaving: int = 0
    succeeded: int = 0
    failed: int = 0
    created: bool = True
    retries: int = 0  # how often it was started again since the job's pods were made
    max_retry: int | None = None  # how often it may be; None: as often as the job

    @property
    def is_used_up(self) -> bool:
        return self.max_retry is not None and self.retries >= self.max_retry

    @property
    def finished(self) -> int:
        return self.succeeded + self.failed

    @property
    def alive(self) -> int:
        return self.pending + self.placed + self.running + self.leaving

    @property
    def started(self) -> int:
        return self.running + self.finished


@dataclass(frozen=True, slots=True)
class Dependency:
    """The tasks that must be under way before one may begin: all of them, or any."""

    names: tuple[str, ...] = ()
    any_will_do: bool = False

    def is_met(self, under_way: Collection[str]) -> bool:
        met = [name in under_way for name in self.names]
        if met and self.any_will_do:
            return any(met)
        return all(met)


@dataclass(frozen=True, slots=True)
class JobFacts:
    phase: JobPhase
    min_available: int
    tasks: tuple[TaskCount, ...]
    dependencies: Mapping[str, Dependency] = field(default_factory=dict)  # by task
    min_success: int | None = None
    retry_count: int = 0
    max_retry: int = DEFAULT_MAX_RETRY

    def total(self, attribute: str) -> int:
        return sum(getattr(task, attribute) for task in self.tasks)

    def task(self, name: str) -> TaskCount | None:
        return next((task for task in self.tasks if task.name == name), None)

    def retrying(self, name: str) -> JobFacts:
        """The same once more, after this task was started again."""
        tasks = []
        for task in self.tasks:
            if task.name == name:
                tasks.append(replace(task, retries=task.retries + 1))
            else:
                tasks.append(task)
        return replace(self, retry_count=self.retry_count + 1, tasks=tuple(tasks))


@dataclass(frozen=True, slots=True)
class JobStep:
    """What to do with a job: its next phase, and whether its pods are stopped or made."""

    phase: JobPhase
    message: str = ""
    stop_pods: bool = False
    new_pods: bool = False
    retries: int = 0  # how many retries this step uses up
    forgives: bool = False  # earlier retries count no more
    again: str = ""  # only this task starts again; the job goes on
    only_failed: bool = False  # and of it only the pods that failed


_STOPPING = {
    JobAction.ABORT: (JobPhase.ABORTING, JobPhase.ABORTED),
    JobAction.TERMINATE: (JobPhase.TERMINATING, JobPhase.TERMINATED),
    JobAction.COMPLETE: (JobPhase.COMPLETING, JobPhase.COMPLETED),
    JobAction.RESTART: (JobPhase.RESTARTING, JobPhase.PENDING),
}


_AFTER_STOPPING = dict(_STOPPING.values())


class NotPossible(Exception):
    """The job's phase does not permit this command; the message says why, for its owner."""


def command(facts: JobFacts, action: JobAction) -> JobStep | None:
    """The first step of a command; None when the job is already there. Raises `NotPossible`."""
    going, gone = _STOPPING.get(action, (None, None))
    if facts.phase is going or (facts.phase is gone and action is not JobAction.RESTART):
        return None
    if action is JobAction.RESUME:
        return _resume_step(facts)
    if facts.phase in FINISHED and action is not JobAction.RESTART:
        raise NotPossible(f"it is {facts.phase} and has no pods left to stop")
    if facts.phase is JobPhase.ABORTED and action is JobAction.RESTART:
        raise NotPossible("it is suspended; resume it instead")
    assert going is not None
    return JobStep(going, _COMMANDED[action], stop_pods=True, forgives=action is JobAction.RESTART)


_COMMANDED = {
    JobAction.ABORT: "suspended on request",
    JobAction.TERMINATE: "cancelled on request",
    JobAction.COMPLETE: "completed on request",
    JobAction.RESTART: "restarted on request",
}


def _resume_step(facts: JobFacts) -> JobStep | None:
    if facts.phase in (JobPhase.ABORTED, JobPhase.ABORTING):
        return JobStep(JobPhase.RESTARTING, "resumed on request", stop_pods=True)
    if facts.phase in FINISHED:
        raise NotPossible(f"it is {facts.phase}; restart it to run it again")
    return None


def react(facts: JobFacts, action: JobAction, task: str = "") -> JobStep | None:
    """What a policy's action makes of a live job; None when nothing changes.

    `task` is the one in which it happened.
    """
    if facts.phase in FINISHED or facts.phase in _AFTER_STOPPING:
        return None
    if action in (JobAction.RESTART, JobAction.RESTART_TASK, JobAction.RESTART_POD):
        return _retry_step(facts, action, task)
    if action not in _STOPPING:
        return None
    going, _ = _STOPPING[action]
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
    for event, task, exit_code in (*news.events, *_ends_of_tasks(facts, news.tasks)):
        # it starts again: it has not ended
        if task in steps and event in (
            JobEvent.TASK_COMPLETED,
            JobEvent.TASK_FAILED,
        ):
            continue
        action = _action_by_policy(facts, (event, task, exit_code), tasks.get(task, ()), job)
        # several pods of a task that fail together are one retry
        if task in steps and action in _OF_A_PART:
            steps[task] = replace(
                steps[task], only_failed=steps[task].only_failed and action is JobAction.RESTART_POD
            )
            continue
        step = react(facts, action, task)
        if step and not step.again:
            return [step]
        if step:
            steps[task] = step
            facts = facts.retrying(task)
    return list(steps.values())


def _action_by_policy(
    facts: JobFacts, policy_event: PolicyEvent, own: Sequence[LifePolicy], job: Sequence[LifePolicy]
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


def settle(facts: JobFacts) -> JobStep | None:
    """Where the job stands by its pods alone; None when it stays where it is."""
    if facts.phase in _AFTER_STOPPING:
        return _settle_stopping(facts)
    if facts.phase is JobPhase.PENDING and facts.total("started") >= max(1, facts.min_available):
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
    gone = _AFTER_STOPPING[facts.phase]
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
    if facts.total("finished") < facts.total("replicas") or not facts.total("replicas"):
        return None
    if _is_success(facts, succeeded):
        return JobStep(JobPhase.COMPLETED)
    return JobStep(JobPhase.FAILED, _shortfall_message(facts, succeeded))


def _has_lost_its_gang(facts: JobFacts) -> bool:
    """Whether pods wait that no session will ever place.

    None runs any more, and fewer are left than must run together.
    """
    if (
        not facts.total("failed")
        or facts.total("alive") > facts.total("pending")
        or not facts.total("pending")
    ):
        return False
    first = first_to_begin({task.name: task.replicas for task in facts.tasks}, facts.dependencies)
    gang = [task for task in facts.tasks if task.name in first]
    least = min(facts.min_available, sum(task.replicas for task in gang))
    if facts.total("pending") + facts.total("succeeded") < least:
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


def needed_tasks(task: Mapping[str, object]) -> list[str]:
    """Names of the tasks that this one waits for, as a manifest or the stored task has them."""
    depends_on = task.get("dependsOn")
    if isinstance(depends_on, Mapping):
        names = depends_on.get("name")
    else:
        names = None
    if isinstance(names, list):
        return [str(name) for name in names]
    if names:
        return [str(names)]
    return []


ITERATIONS = ("all", "any")
"""How many of the tasks that are named must be under way; all, where nothing is said."""


def dependency_of(task: Mapping[str, object]) -> Dependency:
    depends_on = task.get("dependsOn")
    if isinstance(depends_on, Mapping):
        iteration = depends_on.get("iteration")
    else:
        iteration = None
    return Dependency(tuple(needed_tasks(task)), iteration == "any")


def waits_for_itself(dependencies: Mapping[str, Iterable[str]]) -> list[str]:
    """Tasks that could never begin, because they wait for each other in a ring."""
    waiting = {}
    for name, needed in dependencies.items():
        waiting[name] = len(set(needed) & dependencies.keys())
    followers: dict[str, list[str]] = {}
    for name, needed in dependencies.items():
        for other in set(needed) & dependencies.keys():
            followers.setdefault(other, []).append(name)
    free = [name for name, left in waiting.items() if not left]
    while free:
        name = free.pop()
        del waiting[name]
        for follower in followers.get(name, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                free.append(follower)
    return sorted(waiting)


def first_to_begin(
    replicas: Mapping[str, int], dependencies: Mapping[str, Dependency]
) -> list[str]:
    """Tasks that wait for no other, or only for others that have no pods at all: the gang."""
    empty = set()
    for name, count in replicas.items():
        if not count:
            empty.add(name)
    first: list[str] = []
    for name in replicas:
        if dependencies.get(name, Dependency()).is_met(empty):
            first.append(name)
    return first


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
    return task.created and task.running + task.succeeded >= min(
        task.replicas, max(1, task.min_available)
    )
