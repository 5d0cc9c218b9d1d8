"""Queues, their tree, history and commands."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

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
from scheduler.domain.queues import DequeueStrategy, QueueState

QueueSpec = shape(
    "QueueSpec",
    weight=s.IntegerField(),
    capability=amounts(),
    deserved=amounts(),
    guarantee=shape("Guarantee", resource=amounts())(),
    reclaimable=s.BooleanField(),
    parent=text(),
    priority=s.IntegerField(),
    dequeueStrategy=choice(DequeueStrategy),
    state=choice(("Open", "Closed", "Suspended")),
    type=text(),
)
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
GivenQueueSpec = shape(
    "GivenQueueSpec",
    weight=s.IntegerField(required=False, min_value=1, max_value=65535),
    capability=given_amounts(),
    deserved=given_amounts(),
    guarantee=shape("GivenGuarantee", resource=given_amounts())(required=False),
    reclaimable=s.BooleanField(required=False),
    parent=s.CharField(required=False),
    priority=s.IntegerField(required=False, min_value=0),
    dequeueStrategy=choice(DequeueStrategy, required=False),
    state=choice(("Open", "Closed", "Suspended"), required=False),
    type=text(required=False),
)
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
Farewell = shape(
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
    "Export", apiVersion=s.CharField(), kind=choice(("List",)), items=ExportedQueue(many=True)
)
