"""Queue objects in Kubernetes' shape, read into domain values and written back.

The API, the webhooks, apply and the command line share it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from scheduler.admission.defaults import queue_defaults, with_defaults
from scheduler.admission.reading import known_fields
from scheduler.admission.reading.reader import Reader, is_label, is_storable, shown
from scheduler.admission.violations import Notice, Violation
from scheduler.domain.lifecycle import CLOSED_BY_PARENT, REQUESTABLE_STATES, requested_state_of
from scheduler.domain.queue_fields import (
    AMOUNT_FIELDS,
    PLAIN_FIELDS,
    QUEUE_FIELDS,
    FieldKind,
    QueueField,
    names_in,
)
from scheduler.domain.queues import DEFAULT, ROOT, QueueSpec, QueueState
from scheduler.domain.resources import Resources

SCHEDULING_VERSIONS = ("scheduling.volcano.sh/v1beta1", "scheduling.sigs.dev/v1alpha2")
JOB_VERSIONS = ("batch.volcano.sh/v1alpha1",)
POD_VERSIONS = ("v1",)

_OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_UNUSED_QUEUE_FIELDS = ("affinity", "extendClusters")
_QUEUE_FIELDS = (*(field.key for field in QUEUE_FIELDS), *_UNUSED_QUEUE_FIELDS)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """What was read, with every flaw of shape.

    `value` is None only where not even a name could be read.
    """

    value: T | None
    violations: tuple[Violation, ...] = ()
    notices: tuple[Notice, ...] = ()

    @classmethod
    def of(cls, reader: Reader, value: T, name: str) -> Reading[T]:
        """All that the reader found; no value where the name could not be read."""
        violations = tuple(reader.violations)
        notices = tuple(reader.notices)
        if not name:
            return cls(None, violations, notices)
        return cls(value, violations, notices)


@dataclass(frozen=True, slots=True)
class QueueReading:
    """A queue as asked for.

    `sets_state` says that the request itself names a state; `is_unknown` that it came stored as
    Unknown.
    """

    spec: QueueSpec
    sets_state: bool = False
    is_unknown: bool = False
    uid: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Metadata:
    name: str
    namespace: str
    uid: str
    resource_version: str
    labels: dict[str, str]
    annotations: dict[str, str]


def read_metadata(reader: Reader, manifest: Mapping[str, object]) -> Metadata:
    given = reader.mapping(manifest.get("metadata"), "metadata")
    reader.unknown_fields(given, known_fields.METADATA, "metadata")
    return Metadata(
        name=reader.name(given.get("name"), "metadata.name"),
        namespace=_read_namespace(reader, given.get("namespace")),
        uid=reader.text(given.get("uid"), "metadata.uid"),
        resource_version=reader.text(
            _as_text(given.get("resourceVersion")), "metadata.resourceVersion"
        ),
        labels=reader.labels(given.get("labels"), "metadata.labels"),
        annotations=reader.texts(given.get("annotations"), "metadata.annotations"),
    )


def _read_namespace(reader: Reader, value: object) -> str:
    text = reader.text(value, "metadata.namespace", longest=1000)
    if text and not is_label(text):
        rule = "lower-case letters, digits and -, at most 63 characters"
        reader.refuse(
            "invalid_name",
            "metadata.namespace",
            f"metadata.namespace is {shown(text)}; a namespace's name has {rule}.",
        )
    return text


def _as_text(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


UNSUPPORTED_KINDS = (
    "CronJob",
    "JobFlow",
    "JobTemplate",
    "Workflow",
    "WorkflowTemplate",
    "Deployment",
    "ReplicaSet",
    "HyperNode",
    "NodeShard",
)
"""What Volcano's own examples have beside jobs and queues, and nothing here makes pods of."""


