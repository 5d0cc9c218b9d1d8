"""Kubernetes-shaped Job, PodGroup and Pod objects, read into values.

What scheduling does not look at is kept as it came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.admission.defaults import job_defaults, podgroup_defaults, with_defaults
from scheduler.admission.facts import QUEUE_ANNOTATION, Facts
from scheduler.admission.reading import known_fields
from scheduler.admission.reading.pod import PodTemplate, read_template
from scheduler.admission.reading.queue import (
    JOB_VERSIONS,
    POD_VERSIONS,
    SCHEDULING_VERSIONS,
    Metadata,
    Reading,
    check_kind,
    check_status,
    name_of,
    read_metadata,
)
from scheduler.admission.reading.reader import Reader, is_label, shown
from scheduler.domain.jobs.facts import DEFAULT_MAX_RETRY
from scheduler.domain.resources import Resources

GROUP_ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
MOST_REPLICAS = 100_000

JOB_FIELDS = (
    "queue",
    "schedulerName",
    "minAvailable",
    "maxRetry",
    "ttlSecondsAfterFinished",
    "priorityClassName",
    "minSuccess",
    "tasks",
    "policies",
    "plugins",
    "volumes",
    "networkTopology",
    "runningEstimate",
)
TASK_FIELDS = (
    "name",
    "replicas",
    "minAvailable",
    "maxRetry",
    "template",
    "policies",
    "topologyPolicy",
    "dependsOn",
    "partitionPolicy",
)
_PODGROUP_FIELDS = (
    "queue",
    "minMember",
    "minTaskMember",
    "priorityClassName",
    "minResources",
    "networkTopology",
    "subGroupPolicy",
)
UNUSED_JOB_FIELDS = ("runningEstimate",)
UNUSED_TASK_FIELDS = ("topologyPolicy", "partitionPolicy")
_UNUSED_PODGROUP_FIELDS = ("subGroupPolicy",)
_KEPT_FOR_THE_CLUSTER = ("plugins", "volumes", "networkTopology", "schedulerName")


@dataclass(frozen=True, slots=True)
class TaskManifest:
    name: str
    replicas: int
    min_available: int
    max_retry: int  # -1: without a limit of its own
    template: PodTemplate
    policies: list[object] = field(default_factory=list)
    depends_on: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobManifest:
    """A job as asked for. `extra` holds what a cluster needs and scheduling does not."""

    metadata: Metadata
    queue: str
    min_available: int
    tasks: tuple[TaskManifest, ...]
    max_retry: int = DEFAULT_MAX_RETRY
    min_success: int | None = None
    ttl_seconds_after_finished: int | None = None
    priority_class: str = ""
    scheduler_name: str = ""
    network_topology: Mapping[str, object] = field(default_factory=dict)
    policies: list[object] = field(default_factory=list)
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def replicas(self) -> int:
        return sum(task.replicas for task in self.tasks)


@dataclass(frozen=True, slots=True)
class PodGroupManifest:
    metadata: Metadata
    queue: str
    min_member: int = 1
    min_task_member: Mapping[str, int] = field(default_factory=dict)
    min_resources: Resources | None = None
    priority_class: str = ""
    network_topology: Mapping[str, object] = field(default_factory=dict)
    sub_group_policy: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class PodManifest:
    """`podgroup` is the gang it belongs to, "" for a bare pod.

    `queue` what it or its annotations ask for, "" for nothing.
    """

    metadata: Metadata
    queue: str
    podgroup: str
    scheduler_name: str
    template: PodTemplate


def read_job(manifest: object, facts: Facts, *, is_new: bool = True) -> Reading[JobManifest]:
    """A Job manifest; a new one with the defaults of creation filled in."""
    reader, whole = _open_manifest(manifest, "Job", JOB_VERSIONS, known_fields.JOB_STATUS)
    if whole is None:
        return Reading(None, tuple(reader.violations))
    metadata = read_metadata(reader, whole)
    filled: Mapping[str, object] = whole
    if is_new:
        filled = with_defaults(whole, job_defaults(whole, facts))
    spec = reader.mapping(filled.get("spec"), "spec")
    reader.unknown_fields(spec, JOB_FIELDS, "spec")
    reader.unused_fields(spec, UNUSED_JOB_FIELDS, "spec")
    job = _read_job_spec(reader, spec, metadata)
    return Reading.of(reader, job, metadata.name)


def _open_manifest(
    manifest: object,
    kind: str,
    versions: tuple[str, ...],
    status: tuple[str, ...],
) -> tuple[Reader, Mapping[str, object] | None]:
    reader = Reader()
    if not isinstance(manifest, Mapping):
        reader.wrong_type("", manifest, "an object with metadata and spec")
        return reader, None
    reader.queue = _queue_named(manifest)
    reader.whole(manifest)
    whole = reader.mapping(manifest, "the object")
    check_kind(reader, whole, kind, versions)
    check_status(reader, whole, status)
    return reader, whole


def _queue_named(manifest: Mapping[object, object]) -> str:
    spec = manifest.get("spec")
    if isinstance(spec, Mapping):
        queue = spec.get("queue")
    else:
        queue = None
    if isinstance(queue, str):
        return shown(queue)
    return ""


def _read_job_spec(reader: Reader, spec: Mapping[str, object], metadata: Metadata) -> JobManifest:
    return JobManifest(
        metadata=metadata,
        queue=reader.text(spec.get("queue"), "spec.queue"),
        min_available=reader.number(spec.get("minAvailable"), "spec.minAvailable", 0),
        tasks=tuple(_read_tasks(reader, spec.get("tasks"))),
        max_retry=reader.number(spec.get("maxRetry"), "spec.maxRetry", DEFAULT_MAX_RETRY),
        min_success=_optional_number(reader, spec, "minSuccess", least=1),
        ttl_seconds_after_finished=_optional_number(reader, spec, "ttlSecondsAfterFinished"),
        priority_class=reader.name(
            spec.get("priorityClassName"), "spec.priorityClassName", required=False
        ),
        scheduler_name=reader.text(spec.get("schedulerName"), "spec.schedulerName", longest=63),
        network_topology=read_topology(reader, spec.get("networkTopology"), "spec.networkTopology"),
        policies=_read_policies(reader, spec.get("policies"), "spec.policies"),
        extra={key: spec[key] for key in _KEPT_FOR_THE_CLUSTER if spec.get(key) is not None},
    )


def _optional_number(
    reader: Reader,
    spec: Mapping[str, object],
    key: str,
    least: int = 0,
) -> int | None:
    if spec.get(key) is None:
        return None
    return reader.number(spec[key], f"spec.{key}", least, least=least)


def _read_policies(reader: Reader, value: object, path: str) -> list[object]:
    found: list[object] = []
    for index, item in enumerate(reader.items(value, path)):
        found.append(_known_mapping(reader, item, known_fields.POLICY, f"{path}[{index}]"))
    return found


def _known_mapping(
    reader: Reader,
    value: object,
    known: tuple[str, ...],
    path: str,
) -> dict[str, object]:
    given = dict(reader.mapping(value, path))
    reader.unknown_fields(given, known, path)
    return given


def _read_tasks(reader: Reader, value: object) -> list[TaskManifest]:
    given = reader.items(value, "spec.tasks")
    if not given and (value is None or value == []):
        reader.refuse(
            "tasks_required",
            "spec.tasks",
            "A job needs at least one task.",
            "add a task with replicas and a template",
        )
    tasks = []
    for index, task in enumerate(given):
        tasks.append(_read_task(reader, task, f"spec.tasks[{index}]"))
    for name, times in sorted(Counter(task.name for task in tasks).items()):
        if times == 1:
            continue
        reader.refuse(
            "duplicate_task_name",
            "spec.tasks",
            f"More than one task is called {name}.",
            "give each task its own name",
        )
    return tasks


def _read_task(reader: Reader, value: object, path: str) -> TaskManifest:
    task = reader.mapping(value, path)
    reader.unknown_fields(task, TASK_FIELDS, path)
    reader.unused_fields(task, UNUSED_TASK_FIELDS, path)
    replicas = reader.number(task.get("replicas"), f"{path}.replicas", 1, most=MOST_REPLICAS)
    return TaskManifest(
        name=_task_name(reader, task.get("name"), f"{path}.name"),
        replicas=replicas,
        min_available=reader.number(
            task.get("minAvailable"),
            f"{path}.minAvailable",
            replicas,
            most=MOST_REPLICAS,
        ),
        max_retry=reader.number(
            task.get("maxRetry"),
            f"{path}.maxRetry",
            DEFAULT_MAX_RETRY,
            least=-1,
        ),
        template=read_template(reader, task.get("template"), f"{path}.template"),
        policies=_read_policies(reader, task.get("policies"), f"{path}.policies"),
        depends_on=_known_mapping(
            reader,
            task.get("dependsOn"),
            known_fields.DEPENDS_ON,
            f"{path}.dependsOn",
        ),
    )


def _task_name(reader: Reader, value: object, path: str) -> str:
    name = reader.text(value, path, longest=1000)
    if name and not is_label(name):
        rule = (
            "must be lower-case letters, digits and -, begin and end with a letter or digit, and "
            "have at most 63 characters"
        )
        reader.refuse("invalid_name", path, f"{path} is {shown(name)}; a task's name {rule}.")
    return name


def read_topology(reader: Reader, value: object, path: str) -> Mapping[str, object]:
    """How near to each other the pods must be; a tier is given by number or by name, not both."""
    given = dict(reader.mapping(value, path))
    if not given:
        return {}
    reader.unknown_fields(given, ("mode", "highestTierAllowed", "highestTierName"), path)
    reader.choice(
        given.get("mode"),
        f"{path}.mode",
        ("hard", "soft"),
        "hard",
        "invalid_topology_mode",
    )
    if given.get("highestTierAllowed") is not None:
        reader.number(given["highestTierAllowed"], f"{path}.highestTierAllowed", 0)
    tier_name = reader.text(given.get("highestTierName"), f"{path}.highestTierName")
    if given.get("highestTierAllowed") is not None and tier_name:
        message = (
            f"{path} has both highestTierAllowed and highestTierName; only one of them can be "
            "given."
        )
        reader.refuse("topology_tier_conflict", path, message, "leave one of them out")
    return given


def read_podgroup(
    manifest: object,
    facts: Facts,
    *,
    is_new: bool = True,
) -> Reading[PodGroupManifest]:
    reader, whole = _open_manifest(
        manifest, "PodGroup", SCHEDULING_VERSIONS, known_fields.PODGROUP_STATUS
    )
    if whole is None:
        return Reading(None, tuple(reader.violations))
    metadata = read_metadata(reader, whole)
    filled: Mapping[str, object] = whole
    if is_new:
        filled = with_defaults(whole, podgroup_defaults(whole, facts))
    spec = reader.mapping(filled.get("spec"), "spec")
    reader.unknown_fields(spec, _PODGROUP_FIELDS, "spec")
    reader.unused_fields(spec, _UNUSED_PODGROUP_FIELDS, "spec")
    podgroup = _read_podgroup_spec(reader, spec, metadata)
    return Reading.of(reader, podgroup, metadata.name)


def _read_podgroup_spec(
    reader: Reader,
    spec: Mapping[str, object],
    metadata: Metadata,
) -> PodGroupManifest:
    members = reader.mapping(spec.get("minTaskMember"), "spec.minTaskMember")
    minimum = spec.get("minResources")
    if minimum is not None:
        resources = reader.resources(minimum, "spec.minResources")
    else:
        resources = None
    for resource, amount in (resources or {}).items():
        if amount < 0:
            path = f"spec.minResources.{resource}"
            reader.refuse(
                "negative_quantity", path, f"{path} must be 0 or more.", "write 0 or more"
            )
    return PodGroupManifest(
        metadata=metadata,
        queue=reader.text(spec.get("queue"), "spec.queue"),
        min_member=reader.number(spec.get("minMember"), "spec.minMember", 1),
        min_task_member={
            task: reader.number(number, f"spec.minTaskMember.{shown(task)}", 0)
            for task, number in members.items()
        },
        min_resources=resources,
        priority_class=reader.name(
            spec.get("priorityClassName"), "spec.priorityClassName", required=False
        ),
        network_topology=read_topology(reader, spec.get("networkTopology"), "spec.networkTopology"),
        sub_group_policy=tuple(_read_sub_groups(reader, spec.get("subGroupPolicy"))),
    )


def _read_sub_groups(reader: Reader, value: object) -> list[Mapping[str, object]]:
    policies: list[Mapping[str, object]] = []
    for index, item in enumerate(reader.items(value, "spec.subGroupPolicy")):
        path = f"spec.subGroupPolicy[{index}]"
        policy = _known_mapping(reader, item, known_fields.SUB_GROUP, path)
        reader.text(policy.get("name"), f"{path}.name")
        reader.number(policy.get("subGroupSize"), f"{path}.subGroupSize", 1, least=1)
        reader.number(policy.get("minSubGroups"), f"{path}.minSubGroups", 0)
        read_topology(reader, policy.get("networkTopology"), f"{path}.networkTopology")
        policies.append(policy)
    return policies


def read_pod(manifest: object) -> Reading[PodManifest]:
    reader, whole = _open_manifest(manifest, "Pod", POD_VERSIONS, known_fields.POD_STATUS)
    if whole is None:
        return Reading(None, tuple(reader.violations))
    metadata = _pod_metadata(reader, whole)
    spec = whole.get("spec")
    template = read_template(reader, {"metadata": whole.get("metadata"), "spec": spec}, "")
    annotations = metadata.annotations
    pod = PodManifest(
        metadata=metadata,
        queue=annotations.get(QUEUE_ANNOTATION, "") or metadata.labels.get(QUEUE_ANNOTATION, ""),
        podgroup=next((annotations[key] for key in GROUP_ANNOTATIONS if annotations.get(key)), ""),
        scheduler_name=reader.text(
            reader.mapping(spec, "spec").get("schedulerName"), "spec.schedulerName"
        ),
        template=template,
    )
    return Reading(pod, tuple(reader.violations), tuple(reader.notices))


def _pod_metadata(reader: Reader, whole: Mapping[str, object]) -> Metadata:
    """A pod of a controller has no name yet when it is admitted, only the beginning of one."""
    metadata = whole.get("metadata")
    if (
        isinstance(metadata, Mapping)
        and not metadata.get("name")
        and isinstance(metadata.get("generateName"), str)
    ):
        return read_metadata(
            reader,
            {
                **whole,
                "metadata": {**metadata, "name": metadata["generateName"].rstrip("-.") or "pod"},
            },
        )
    return read_metadata(reader, whole)


__all__ = [
    "GROUP_ANNOTATIONS",
    "JobManifest",
    "PodGroupManifest",
    "PodManifest",
    "TaskManifest",
    "name_of",
    "read_job",
    "read_pod",
    "read_podgroup",
    "read_topology",
]
