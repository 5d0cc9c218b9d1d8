"""Kubernetes-shaped Node, Namespace, PriorityClass and bus Command objects, read into values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.admission.reading import known_fields
from scheduler.admission.reading.queue import Metadata, Reading, check_status, read_metadata
from scheduler.admission.reading.reader import INT32, Reader, is_label, shown
from scheduler.domain.resources import NOTHING, Resources

NODE_VERSIONS = ("v1",)
PRIORITY_CLASS_VERSIONS = ("scheduling.k8s.io/v1",)
COMMAND_VERSIONS = ("bus.volcano.sh/v1alpha1",)

_NODE_SPEC = (
    "unschedulable",
    "taints",
    "podCIDR",
    "podCIDRs",
    "providerID",
    "configSource",
    "externalID",
)
_TAINT = ("key", "value", "effect", "timeAdded")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PREEMPTION = ("PreemptLowerPriority", "Never")
HIGHEST_PRIORITY = 1_000_000_000


@dataclass(frozen=True, slots=True)
class NodeManifest:
    metadata: Metadata
    allocatable: Resources = NOTHING
    taints: tuple[Mapping[str, str], ...] = ()
    unschedulable: bool = False
    ready: bool = True


@dataclass(frozen=True, slots=True)
class NamespaceManifest:
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class PriorityClassManifest:
    metadata: Metadata
    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"
    description: str = ""


@dataclass(frozen=True, slots=True)
class CommandManifest:
    """An order to a queue or a job. `uid` is what the target's must be, "" for any."""

    action: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    reason: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)


def _open_manifest(
    manifest: object,
    kind: str,
    versions: tuple[str, ...],
    known: tuple[str, ...],
) -> tuple[Reader, Mapping[str, object] | None]:
    reader = Reader()
    if not isinstance(manifest, Mapping):
        reader.wrong_type("", manifest, "an object")
        return reader, None
    whole = reader.mapping(manifest, "the object")
    reader.unknown_fields(whole, ("apiVersion", "kind", "metadata", *known), "")
    if whole.get("kind") not in (None, kind):
        reader.refuse(
            "invalid_kind",
            "kind",
            f"kind is {shown(whole['kind'])}; here it must be {kind}.",
            f"write {kind}",
        )
    if whole.get("apiVersion") is not None and whole["apiVersion"] not in versions:
        wanted = " or ".join(versions)
        reader.refuse(
            "invalid_api_version",
            "apiVersion",
            f"apiVersion is {shown(whole['apiVersion'])}; it must be {wanted}.",
            f"write {wanted}",
        )
    return reader, whole


def read_node(manifest: object) -> Reading[NodeManifest]:
    """A Node.

    What it has is `status.allocatable`, or `status.capacity` where only that is given.
    """
    reader, whole = _open_manifest(manifest, "Node", NODE_VERSIONS, ("spec", "status"))
    if whole is None:
        return Reading(None, tuple(reader.violations))
    metadata = read_metadata(reader, whole)
    spec = reader.mapping(whole.get("spec"), "spec")
    status = reader.mapping(whole.get("status"), "status")
    reader.unknown_fields(spec, _NODE_SPEC, "spec", elsewhere={"status": known_fields.NODE_STATUS})
    reader.unknown_fields(status, known_fields.NODE_STATUS, "status")
    allocatable = _read_allocatable(reader, status)
    taints = []
    for index, taint in enumerate(_read_list(reader, spec, "taints")):
        taints.append(_read_taint(reader, taint, f"spec.taints[{index}]"))
    node = NodeManifest(
        metadata=metadata,
        allocatable=allocatable,
        taints=tuple(taints),
        unschedulable=reader.truth(spec.get("unschedulable"), "spec.unschedulable", False),
        ready=_is_ready(reader, status.get("conditions")),
    )
    return Reading.of(reader, node, metadata.name)


def _read_list(reader: Reader, given: Mapping[str, object], key: str) -> list[object]:
    return reader.items(given.get(key), f"spec.{key}")


def _read_allocatable(reader: Reader, status: Mapping[str, object]) -> Resources:
    if status.get("allocatable") is not None:
        field_name = "allocatable"
    else:
        field_name = "capacity"
    amounts = reader.resources(status.get(field_name), f"status.{field_name}")
    for resource, amount in amounts.items():
        if amount < 0:
            path = f"status.{field_name}.{resource}"
            reader.refuse(
                "negative_quantity", path, f"{path} must be 0 or more.", "write 0 or more"
            )
    return amounts.clamped_at_zero()


def _read_taint(reader: Reader, value: object, path: str) -> dict[str, str]:
    taint = reader.mapping(value, path)
    reader.unknown_fields(taint, _TAINT, path)
    key = reader.text(taint.get("key"), f"{path}.key")
    if not key:
        reader.refuse(
            "invalid_value", f"{path}.key", f"{path}.key must be given.", "name the taint"
        )
    effect = reader.choice(
        taint.get("effect"),
        f"{path}.effect",
        _EFFECTS,
        "NoSchedule",
        "invalid_value",
    )
    return {"key": key, "value": reader.text(taint.get("value"), f"{path}.value"), "effect": effect}


def _is_ready(reader: Reader, conditions: object) -> bool:
    """Ready unless its condition Ready says otherwise."""
    given = []
    for index, item in enumerate(reader.items(conditions, "status.conditions")):
        given.append(_read_condition(reader, item, f"status.conditions[{index}]"))
    for condition in given:
        if condition.get("type") == "Ready":
            return bool(condition.get("status") == "True")
    return True