def check_kind(
    reader: Reader,
    manifest: Mapping[str, object],
    kind: str,
    versions: Collection[str],
) -> None:
    """The kind and version may be left out; given, they must be ours."""
    reader.unknown_fields(manifest, _OBJECT_FIELDS, "")
    given = manifest.get("kind")
    if given is not None and given != kind:
        known = ""
        if given in UNSUPPORTED_KINDS:
            known = f" {given} is not supported."
        reader.refuse(
            "invalid_kind",
            "kind",
            f"kind is {shown(given)}; here it must be {kind}.{known}",
            f"write {kind}",
        )
    version = manifest.get("apiVersion")
    if version is not None and version not in versions:
        wanted = " or ".join(versions)
        reader.refuse(
            "invalid_api_version",
            "apiVersion",
            f"apiVersion is {shown(version)}; it must be {wanted}.",
            f"write {wanted}",
        )


def check_status(reader: Reader, manifest: Mapping[str, object], known: Collection[str]) -> None:
    """A status is not read where it says what the server knows better.

    What no server ever wrote is a mistake of the sender.
    """
    given = manifest.get("status")
    if isinstance(given, Mapping):
        reader.unknown_fields(reader.mapping(given, "status"), known, "status")


def name_of(manifest: object) -> str:
    """The name in a manifest of any shape, "" where there is none that could be looked for."""
    return _named_in(manifest, "metadata", "name")


def place_of(manifest: object) -> tuple[str, str]:
    """Namespace and queue as far as they can be made out in whatever came."""
    return _named_in(manifest, "metadata", "namespace") or DEFAULT, _named_in(
        manifest, "spec", "queue"
    ) or DEFAULT


def _named_in(manifest: object, part: str, key: str) -> str:
    fields = None
    if isinstance(manifest, Mapping):
        fields = manifest.get(part)
    name = None
    if isinstance(fields, Mapping):
        name = fields.get(key)
    if isinstance(name, str) and is_storable(name):
        return name
    return ""


def read_queue(
    manifest: object,
    old: QueueSpec | None = None,
    *,
    imported: bool = False,
    stored_state: object = "",
) -> Reading[QueueReading]:
    """A Queue manifest, with defaults filled in. `old` is the stored queue when this is an update.

    `imported` takes any `status.state` that comes without a `spec.state` as what another system had
    stored; `stored_state` is the one that an update finds there, which it may carry on whatever it
    is.
    """
    reader = Reader(queue=shown(name_of(manifest)))
    if not isinstance(manifest, Mapping):
        reader.wrong_type("", manifest, "an object with metadata and spec")
        return Reading(None, tuple(reader.violations))
    whole = reader.mapping(manifest, "the object")
    check_kind(reader, whole, "Queue", SCHEDULING_VERSIONS)
    check_status(reader, whole, known_fields.QUEUE_STATUS)
    metadata = read_metadata(reader, whole)
    spec = _read_spec(reader, _spec_with_defaults(whole, old), metadata, old)
    if old is None:
        _tell_of_weight(reader, whole, spec)
    if old is None or state_of(whole) != stored_state:
        carried = whole
    else:
        carried = {**whole, "status": None}
    requested, sets_state, is_unknown = _read_state(reader, carried, metadata, old, imported)
    value = QueueReading(
        replace(spec, state=requested),
        sets_state,
        is_unknown,
        metadata.uid,
        metadata.resource_version,
    )
    return Reading.of(reader, value, metadata.name)


def state_of(manifest: object) -> object:
    """The `status.state` of a manifest as it stands there, "" where there is none."""
    status = None
    if isinstance(manifest, Mapping):
        status = manifest.get("status")
    if isinstance(status, Mapping):
        return status.get("state", "")
    return ""


def _spec_with_defaults(manifest: Mapping[str, object], old: QueueSpec | None) -> object:
    # an update is not defaulted: a weight of 0 is then a mistake, not something left out
    if old is not None:
        return manifest.get("spec")
    return with_defaults(manifest, queue_defaults(manifest)).get("spec")


