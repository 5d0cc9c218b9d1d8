"""What of a job may change after it was created: the size of the gang, replicas, and the priority class; nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scheduler.admission.defaults import job_defaults, with_defaults
from scheduler.admission.facts import Facts
from scheduler.admission.shapes import shown
from scheduler.admission.violations import Violation
from scheduler.admission.workload_manifests import JobManifest

_MAY_CHANGE = frozenset({"minAvailable", "priorityClassName"})
_TASK_MAY_CHANGE = frozenset({"replicas", "minAvailable"})
_CHANGEABLE = "minAvailable, replicas and priorityClassName"
_EMPTY: tuple[object, ...] = (None, "", [], {})


def check_job_change(job: JobManifest, new: Mapping[str, object], old: Mapping[str, object], facts: Facts) -> Iterator[Violation]:
    """Compares what is in force, so that leaving a default out is no change."""
    before, after = _in_force(old, facts), _in_force(new, facts)
    for field in sorted({*before, *after} - _MAY_CHANGE - {"tasks"}):
        if before.get(field) != after.get(field):
            yield _immutable(job, f"spec.{field}", before.get(field), after.get(field))
    yield from _check_tasks(job, before.get("tasks"), after.get("tasks"))


def _in_force(manifest: Mapping[str, object], facts: Facts) -> Mapping[str, object]:
    """The spec with its defaults, without what is empty. The queue is compared as it was written, not as a namespace turns it."""
    spec = with_defaults(manifest, job_defaults(manifest, Facts(max_depth=facts.max_depth))).get("spec")
    return _filled(spec) if isinstance(spec, Mapping) else {}


def _filled(given: Mapping[object, object]) -> dict[str, object]:
    return {key: value for key, value in given.items() if isinstance(key, str) and value not in _EMPTY}


def _check_tasks(job: JobManifest, before: object, after: object) -> Iterator[Violation]:
    old_tasks, new_tasks = _tasks(before), _tasks(after)
    if len(old_tasks) != len(new_tasks):
        message = f"{job.metadata.name} has {len(old_tasks)} tasks and would have {len(new_tasks)}: tasks can not be added or removed."
        yield Violation("tasks_added_or_removed", job.queue, "spec.tasks", message, "change the replicas of a task, or submit another job")
        return
    for index, (old_task, new_task) in enumerate(zip(old_tasks, new_tasks, strict=True)):
        for field in sorted({*old_task, *new_task} - _TASK_MAY_CHANGE):
            if old_task.get(field) != new_task.get(field):
                yield _immutable(job, f"spec.tasks[{index}].{field}", old_task.get(field), new_task.get(field))


def _tasks(value: object) -> list[Mapping[str, object]]:
    return [_filled(task) for task in value if isinstance(task, Mapping)] if isinstance(value, list) else []


def _immutable(job: JobManifest, path: str, before: object, after: object) -> Violation:
    figures = f" from {shown(before)} to {shown(after)}" if _is_plain(before) and _is_plain(after) else ""
    message = f"{shown(path)} of {job.metadata.name} can not be changed{figures}; only {_CHANGEABLE} may, once a job exists."
    fix = f"write {shown(before)}" if isinstance(before, str) else "leave it as it was, or submit another job"
    return Violation("immutable_field_changed", job.queue, path, message, fix)


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int, bool)) or value is None
