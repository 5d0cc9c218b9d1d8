"""Queues, their tree, history and commands."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from dashboard.api.schema.cluster import Empty
from dashboard.api.schema.parts import (
    Caution,
    Metadata,
    amounts,
    choice,
    given_amounts,
    manifest_shape,
    maybe_moment,
    moment,
    object_shape,
    shape,
    text,
)
from scheduler.domain.lifecycle import REQUESTABLE_STATES
from scheduler.domain.queue_fields import QUEUE_FIELDS, FieldKind, QueueField
from scheduler.domain.queues import QueueState

_OPTIONAL = (FieldKind.SECONDS, FieldKind.LIMIT)


def _shown(field: QueueField) -> s.Field[Any, Any, Any, Any]:
    """A field of `spec` as the API answers it."""
    if field.kind is FieldKind.NUMBER:
        return s.IntegerField()
    if field.kind in _OPTIONAL:
        return s.IntegerField(allow_null=True, help_text=field.help)
    if field.kind is FieldKind.TRUTH:
        return s.BooleanField()
    if field.kind is FieldKind.CHOICE:
        return choice(_choices(field))
    if field.kind is FieldKind.AMOUNTS and field.nested:
        return shape(field.label, **{field.nested: amounts()})()
    if field.kind is FieldKind.AMOUNTS:
        return amounts()
    if field.kind is FieldKind.NAMES:
        return s.ListField(child=s.CharField(), help_text=field.help)
    return text(**_help(field))


def _given(field: QueueField) -> s.Field[Any, Any, Any, Any]:
    """A field of `spec` as the API takes it; all may be left out."""
    if field.kind is FieldKind.NUMBER:
        most = None
        if field.name == "weight":
            most = field.most
        return s.IntegerField(required=False, min_value=field.least, max_value=most)
    if field.kind in _OPTIONAL:
        return s.IntegerField(
            required=False,
            allow_null=True,
            min_value=field.least,
            max_value=field.most,
            help_text=field.help,
        )
    if field.kind is FieldKind.TRUTH:
        return s.BooleanField(required=False)
    if field.kind is FieldKind.CHOICE:
        return choice(_choices(field), required=False)
    if field.kind is FieldKind.AMOUNTS and field.nested:
        return shape(f"Given{field.label}", **{field.nested: given_amounts()})(required=False)
    if field.kind is FieldKind.AMOUNTS:
        return given_amounts()
    if field.kind is FieldKind.QUEUE:
        return s.CharField(required=False)
    return _given_text(field)


def _given_text(field: QueueField) -> s.Field[Any, Any, Any, Any]:
    if field.kind is FieldKind.WORD:
        return text(required=False)
    if field.kind is FieldKind.NAMES:
        return s.ListField(child=s.CharField(), required=False, help_text=field.help)
    return text(required=False, max_length=field.most, **_help(field))


def _choices(field: QueueField) -> Iterable[StrEnum]:
    """Of the states only those that can be requested."""
    if field.choices is QueueState:
        return REQUESTABLE_STATES
    return field.choices or ()


def _help(field: QueueField) -> dict[str, str]:
    if field.kind is FieldKind.LINE or field.kind is FieldKind.PARAGRAPH:
        return {"help_text": field.help}
    return {}


QueueSpec = shape("QueueSpec", **{field.key: _shown(field) for field in QUEUE_FIELDS})
GangCounts = shape(
    "GangCounts",
    pending=s.IntegerField(),
    inqueue=s.IntegerField(),
    running=s.IntegerField(),
    unknown=s.IntegerField(),
    completed=s.IntegerField(),
)
JobCounts = shape(
    "JobCounts",
    pending=s.IntegerField(),
    running=s.IntegerField(),
    completed=s.IntegerField(),
    failed=s.IntegerField(),
    aborted=s.IntegerField(),
    unknown=s.IntegerField(),
)
QueueStatus = shape(
    "QueueStatus",
    state=choice(QueueState),
    closedBy=text(),
    suspendedBy=text(),
    minRunSeconds=s.IntegerField(
        help_text="how long its pods run at least before they may be evicted: its own time, "
        "that of the nearest queue above, or else the policy's",
    ),
    minRunSecondsFrom=text(
        help_text="the queue that names this time; empty where none does, and the policy decides"
    ),
    limits=shape(
        "QueueLimit",
        field=s.CharField(help_text="the field of spec that sets it"),
        limit=s.IntegerField(help_text="the lowest on the way from this queue to root"),
        queue=s.CharField(help_text="the queue that sets it"),
    )(many=True),
    pending=s.IntegerField(),
    inqueue=s.IntegerField(),
    running=s.IntegerField(),
    unknown=s.IntegerField(),
    completed=s.IntegerField(),
    subtree=GangCounts(),
    jobs=JobCounts(),
    allocated=amounts(help_text="what pods hold on nodes: bound, running or leaving"),
    leaving=amounts(help_text="the part of allocated that is on its way out"),
    promised=amounts(help_text="room that is kept for pods that wait"),
    asked=amounts(help_text="what pods wait for, without jobs that can never run"),
    lacking=amounts(help_text="how much of the resource that they wait for its jobs need"),
    deserved=amounts(),
    nominalShare=amounts(),
    request=amounts(),
    held=amounts(),
    realCapability=amounts(allow_null=True),
    share=s.FloatField(),
    overused=s.BooleanField(),
    reservation=shape("Reservation", resource=amounts())(),
    conditions=s.ListField(child=s.DictField()),
    warnings=Caution(many=True),
)
Queue = object_shape("Queue", QueueSpec(), QueueStatus())
GivenQueueSpec = shape("GivenQueueSpec", **{field.key: _given(field) for field in QUEUE_FIELDS})
QueueManifest = manifest_shape("Queue", GivenQueueSpec(required=False))


@extend_schema_field({"type": "array", "items": {"$ref": "#/components/schemas/QueueTree"}})
class _Children(s.ListField):
    """Objects of the very shape that holds them."""


QueueTree = shape(
    "QueueTree",
    apiVersion=s.CharField(),
    kind=s.CharField(),
    metadata=Metadata(),
    spec=QueueSpec(),
    status=QueueStatus(),
    children=_Children(child=s.DictField()),
)
FlatTree = shape("FlatTree", results=Queue(many=True))
_AFTERMATH = {
    "podgroups": s.IntegerField(help_text="records of podgroups that stay"),
    "jobs": s.IntegerField(help_text="records of jobs that stay, to be found by the queue's name"),
    "suspendedJobs": s.IntegerField(
        help_text="of these, suspended jobs, which cannot be resumed any more"
    ),
    "grants": s.IntegerField(help_text="roles granted on the queues, which go with them"),
}
DeletedQueues = shape(
    "DeletedQueues",
    deleted=s.ListField(child=s.CharField()),
    **_AFTERMATH,
    message=s.CharField(),
    dryRun=s.BooleanField(),
)
Reason = shape("Reason", reason=s.CharField(required=False, allow_blank=True, max_length=1024))
CommandAnswer = shape(
    "CommandAnswer",
    changed=s.BooleanField(),
    message=s.CharField(),
    dryRun=s.BooleanField(),
    command=s.CharField(),
    queue=s.CharField(),
    queues=shape(
        "TurnedQueue", **{"name": s.CharField(), "from": s.CharField(), "to": s.CharField()}
    )(many=True),
    podgroups=shape("GangLoad", running=s.IntegerField(), waiting=s.IntegerField())(),
    pods=shape("PodLoad", running=s.IntegerField(), waiting=s.IntegerField())(),
    users=s.ListField(child=s.CharField()),
    warnings=Caution(many=True),
)
CloseFirst = shape(
    "Farewell",
    planned=s.ListField(child=s.CharField()),
    deleted=s.ListField(child=s.CharField()),
    **_AFTERMATH,
    message=s.CharField(),
    dryRun=s.BooleanField(),
    closing=CommandAnswer(),
)
Deletion = shape(
    "Deletion",
    queue=s.CharField(),
    planned=s.BooleanField(),
    queues=s.ListField(child=s.CharField()),
    actor=text(),
    door=text(),
    reason=text(),
    since=maybe_moment(),
)
Kept = shape(
    "Kept",
    changed=s.BooleanField(),
    message=s.CharField(),
    dryRun=s.BooleanField(),
    queue=s.CharField(),
)
Sample = shape(
    "Sample",
    at=moment(),
    state=text(),
    allocated=amounts(),
    promised=amounts(),
    deserved=amounts(),
    guarantee=amounts(),
    capability=amounts(),
    pending=amounts(),
)
History = shape("History", queue=s.CharField(), seconds=s.IntegerField(), results=Sample(many=True))
ExportedQueue = shape(
    "ExportedQueue",
    apiVersion=s.CharField(),
    kind=choice(("Queue",)),
    metadata=shape(
        "ExportedMetadata",
        name=s.CharField(),
        labels=s.DictField(child=text()),
        annotations=s.DictField(child=text()),
    )(),
    spec=GivenQueueSpec(),
)
Export = shape(
    "Export",
    apiVersion=s.CharField(),
    kind=choice(("List",)),
    items=ExportedQueue(many=True),
)
QueueFigures = object_shape(
    "QueueFigures",
    Empty(),
    shape(
        "QueueFiguresStatus",
        sort=text(),
        queues=shape(
            "QueueFigureRow",
            name=s.CharField(),
            parent=text(),
            state=s.CharField(),
            weight=s.IntegerField(),
            priority=s.IntegerField(),
            running=s.IntegerField(help_text="gangs in it and below it"),
            waiting=s.IntegerField(help_text="gangs in it and below it"),
            resources=s.DictField(
                child=s.DictField(child=s.CharField()),
                help_text="by resource: allocated, promised, deserved, guarantee, limit, pending, "
                "as pages show them",
            ),
            changed=s.ListField(
                child=choice(("figures", "quota", "state")),
                help_text="what changed in the time that was asked for",
            ),
            waits=shape(
                "QueueWaits",
                oldestSince=maybe_moment(),
                medianSeconds=s.FloatField(allow_null=True),
                starts=s.IntegerField(help_text="how many the median is of"),
                finished24h=s.IntegerField(),
                reasons=s.DictField(child=s.IntegerField()),
            )(required=False, help_text="only where queues are named"),
        )(many=True),
    )(),
)