def _tell_of_weight(reader: Reader, manifest: Mapping[str, object], spec: QueueSpec) -> None:
    """A new queue's weight of 0 counts as left out, as in Volcano.

    Who wrote it may have meant something else.
    """
    given = manifest.get("spec")
    weight = None
    if isinstance(given, Mapping):
        weight = given.get("weight")
    if type(weight) is int and weight == 0 and spec.weight != 0:
        reader.note(
            "weight_defaulted",
            "spec.weight",
            f"spec.weight is 0, which counts as not set: the weight will be {spec.weight}.",
        )


def _read_spec(reader: Reader, raw: object, metadata: Metadata, old: QueueSpec | None) -> QueueSpec:
    given = reader.mapping(raw, "spec")
    reader.unknown_fields(given, _QUEUE_FIELDS, "spec")
    reader.unused_fields(given, _UNUSED_QUEUE_FIELDS, "spec")
    values = {}
    for field in PLAIN_FIELDS:
        values[field.name] = _FIELD_READERS[field.kind](reader, given.get(field.key), field, old)
    annotations = dict(metadata.annotations)
    annotations.pop(CLOSED_BY_PARENT, None)  # it tells of a moment, and is not kept
    return QueueSpec(
        name=metadata.name,
        parent=_read_parent(reader, given, metadata.name),
        labels=metadata.labels,
        annotations=annotations,
        **values,
    )


def _read_number(reader: Reader, value: object, field: QueueField, _old: QueueSpec | None) -> int:
    return reader.number(
        value,
        field.path,
        field.default,
        least=field.least,
        most=field.most,
        rule_id=field.rule_id,
    )


def _read_optional_number(
    reader: Reader,
    value: object,
    field: QueueField,
    old: QueueSpec | None,
) -> int | None:
    """None where it is left out."""
    if value is None:
        return None
    return _read_number(reader, value, field, old)


def _read_truth(reader: Reader, value: object, field: QueueField, old: QueueSpec | None) -> bool:
    if old is None:
        default = field.default
    else:
        default = getattr(old, field.name)
    return reader.truth(value, field.path, default)


def _read_choice(
    reader: Reader,
    value: object,
    field: QueueField,
    _old: QueueSpec | None,
) -> StrEnum:
    assert field.choices is not None
    allowed = [choice.value for choice in field.choices]
    return field.choices(
        reader.choice(value, field.path, allowed, field.default.value, field.rule_id)
    )


def _read_amounts(
    reader: Reader,
    value: object,
    field: QueueField,
    _old: QueueSpec | None,
) -> Resources:
    """Below the key that the field is nested in, as Volcano writes it, or flat."""
    path = f"spec.{field.key}"
    if not field.nested:
        return reader.resources(value, path)
    given = reader.mapping(value, path)
    if field.nested not in given:
        return reader.resources(given, path)
    reader.unknown_fields(given, (field.nested,), path)
    return reader.resources(given[field.nested], field.path)


def _read_word(reader: Reader, value: object, field: QueueField, _old: QueueSpec | None) -> str:
    return reader.text(value, field.path, longest=field.most)


def _read_plain_text(
    reader: Reader,
    value: object,
    field: QueueField,
    _old: QueueSpec | None,
) -> str:
    with_breaks = field.kind is FieldKind.PARAGRAPH
    return reader.plain_text(value, field.path, longest=field.most, with_breaks=with_breaks)


def _read_names(reader: Reader, value: object, field: QueueField, _old: QueueSpec | None) -> str:
    """A list of names, or a text with commas or spaces between them; each once, in order."""
    if isinstance(value, list):
        given = value
    else:
        given = list(reader.text(value, field.path, longest=field.most).replace(",", " ").split())
    names = set()
    for name in given:
        if isinstance(name, str) and is_label(name):
            names.add(name)
        else:
            rule = "lower-case letters, digits and -, at most 63 characters"
            what = shown(name) or "an empty name"
            message = f"{field.path} has {what}; a namespace's name has {rule}."
            reader.refuse("invalid_name", field.path, message)
    together = ",".join(sorted(names))
    if len(together) > field.most:
        message = f"{field.path} has {len(together):,} characters, {field.most:,} are allowed."
        reader.refuse("invalid_value", field.path, message)
        return ""
    return together


