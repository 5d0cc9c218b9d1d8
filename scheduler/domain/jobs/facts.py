"""A job as the rules of its life see it: its phase and its pods, counted; and the next step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scheduler.domain.jobs.dependencies import Dependency
from scheduler.domain.jobs.phases import JobPhase

DEFAULT_MAX_RETRY = 3
"""Of a job, and written into every task that gives none."""


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
