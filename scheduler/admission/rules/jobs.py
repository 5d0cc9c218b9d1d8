"""What must hold inside a job, whatever its queue.

Its gang can be complete, all its tasks can begin, and its policies can be followed.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.admission.reading.reader import shown
from scheduler.admission.reading.waiting_times import check_waiting_time
from scheduler.admission.reading.workload import JobManifest, TaskManifest
from scheduler.admission.violations import Violation
from scheduler.domain.jobs.dependencies import ITERATIONS, needed_tasks, waits_for_itself
from scheduler.domain.jobs.policies import read_policies
from scheduler.domain.plans import counted

_LONGEST_POD_NAME = 253


def check_job_itself(job: JobManifest) -> Iterator[Violation]:
    """For a job that is to be created."""
    yield from check_size(job)
    yield from _check_policies(job)
    yield from _check_dependencies(job)
    yield from check_waiting_time(job.metadata.annotations, job.queue)


def check_size(job: JobManifest) -> Iterator[Violation]:
    """No more is waited for than there will ever be."""
    if job.tasks and job.min_available > job.replicas:
        replicas = counted(job.replicas, "replica")
        message = (
            f"minAvailable {job.min_available} of {job.metadata.name} is more than the {replicas} "
            "of its tasks together."
        )
        fix = f"lower minAvailable to {job.replicas}, or add replicas"
        yield Violation(
            "min_available_exceeds_replicas", job.queue, "spec.minAvailable", message, fix
        )
    for index, task in enumerate(job.tasks):
        yield from _check_task_size(job, task, f"spec.tasks[{index}]")


def _check_task_size(job: JobManifest, task: TaskManifest, path: str) -> Iterator[Violation]:
    if task.min_available > task.replicas:
        message = (
            f"minAvailable {task.min_available} of task {task.name} is more than its "
            f"{counted(task.replicas, 'replica')}."
        )
        fix = f"lower it to {task.replicas}, or add replicas"
        yield Violation(
            "min_available_exceeds_replicas", job.queue, f"{path}.minAvailable", message, fix
        )
    longest = len(f"{job.metadata.name}-{task.name}-{task.replicas}")
    if longest > _LONGEST_POD_NAME:
        message = (
            f"The pods of task {task.name[:63]} would have names of {longest} characters; "
            f"{_LONGEST_POD_NAME} are allowed."
        )
        yield Violation(
            "too_long",
            job.queue,
            "metadata.name",
            message,
            "give the job or its task a shorter name",
        )


def _check_policies(job: JobManifest) -> Iterator[Violation]:
    places = [
        ("spec.policies", job.policies),
        *((f"spec.tasks[{index}].policies", task.policies) for index, task in enumerate(job.tasks)),
    ]
    for place, stored in places:
        for problem in read_policies(stored, place).problems:
            field, _, message = problem.partition(": ")
            yield Violation("invalid_policy", job.queue, field, f"{field}: {message}", "")


def _check_dependencies(job: JobManifest) -> Iterator[Violation]:
    needed = {}
    for task in job.tasks:
        needed[task.name] = needed_tasks({"dependsOn": task.depends_on})
    for index, task in enumerate(job.tasks):
        field = f"spec.tasks[{index}].dependsOn"
        iteration = task.depends_on.get("iteration")
        if iteration not in (None, "", *ITERATIONS):
            message = (
                f"{field}.iteration is {shown(iteration)}; it must be one of "
                f"{', '.join(ITERATIONS)}."
            )
            yield Violation(
                "invalid_dependency",
                job.queue,
                f"{field}.iteration",
                message,
                "leave it out: then all are waited for",
            )
        for name in needed[task.name]:
            if name not in needed or name == task.name:
                message = f"Task {task.name} cannot depend on {name[:63]}."
                yield Violation(
                    "invalid_dependency", job.queue, field, message, "name another task"
                )
    waiting = waits_for_itself(needed)
    if len(waiting) > 1:
        message = (
            f"{counted(len(waiting), 'task')} wait for each other and none could ever begin: "
            f"{', '.join(waiting[:5])}."
        )
        yield Violation(
            "invalid_dependency",
            job.queue,
            "spec.tasks",
            message,
            "let one of them begin by itself",
        )