_FIELD_READERS: Final[dict[FieldKind, Callable[..., Any]]] = {
    FieldKind.NUMBER: _read_number,
    FieldKind.SECONDS: _read_optional_number,
    FieldKind.LIMIT: _read_optional_number,
    FieldKind.TRUTH: _read_truth,
    FieldKind.CHOICE: _read_choice,
    FieldKind.AMOUNTS: _read_amounts,
    FieldKind.WORD: _read_word,
    FieldKind.LINE: _read_plain_text,
    FieldKind.PARAGRAPH: _read_plain_text,
    FieldKind.NAMES: _read_names,
}


def _read_parent(reader: Reader, given: Mapping[str, object], name: str) -> str:
    parent = reader.name(given.get("parent"), "spec.parent", required=False)
    if parent or name == ROOT:
        return parent
    return ROOT


def _read_state(
    reader: Reader,
    manifest: Mapping[str, object],
    metadata: Metadata,
    old: QueueSpec | None,
    imported: bool,
) -> tuple[QueueState, bool, bool]:
    """The requested state, whether the request sets it, and whether it was stored as Unknown."""
    unchanged = QueueState.OPEN
    if old:
        unchanged = old.state
    status = reader.mapping(manifest.get("status"), "status")
    stored = reader.text(status.get("state"), "status.state")
    if old is not None:
        _check_known(reader, stored)
    spec = manifest.get("spec")
    asked = None
    if isinstance(spec, Mapping):
        asked = spec.get("state")
    if asked is not None and asked != "":
        requested = reader.choice(
            asked,
            "spec.state",
            [state.value for state in REQUESTABLE_STATES],
            unchanged.value,
            "invalid_state",
        )
        return QueueState(requested), True, False
    if old is not None:
        return unchanged, False, False
    return _wish_at_creation(reader, stored, metadata.annotations, imported)


def _check_known(reader: Reader, stored: str) -> None:
    reader.choice(
        stored,
        "spec.state",
        [state.value for state in QueueState],
        "Open",
        "invalid_state",
    )


def _wish_at_creation(
    reader: Reader,
    stored: str,
    annotations: Mapping[str, str],
    imported: bool,
) -> tuple[QueueState, bool, bool]:
    allowed = list(REQUESTABLE_STATES)
    if imported:
        allowed = list(QueueState)
    words = [state.value for state in allowed]
    reader.choice(stored, "spec.state", words, "Open", "invalid_state")
    requested = requested_state_of(stored, annotations) or QueueState.OPEN
    return requested, bool(stored), stored == QueueState.UNKNOWN.value


def queue_manifest(spec: QueueSpec) -> dict[str, object]:
    """The `metadata` and `spec` of a queue as Kubernetes writes them.

    Reading it gives the same queue.
    """
    body: dict[str, object] = {}
    for field in QUEUE_FIELDS:
        value = getattr(spec, field.name)
        if field.kind is FieldKind.NAMES:
            if value:
                body[field.key] = names_in(value)
        elif field.kind is not FieldKind.AMOUNTS and value is not None:
            body[field.key] = _written(value)
    for field in AMOUNT_FIELDS:
        amounts = getattr(spec, field.name).to_quantities()
        if amounts and field.nested:
            body[field.key] = {field.nested: amounts}
        elif amounts:
            body[field.key] = amounts
    metadata = {
        "name": spec.name,
        "labels": dict(spec.labels),
        "annotations": dict(spec.annotations),
    }
    return {
        "apiVersion": SCHEDULING_VERSIONS[0],
        "kind": "Queue",
        "metadata": metadata,
        "spec": body,
    }


def _written(value: object) -> object:
    if isinstance(value, StrEnum):
        return value.value
    return value
