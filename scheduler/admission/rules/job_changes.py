"""What may change of a job after it was created.

These are the size of the gang, replicas and the priority class. Nothing else may.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from scheduler.admission.defaults import job_defaults, resolved_queue, with_defaults
from scheduler.admission.facts import Facts
from scheduler.admission.reading.reader import shown
from scheduler.admission.reading.workload import (
    JOB_FIELDS,
    TASK_FIELDS,
    UNUSED_JOB_FIELDS,
    UNUSED_TASK_FIELDS,
    JobManifest,
)
from scheduler.admission.violations import Violation
from scheduler.domain.plans import counted
from scheduler.domain.queues import DEFAULT
from scheduler.domain.resources import QuantityError, parse_quantity

_MAY_CHANGE = frozenset({"minAvailable", "priorityClassName"})
_TASK_MAY_CHANGE = frozenset({"replicas", "minAvailable"})
_CHANGEABLE = "minAvailable, replicas and priorityClassName"
_EMPTY: tuple[object, ...] = (None, "", [], {})
_AMOUNTS = frozenset({"requests", "limits", "overhead"})

Fields = Mapping[str, object]


def check_job_change(
    job: JobManifest,
    new: Mapping[str, object],
    old: Mapping[str, object],
    facts: Facts,
) -> Iterator[Violation]:
    """Compare the values in force.

    Leaving a default out, or writing an amount in another way, is no change.
    """
    before = _in_force(old)
    after = _in_force(new)
    for field in sorted(
        _fields_to_compare(before, after, JOB_FIELDS, UNUSED_JOB_FIELDS)
        - _MAY_CHANGE
        - {"tasks", "queue"}
    ):
        if before.get(field) != after.get(field):
            yield _immutable_violation(job, f"spec.{field}", before.get(field), after.get(field))
    if not stays_in_queue(new, old, facts):
        yield _immutable_violation(job, "spec.queue", before.get("queue"), after.get("queue"))
    yield from _check_tasks(job, before.get("tasks"), after.get("tasks"))


def stays_in_queue(new: Mapping[str, object], old: Mapping[str, object], facts: Facts) -> bool:
    """Whether the queue is named as before.

    It may also be named as it was when the namespace led to it, at admission.
    """
    metadata = old.get("metadata")
    if isinstance(metadata, Mapping):
        namespace = metadata.get("namespace")
    else:
        namespace = None
    named = _queue_of(new)
    before = _queue_of(old)
    return named == before or resolved_queue(named, namespace, facts) == before


def _queue_of(manifest: Mapping[str, object]) -> object:
    spec = manifest.get("spec")
    if not isinstance(spec, Mapping):
        return DEFAULT
    return spec.get("queue") or DEFAULT


def _fields_to_compare(
    before: Fields,
    after: Fields,
    known: Collection[str],
    unused: Collection[str],
) -> set[str]:
    """What nobody knows is not kept, and cannot be said to have changed.

    Nor can what nobody uses, where it was not kept.
    """
    return ({*before, *after} & {*known}) - ({*unused} - {*before})


def _in_force(manifest: Mapping[str, object]) -> dict[str, object]:
    """The spec with its defaults, without what is empty.

    The queue as it was written, not as a namespace turns it.
    """
    spec = with_defaults(manifest, job_defaults(manifest, Facts())).get("spec")
    if isinstance(spec, Mapping):
        return _with_defaults(spec)
    return {}


def _with_defaults(given: Mapping[object, object]) -> dict[str, object]:
    meant = {}
    for key, value in given.items():
        if isinstance(key, str):
            meant[key] = _normal_form(value)
    stated: dict[str, object] = {}
    for key, value in meant.items():
        if value not in _EMPTY:
            stated[key] = value
    return stated


def _normal_form(value: object) -> object:
    """As Kubernetes compares: null is left out, and an amount is the same however it is written."""
    if isinstance(value, list):
        return [_normal_form(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    normal = {}
    for key, item in value.items():
        if item is None:
            continue
        if key in _AMOUNTS:
            normal[key] = _normal_amounts(item)
        else:
            normal[key] = _normal_form(item)
    return normal


def _normal_amounts(value: object) -> object:
    if isinstance(value, Mapping):
        amounts = {}
        for name, amount in value.items():
            amounts[name] = _normal_amount(name, amount)
        return amounts
    return value


def _normal_amount(resource: object, value: object) -> object:
    try:
        return parse_quantity(str(resource), value)
    except QuantityError:
        return value


def _check_tasks(job: JobManifest, before: object, after: object) -> Iterator[Violation]:
    old_tasks = _task_list(before)
    new_tasks = _task_list(after)
    if len(old_tasks) != len(new_tasks):
        message = (
            f"{job.metadata.name} has {counted(len(old_tasks), 'task')} and would have "
            f"{len(new_tasks)}: tasks cannot be added or removed."
        )
        yield Violation(
            "tasks_added_or_removed",
            job.queue,
            "spec.tasks",
            message,
            "change the replicas of a task, or submit another job",
        )
        return
    for index, (old_task, new_task) in enumerate(zip(old_tasks, new_tasks, strict=True)):
        for field in sorted(
            _fields_to_compare(old_task, new_task, TASK_FIELDS, UNUSED_TASK_FIELDS)
            - _TASK_MAY_CHANGE
        ):
            if old_task.get(field) != new_task.get(field):
                yield _immutable_violation(
                    job,
                    f"spec.tasks[{index}].{field}",
                    old_task.get(field),
                    new_task.get(field),
                )


def _task_list(value: object) -> list[Mapping[str, object]]:
    if isinstance(value, list):
        tasks: list[Mapping[str, object]] = []
        for task in value:
            if isinstance(task, Mapping):
                tasks.append(_with_defaults(task))
        return tasks
    return []


def _immutable_violation(job: JobManifest, path: str, before: object, after: object) -> Violation:
    if _is_plain(before) and _is_plain(after):
        figures = f" from {shown(before)} to {shown(after)}"
    else:
        figures = ""
    message = (
        f"{shown(path)} of {job.metadata.name} cannot be changed{figures}; only {_CHANGEABLE} "
        "may, once a job exists."
    )
    if isinstance(before, str):
        fix = f"write {shown(before)}"
    else:
        fix = "leave it as it was, or submit another job"
    return Violation("immutable_field_changed", job.queue, path, message, fix)


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int, bool)) or value is None
