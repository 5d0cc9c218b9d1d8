"""What is filled in when it is left out, as (path, value) pairs.

Services write them into the object. The mutating webhooks make a JSON patch of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.admission.facts import Facts
from scheduler.domain.jobs.facts import DEFAULT_MAX_RETRY
from scheduler.domain.queues import DEFAULT, ROOT

HIERARCHY = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS = "volcano.sh/hierarchy-weights"

Path = tuple[str | int, ...]
Defaults = list[tuple[Path, object]]

_SCHEDULER = "volcano"


def _mapping_at(value: object, key: str) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        part = value.get(key)
    else:
        part = None
    if isinstance(part, Mapping):
        return part
    return {}


def queue_defaults(manifest: object) -> Defaults:
    """For a queue that is being created."""
    if not _has_usable_spec(manifest):
        return []
    spec = _mapping_at(manifest, "spec")
    status = _mapping_at(manifest, "status")
    is_root = _mapping_at(manifest, "metadata").get("name") == ROOT
    weight = spec.get("weight")
    no_weight = weight is None or (type(weight) is int and weight == 0)
    no_parent = _is_blank(spec.get("parent"))
    no_state = _is_blank(spec.get("state")) and _is_blank(status.get("state"))
    is_left_out: dict[str, tuple[bool, object]] = {
        "weight": (no_weight, 1),
        "reclaimable": (spec.get("reclaimable") is None, True),
        "parent": (no_parent and not is_root, ROOT),
        "dequeueStrategy": (_is_blank(spec.get("dequeueStrategy")), "traverse"),
        "state": (no_state, "Open"),
    }
    defaults: Defaults = []
    for field, (left_out, value) in is_left_out.items():
        if left_out:
            defaults.append((("spec", field), value))
    return defaults + _hierarchy_defaults(manifest)


def _is_blank(value: object) -> bool:
    return value is None or value == ""


def _has_usable_spec(manifest: object) -> bool:
    """Only what is left out is filled in.

    A spec that is something else than an object is for the checks to refuse.
    """
    return isinstance(manifest, Mapping) and (
        manifest.get("spec") is None or isinstance(manifest.get("spec"), Mapping)
    )


def _hierarchy_defaults(manifest: object) -> Defaults:
    """The older hierarchy of annotations begins at root, whether or not it was written."""
    annotations = _mapping_at(_mapping_at(manifest, "metadata"), "annotations")
    path = annotations.get(HIERARCHY)
    weights = annotations.get(HIERARCHY_WEIGHTS)
    if not (isinstance(path, str) and isinstance(weights, str) and path and weights):
        return []
    if path.split("/")[0] == ROOT:
        return []
    return [
        (("metadata", "annotations", HIERARCHY), f"root/{path}"),
        (("metadata", "annotations", HIERARCHY_WEIGHTS), f"1/{weights}"),
    ]


def resolved_queue(named: object, namespace: object, facts: Facts) -> object:
    """The queue that a job goes to.

    It is the one that the job names. If that is none or `default`, it is the one of its namespace.
    """
    if named not in (None, "", DEFAULT):
        return named
    if isinstance(namespace, str):
        of_namespace = facts.queue_of_namespace(namespace)
    else:
        of_namespace = ""
    return of_namespace or DEFAULT


def podgroup_defaults(manifest: object, facts: Facts) -> Defaults:
    if _has_usable_spec(manifest):
        return _queue_default(manifest, facts)
    return []


def _queue_default(manifest: object, facts: Facts) -> Defaults:
    named = _mapping_at(manifest, "spec").get("queue")
    queue = resolved_queue(named, _mapping_at(manifest, "metadata").get("namespace"), facts)
    if queue == named:
        return []
    return [(("spec", "queue"), queue)]


def job_defaults(manifest: object, facts: Facts) -> Defaults:
    """For a job that is being created: its queue, its gang size, and what each task leaves out."""
    if not _has_usable_spec(manifest):
        return []
    spec = _mapping_at(manifest, "spec")
    defaults = _queue_default(manifest, facts)
    if _is_blank(spec.get("schedulerName")):
        defaults.append((("spec", "schedulerName"), _SCHEDULER))
    if spec.get("maxRetry") is None:
        defaults.append((("spec", "maxRetry"), DEFAULT_MAX_RETRY))
    return defaults + _task_defaults(spec.get("tasks")) + _gang_default(spec)


def gang_defaults(manifest: object) -> Defaults:
    """For any job: what each task leaves out, and the size of the gang."""
    if not _has_usable_spec(manifest):
        return []
    spec = _mapping_at(manifest, "spec")
    return _task_defaults(spec.get("tasks")) + _gang_default(spec)


def _task_defaults(tasks: object) -> Defaults:
    defaults: Defaults = []
    if not isinstance(tasks, list):
        return defaults
    for index, task in enumerate(tasks):
        if not isinstance(task, Mapping):
            continue
        here: Path = ("spec", "tasks", index)
        if _is_blank(task.get("name")):
            defaults.append(((*here, "name"), f"default{index}"))
        if task.get("replicas") is None:
            defaults.append(((*here, "replicas"), 1))
        if task.get("minAvailable") is None:
            defaults.append(((*here, "minAvailable"), _task_gang(task)))
        if task.get("maxRetry") is None:
            defaults.append(((*here, "maxRetry"), DEFAULT_MAX_RETRY))
    return defaults


def _task_gang(task: Mapping[str, object]) -> int:
    for field in ("minAvailable", "replicas"):
        value = task.get(field)
        if isinstance(value, int) and not isinstance(value, bool):
            return max(0, value)
    return 1


def _gang_default(spec: Mapping[str, object]) -> Defaults:
    """minAvailable left out: as many as the tasks ask for together."""
    tasks = spec.get("tasks")
    if spec.get("minAvailable") is not None or not isinstance(tasks, list):
        return []
    together = sum(_task_gang(task) for task in tasks if isinstance(task, Mapping))
    return [(("spec", "minAvailable"), together)]


def with_defaults(manifest: Mapping[str, object], defaults: Defaults) -> dict[str, Any]:
    """A copy of the manifest with the pairs written in.

    Only what is on the way to a written value is copied.
    """
    filled: dict[str, Any] = dict(manifest)
    copied: dict[Path, Any] = {(): filled}
    for path, value in defaults:
        _own_copy_at(copied, path[:-1])[path[-1]] = value
    return filled


def _own_copy_at(copied: dict[Path, Any], path: Path) -> Any:
    """The container at this path, copied once so that the caller's manifest stays as it was."""
    if path not in copied:
        holder = _own_copy_at(copied, path[:-1])
        if isinstance(path[-1], int):
            here = holder[path[-1]]
        else:
            here = holder.get(path[-1])
        own: Any
        if isinstance(here, list):
            own = list(here)
        else:
            own = dict(here or {})
        holder[path[-1]] = own
        copied[path] = own
    return copied[path]


def json_patch(manifest: Mapping[str, object], defaults: Defaults) -> list[dict[str, object]]:
    """The pairs as RFC 6902 operations; an object that is missing on the way is added first."""
    operations: list[dict[str, object]] = []
    present: dict[Path, Any] = {(): dict(manifest)}
    for path, value in defaults:
        _add_parents(operations, present, path)
        holder = present[path[:-1]]
        operation = "add"
        if isinstance(path[-1], str) and path[-1] in holder:
            operation = "replace"
        operations.append({"op": operation, "path": _json_pointer(path), "value": value})
    return operations


def _add_parents(operations: list[dict[str, object]], present: dict[Path, Any], path: Path) -> None:
    for length in range(1, len(path)):
        here = path[:length]
        if here in present:
            continue
        holder = present[here[:-1]]
        if isinstance(here[-1], int):
            value = holder[here[-1]]
        else:
            value = holder.get(here[-1])
        if value is None:
            operations.append({"op": "add", "path": _json_pointer(here), "value": {}})
            value = {}
        present[here] = value


def _json_pointer(path: Path) -> str:
    steps = []
    for step in path:
        escaped = str(step).replace("~", "~0").replace("/", "~1")
        steps.append(f"/{escaped}")
    return "".join(steps)