def _read_condition(reader: Reader, value: object, path: str) -> Mapping[str, object]:
    condition = reader.mapping(value, path)
    reader.unknown_fields(condition, known_fields.CONDITION, path)
    return condition


def read_namespace(manifest: object) -> Reading[NamespaceManifest]:
    reader, whole = _open_manifest(manifest, "Namespace", NODE_VERSIONS, ("spec", "status"))
    if whole is None:
        return Reading(None, tuple(reader.violations))
    reader.unknown_fields(
        reader.mapping(whole.get("spec"), "spec"),
        known_fields.NAMESPACE_SPEC,
        "spec",
    )
    check_status(reader, whole, known_fields.NAMESPACE_STATUS)
    metadata = read_metadata(reader, whole)
    if metadata.name and not is_label(metadata.name):
        rule = "lower-case letters, digits and -, at most 63 characters"
        reader.refuse(
            "invalid_name",
            "metadata.name",
            f"metadata.name is {shown(metadata.name)}; a namespace's name has {rule}.",
        )
    if metadata.name:
        value = NamespaceManifest(metadata)
    else:
        value = None
    return Reading(value, tuple(reader.violations), tuple(reader.notices))


_PRIORITY_CLASS = ("value", "globalDefault", "preemptionPolicy", "description")


def with_spec(manifest: object) -> object:
    """A PriorityClass as ours, with its fields below `spec`; Kubernetes has them at the top.

    What stands in both places counts below.
    """
    if not isinstance(manifest, Mapping) or not isinstance(manifest.get("spec") or {}, Mapping):
        return manifest
    lifted = {}
    for key in _PRIORITY_CLASS:
        if key in manifest:
            lifted[key] = manifest[key]
    rest = {}
    for key, value in manifest.items():
        if key not in lifted:
            rest[key] = value
    if lifted:
        return {**rest, "spec": {**lifted, **(manifest.get("spec") or {})}}
    return manifest


def read_priority_class(manifest: object) -> Reading[PriorityClassManifest]:
    reader, whole = _open_manifest(
        with_spec(manifest),
        "PriorityClass",
        PRIORITY_CLASS_VERSIONS,
        ("spec", "status"),
    )
    if whole is None:
        return Reading(None, tuple(reader.violations))
    check_status(reader, whole, ())
    metadata = read_metadata(reader, whole)
    spec = reader.mapping(whole.get("spec"), "spec")
    reader.unknown_fields(spec, _PRIORITY_CLASS, "spec")
    if spec.get("value") is None:
        reader.refuse(
            "invalid_value",
            "spec.value",
            "spec.value must be given.",
            "write a whole number, such as 100",
        )
    value = PriorityClassManifest(
        metadata=metadata,
        value=reader.number(
            spec.get("value"),
            "spec.value",
            0,
            least=-INT32,
            most=HIGHEST_PRIORITY,
            rule_id="priority_out_of_range",
        ),
        global_default=reader.truth(spec.get("globalDefault"), "spec.globalDefault", False),
        preemption_policy=reader.choice(
            spec.get("preemptionPolicy"),
            "spec.preemptionPolicy",
            _PREEMPTION,
            "PreemptLowerPriority",
            "invalid_value",
        ),
        description=reader.text(spec.get("description"), "spec.description", longest=1024),
    )
    return Reading.of(reader, value, metadata.name)


def _point_out_unread(reader: Reader, command: Mapping[str, object]) -> None:
    """A command has neither spec nor status.

    Our records of commands have both, so that they may come along.
    """
    for part in ("spec", "status"):
        for key in reader.mapping(command.get(part), part):
            where = f"{part}.{shown(key)}"
            reader.note(
                "unused_field",
                where,
                f"{where} is not read: a command's action, target and reason stand at the top",
            )


def read_command(manifest: object) -> Reading[CommandManifest]:
    """A bus Command: an action and its target, at the top of the object."""
    known = ("action", "target", "reason", "message", "spec", "status")
    reader, whole = _open_manifest(manifest, "Command", COMMAND_VERSIONS, known)
    if whole is None:
        return Reading(None, tuple(reader.violations))
    target = reader.mapping(whole.get("target"), "target")
    reader.unknown_fields(
        target,
        ("apiVersion", "kind", "name", "namespace", "uid", "controller", "blockOwnerDeletion"),
        "target",
    )
    metadata = reader.mapping(whole.get("metadata"), "metadata")
    reader.unknown_fields(metadata, known_fields.METADATA, "metadata")
    _point_out_unread(reader, whole)
    kind = reader.choice(
        target.get("kind"),
        "target.kind",
        ("Queue", "Job"),
        "Queue",
        "invalid_kind",
    )
    command = CommandManifest(
        action=reader.text(whole.get("action"), "action", longest=64),
        kind=kind,
        name=reader.name(target.get("name"), "target.name"),
        namespace=_namespace_of_target(reader, kind, target, metadata),
        uid=reader.text(target.get("uid"), "target.uid", longest=64),
        reason=reader.text(whole.get("reason") or whole.get("message"), "reason", longest=1024),
    )
    if not command.action:
        reader.refuse(
            "action_required",
            "action",
            "action must be given.",
            "write OpenQueue, CloseQueue, SuspendQueue or ResumeQueue",
        )
    return Reading.of(reader, command, command.action)


def _namespace_of_target(
    reader: Reader,
    kind: str,
    target: Mapping[str, object],
    metadata: Mapping[str, object],
) -> str:
    """As the target says, else as the command's own metadata; a queue has none."""
    if kind != "Job":
        return ""
    namespace = target.get("namespace")
    if namespace is None:
        namespace = metadata.get("namespace")
    return reader.text(namespace, "target.namespace", longest=63) or "default"
