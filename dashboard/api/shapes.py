"""The shapes of requests and answers, for the OpenAPI schema: what is checked is checked by the services, with words."""

from __future__ import annotations

from functools import cache
from typing import Any

from rest_framework import serializers as s

from scheduler.domain.access import Role, Scope
from scheduler.domain.queues import DequeueStrategy, QueueState
from scheduler.models.workload import JOB_PHASES, POD_PHASES, PODGROUP_PHASES

Shape = type[s.Serializer[Any]]

REASONS = (
    "OnHold", "SchedulingPaused", "QueueNotFound", "QueueNotLeaf", "QueueClosed", "QueueSuspended", "HierarchyInvalid", "NotPermitted",
    "NotEnoughTasks", "ExceedsCapability", "ExceedsCluster", "NoNodeFits", "WaitingForQuota", "OverDeservedNotReclaimable",
    "GangIncomplete", "Fragmented", "ReclaimInProgress", "ClusterBusy", "BehindOthers", "AwaitingEvaluation",
)  # fmt: skip


def shape(name: str, /, **fields: Any) -> Shape:
    """A serializer class of this name, made from its fields."""
    return type(name, (s.Serializer,), fields)


def text(**more: Any) -> s.CharField:
    return s.CharField(allow_blank=True, **more)


def amounts(**more: Any) -> s.DictField:
    """Kubernetes quantities by resource name."""
    return s.DictField(child=s.CharField(), help_text="Kubernetes quantities by resource name", **more)


def given_amounts() -> s.DictField:
    return s.DictField(child=s.CharField(), required=False, help_text='such as {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}')


def choice(values: Any, **more: Any) -> s.ChoiceField:
    return s.ChoiceField(choices=[str(getattr(value, "value", value)) for value in values], **more)


def moment(**more: Any) -> s.DateTimeField:
    return s.DateTimeField(**more)


def maybe_moment() -> s.DateTimeField:
    return s.DateTimeField(allow_null=True)


Metadata = shape(
    "Metadata",
    name=s.CharField(),
    uid=s.CharField(),
    creationTimestamp=maybe_moment(),
    resourceVersion=s.CharField(),
    labels=s.DictField(child=text()),
    annotations=s.DictField(child=text()),
)
NamespacedMetadata = type("NamespacedMetadata", (Metadata,), {"namespace": s.CharField()})
GivenMetadata = shape(
    "GivenMetadata",
    name=s.CharField(),
    labels=s.DictField(child=text(), required=False),
    annotations=s.DictField(child=text(), required=False),
)
GivenNamespacedMetadata = type("GivenNamespacedMetadata", (GivenMetadata,), {"namespace": s.CharField(required=False)})


def object_shape(kind: str, spec: Any, status: Any, namespaced: bool = False, **more: Any) -> Shape:
    return shape(
        kind,
        apiVersion=s.CharField(),
        kind=s.CharField(),
        metadata=(NamespacedMetadata if namespaced else Metadata)(),
        spec=spec,
        status=status,
        **more,
    )


def manifest_shape(kind: str, spec: Any, namespaced: bool = False, **more: Any) -> Shape:
    return shape(
        f"{kind}Manifest",
        apiVersion=s.CharField(required=False),
        kind=s.CharField(required=False),
        metadata=(GivenNamespacedMetadata if namespaced else GivenMetadata)(),
        spec=spec,
        **more,
    )


@cache
def patch_of(manifest: Shape) -> Shape:
    """The same with nothing required."""
    fields = manifest().fields
    spec = fields["spec"]
    spec.required = False
    return shape(
        manifest.__name__.replace("Manifest", "Patch"),
        apiVersion=s.CharField(required=False),
        kind=s.CharField(required=False),
        metadata=shape(
            manifest.__name__.replace("Manifest", "PatchMetadata"),
            labels=s.DictField(child=text(), required=False),
            annotations=s.DictField(child=text(), required=False),
        )(required=False),
        spec=type(spec)(required=False),
    )


@cache
def page_of(item: Shape) -> Shape:
    return shape(
        f"{item.__name__}Page",
        next=s.URLField(allow_null=True),
        previous=s.URLField(allow_null=True),
        results=item(many=True),
    )


Caution = shape("Caution", code=s.CharField(), message=s.CharField())
Notice = shape("Notice", code=s.CharField(), queue=text(), field=text(), message=s.CharField())
Violation = shape("Violation", ruleId=s.CharField(), queue=text(), field=text(), message=s.CharField(), fix=text())
Problem = shape(
    "Problem",
    type=s.CharField(),
    title=s.CharField(),
    status=s.IntegerField(),
    detail=text(),
    violations=Violation(many=True),
    warnings=Notice(many=True),
)


@cache
def saved(item: Shape) -> Shape:
    """An object as it was stored, with what is worth knowing about the request."""
    return type(f"Saved{item.__name__}", (item,), {"warnings": Notice(many=True), "changed": s.BooleanField()})


# Queues

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
    allocated=amounts(),
    deserved=amounts(),
    nominalShare=amounts(),
    request=amounts(),
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
QueueTree = shape(
    "QueueTree",
    apiVersion=s.CharField(),
    kind=s.CharField(),
    metadata=Metadata(),
    spec=QueueSpec(),
    status=QueueStatus(),
    children=s.ListField(child=s.DictField(), help_text="objects of this same shape"),
)
DeletedQueues = shape(
    "DeletedQueues",
    deleted=s.ListField(child=s.CharField()),
    podgroups=s.IntegerField(),
    jobs=s.IntegerField(),
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
    queues=shape("TurnedQueue", **{"name": s.CharField(), "from": s.CharField(), "to": s.CharField()})(many=True),
    podgroups=shape("GangLoad", running=s.IntegerField(), waiting=s.IntegerField())(),
    pods=shape("PodLoad", running=s.IntegerField(), waiting=s.IntegerField())(),
    users=s.ListField(child=s.CharField()),
    warnings=Caution(many=True),
)
Sample = shape(
    "Sample",
    at=moment(),
    state=text(),
    allocated=amounts(),
    deserved=amounts(),
    guarantee=amounts(),
    capability=amounts(),
    pending=amounts(),
)
History = shape("History", queue=s.CharField(), seconds=s.IntegerField(), results=Sample(many=True))
Export = shape("Export", apiVersion=s.CharField(), kind=s.CharField(), items=s.ListField(child=s.DictField()))

# Work

PodTemplate = s.DictField
GivenTask = shape(
    "Task",
    name=s.CharField(required=False),
    replicas=s.IntegerField(required=False, min_value=0, max_value=100_000),
    minAvailable=s.IntegerField(required=False, min_value=0),
    maxRetry=s.IntegerField(required=False, min_value=0),
    template=s.DictField(required=False, help_text="a Kubernetes pod template"),
    policies=s.ListField(child=s.DictField(), required=False),
    dependsOn=s.DictField(required=False),
)
JobSpec = shape(
    "JobSpec",
    queue=s.CharField(required=False),
    minAvailable=s.IntegerField(required=False, min_value=0),
    maxRetry=s.IntegerField(required=False, min_value=0),
    minSuccess=s.IntegerField(required=False, min_value=1),
    ttlSecondsAfterFinished=s.IntegerField(required=False, min_value=0),
    priorityClassName=s.CharField(required=False),
    schedulerName=s.CharField(required=False),
    tasks=GivenTask(many=True),
    policies=s.ListField(child=s.DictField(), required=False),
)
PendingReason = shape(
    "PendingReason",
    code=choice(REASONS),
    message=text(),
    figures=s.DictField(),
    session=s.IntegerField(allow_null=True),
)
JobStatus = shape(
    "JobStatus",
    state=shape("JobState", phase=choice(JOB_PHASES), message=text(), since=maybe_moment())(),
    owner=text(),
    minAvailable=s.IntegerField(),
    pending=s.IntegerField(),
    running=s.IntegerField(),
    succeeded=s.IntegerField(),
    failed=s.IntegerField(),
    terminating=s.IntegerField(),
    unknown=s.IntegerField(),
    retryCount=s.IntegerField(),
    version=s.IntegerField(),
    startedAt=maybe_moment(),
    finishedAt=maybe_moment(),
    podgroup=shape("JobGang", phase=choice(PODGROUP_PHASES), priority=s.IntegerField(), reason=PendingReason(allow_null=True))(
        allow_null=True
    ),
)
Job = object_shape("Job", JobSpec(), JobStatus(), namespaced=True)
JobManifest = manifest_shape("Job", JobSpec(), namespaced=True)
JobCommandAnswer = shape(
    "JobCommandAnswer", changed=s.BooleanField(), message=s.CharField(), dryRun=s.BooleanField(), command=s.CharField(), job=s.CharField(),
    phase=choice(JOB_PHASES),
)  # fmt: skip
PodGroupSpec = shape(
    "PodGroupSpec",
    queue=s.CharField(required=False),
    minMember=s.IntegerField(required=False, min_value=0),
    minTaskMember=s.DictField(child=s.IntegerField(), required=False),
    priorityClassName=s.CharField(required=False),
    minResources=amounts(required=False),
    networkTopology=s.DictField(required=False),
)
PodGroupStatus = shape(
    "PodGroupStatus",
    phase=choice(PODGROUP_PHASES),
    owner=text(),
    job=shape("OwningJob", namespace=s.CharField(), name=s.CharField())(allow_null=True),
    priority=s.IntegerField(),
    pending=s.IntegerField(),
    running=s.IntegerField(),
    succeeded=s.IntegerField(),
    failed=s.IntegerField(),
    conditions=s.ListField(child=s.DictField()),
    reason=PendingReason(allow_null=True),
    enqueuedAt=maybe_moment(),
    startedAt=maybe_moment(),
    finishedAt=maybe_moment(),
)
PodGroup = object_shape("PodGroup", PodGroupSpec(), PodGroupStatus(), namespaced=True)
PodGroupManifest = manifest_shape("PodGroup", PodGroupSpec(required=False), namespaced=True)
Explanation = shape(
    "Explanation",
    podgroup=s.CharField(),
    phase=choice(PODGROUP_PHASES),
    waiting=s.BooleanField(),
    reason=text(),
    message=s.CharField(),
    figures=s.DictField(),
    checks=s.ListField(child=s.DictField()),
    session=s.IntegerField(allow_null=True),
    evaluatedAt=maybe_moment(),
    position=s.IntegerField(allow_null=True),
    ahead=s.IntegerField(allow_null=True),
)
PodSpec = shape(
    "PodSpec",
    schedulerName=s.CharField(),
    containers=s.ListField(child=s.DictField()),
    priority=s.IntegerField(),
    nodeName=s.CharField(required=False),
    nodeSelector=s.DictField(required=False),
    affinity=s.DictField(required=False),
    tolerations=s.ListField(child=s.DictField(), required=False),
)
PodStatus = shape(
    "PodStatus",
    phase=choice(POD_PHASES),
    queue=s.CharField(),
    podgroup=s.CharField(),
    task=text(),
    node=text(),
    borrowed=s.BooleanField(),
    message=text(),
    exitCode=s.IntegerField(allow_null=True),
    conditions=s.ListField(child=s.DictField(child=text())),
    boundAt=maybe_moment(),
    startedAt=maybe_moment(),
    finishedAt=maybe_moment(),
)
Pod = object_shape("Pod", PodSpec(), PodStatus(), namespaced=True)
GivenPodSpec = shape(
    "GivenPodSpec", schedulerName=s.CharField(required=False), containers=s.ListField(child=s.DictField(), required=False),
    nodeSelector=s.DictField(child=text(), required=False), priorityClassName=s.CharField(required=False),
)  # fmt: skip
PodManifest = manifest_shape("Pod", GivenPodSpec(required=False), namespaced=True)
Gone = shape("Gone", message=s.CharField(), dryRun=s.BooleanField())

# The cluster

NodeSpec = shape("NodeSpec", unschedulable=s.BooleanField(), taints=s.ListField(child=s.DictField(child=text())))
NodeStatus = shape(
    "NodeStatus",
    allocatable=amounts(),
    allocated=amounts(),
    idle=amounts(),
    pods=s.IntegerField(),
    conditions=s.ListField(child=s.DictField(child=text())),
)
Node = object_shape("Node", NodeSpec(), NodeStatus())
NodeManifest = manifest_shape(
    "Node",
    shape(
        "GivenNodeSpec", unschedulable=s.BooleanField(required=False), taints=s.ListField(child=s.DictField(child=text()), required=False)
    )(required=False),
    status=shape("GivenNodeStatus", allocatable=given_amounts())(required=False),
)
NodeCommandAnswer = shape(
    "NodeCommandAnswer",
    changed=s.BooleanField(),
    message=s.CharField(),
    dryRun=s.BooleanField(),
    command=s.CharField(),
    node=s.CharField(),
    pods=s.IntegerField(),
)
Empty = shape("Empty")
Namespace = object_shape("Namespace", Empty(), shape("NamespaceStatus", phase=s.CharField(), queue=text())())
NamespaceManifest = manifest_shape("Namespace", Empty(required=False))
PriorityClassSpec = shape(
    "PriorityClassSpec",
    value=s.IntegerField(),
    globalDefault=s.BooleanField(required=False),
    preemptionPolicy=choice(("PreemptLowerPriority", "Never"), required=False),
    description=text(required=False),
)
PriorityClass = object_shape("PriorityClass", PriorityClassSpec(), Empty())
PriorityClassManifest = manifest_shape("PriorityClass", PriorityClassSpec())
PolicySpec = shape("PolicySpec", policy=s.CharField())
Policy = object_shape(
    "Policy",
    PolicySpec(),
    shape(
        "PolicyStatus",
        author=text(),
        reason=text(),
        since=maybe_moment(),
        warnings=s.ListField(child=s.CharField()),
        isDefault=s.BooleanField(),
    )(),
)
GivenPolicy = shape("GivenPolicy", spec=PolicySpec(), reason=s.CharField(required=False, allow_blank=True))
CheckedPolicy = shape("CheckedPolicy", valid=s.BooleanField(), violations=Violation(many=True), warnings=Notice(many=True))
ClusterStatus = shape(
    "ClusterStatus",
    paused=s.BooleanField(),
    pausedBy=text(),
    pausedAt=maybe_moment(),
    pauseReason=text(),
    lastSession=s.IntegerField(),
    lastSessionAt=maybe_moment(),
    total=amounts(),
    allocated=amounts(),
    nodes=s.IntegerField(),
    warnings=s.ListField(child=s.DictField()),
)
Cluster = object_shape("Cluster", shape("ClusterSpec", periodSeconds=s.FloatField())(), ClusterStatus())
GivenCluster = shape("GivenCluster", spec=shape("GivenClusterSpec", periodSeconds=s.FloatField(min_value=0.5, max_value=3600))())
ClusterCommandAnswer = shape(
    "ClusterCommandAnswer", changed=s.BooleanField(), message=s.CharField(), dryRun=s.BooleanField(), command=s.CharField(),
    paused=s.BooleanField(),
)  # fmt: skip

# Records

Target = shape("Target", kind=choice(("Queue", "Job")), name=s.CharField(), namespace=text(required=False), uid=text(required=False))
CommandSpec = shape("CommandSpec", action=s.CharField(), target=Target(), reason=text())
Command = object_shape(
    "Command",
    CommandSpec(),
    shape(
        "CommandStatus",
        result=choice(("Pending", "Done", "NoOp", "Refused", "Failed")),
        message=text(),
        actor=text(),
        door=s.CharField(),
        requestId=text(),
        executedAt=maybe_moment(),
        effect=s.DictField(),
    )(),
)
GivenTarget = shape(
    "GivenTarget", kind=choice(("Queue", "Job"), required=False), name=s.CharField(), namespace=s.CharField(required=False),
    uid=s.CharField(required=False),
)  # fmt: skip
GivenCommand = shape(
    "GivenCommand",
    action=s.CharField(
        help_text="OpenQueue, CloseQueue, SuspendQueue, ResumeQueue; AbortJob, ResumeJob, RestartJob, TerminateJob, CompleteJob"
    ),
    target=GivenTarget(),
    reason=text(required=False, max_length=1024),
)
Session = object_shape(
    "Session",
    Empty(),
    shape(
        "SessionStatus",
        state=s.CharField(),
        startedAt=maybe_moment(),
        finishedAt=maybe_moment(),
        durations=s.DictField(),
        counts=s.DictField(),
        message=text(),
        trigger=text(),
        worker=text(),
        policy=s.IntegerField(allow_null=True),
    )(),
)
Decision = object_shape(
    "Decision",
    shape(
        "DecisionSpec",
        kind=choice(("Bind", "Evict")),
        pod=s.CharField(),
        podgroup=text(),
        queue=text(),
        node=text(),
        action=s.CharField(),
        session=s.IntegerField(allow_null=True),
    )(),
    shape("DecisionStatus", claimedAt=maybe_moment(), doneAt=maybe_moment(), attempts=s.IntegerField(), error=text())(),
)
Eviction = object_shape(
    "Eviction",
    shape(
        "EvictionSpec",
        session=s.IntegerField(),
        pod=s.CharField(),
        podgroup=s.CharField(),
        queue=s.CharField(),
        node=text(),
        beneficiary=text(),
        beneficiaryQueue=text(),
        action=s.CharField(),
        reason=text(),
        commonAncestor=text(),
        level=s.IntegerField(allow_null=True),
        before=s.DictField(),
        after=s.DictField(),
    )(),
    Empty(),
)
Event = object_shape(
    "Event",
    shape(
        "EventSpec",
        type=choice(("Normal", "Warning")),
        kind=s.CharField(),
        namespace=text(),
        name=s.CharField(),
        queue=text(),
        reason=s.CharField(),
        message=text(),
        count=s.IntegerField(),
        firstAt=moment(),
        lastAt=moment(),
    )(),
    Empty(),
)
AuditRecord = object_shape(
    "AuditRecord",
    shape(
        "AuditSpec",
        at=moment(),
        actor=text(),
        door=s.CharField(),
        address=text(),
        requestId=text(),
        action=s.CharField(),
        kind=s.CharField(),
        namespace=text(),
        name=text(),
        queue=text(),
        reason=text(),
        message=text(),
        before=s.DictField(allow_null=True),
        after=s.DictField(allow_null=True),
    )(),
    Empty(),
)

# People

UserSpec = shape(
    "UserSpec",
    username=s.CharField(),
    email=text(),
    firstName=text(),
    lastName=text(),
    isActive=s.BooleanField(),
    isClusterAdmin=s.BooleanField(),
    groups=s.ListField(child=s.CharField()),
)
User = object_shape("User", UserSpec(), shape("UserStatus", lastLogin=maybe_moment())())
GivenUser = shape(
    "GivenUser",
    username=s.CharField(required=False, max_length=150),
    email=text(required=False),
    firstName=text(required=False),
    lastName=text(required=False),
    isActive=s.BooleanField(required=False),
    isClusterAdmin=s.BooleanField(required=False),
    password=s.CharField(required=False),
    groups=s.ListField(child=s.CharField(), required=False),
)
Group = object_shape("Group", shape("GroupSpec", name=s.CharField(), members=s.ListField(child=s.CharField()))(), Empty())
GivenGroup = shape("GivenGroup", name=s.CharField(required=False, max_length=150), members=s.ListField(child=s.CharField(), required=False))
GrantSpec = shape("GrantSpec", user=text(), group=text(), role=choice(Role), queue=s.CharField())
Grant = object_shape("Grant", GrantSpec(), shape("GrantStatus", createdBy=text())())
GivenGrant = shape(
    "GivenGrant",
    user=s.CharField(required=False),
    group=s.CharField(required=False),
    role=choice(Role),
    queue=s.CharField(required=False, help_text="root, the whole cluster, where it is left out"),
)
Token = object_shape(
    "Token",
    shape("TokenSpec", name=s.CharField(), user=s.CharField(), scopes=s.ListField(child=choice(Scope)), expiresAt=maybe_moment())(),
    shape("TokenStatus", prefix=s.CharField(), lastUsedAt=maybe_moment(), revokedAt=maybe_moment())(),
)
NewToken = type("NewToken", (Token,), {"token": s.CharField(help_text="shown this one time only")})
GivenToken = shape(
    "GivenToken",
    name=s.CharField(max_length=100),
    scopes=s.ListField(child=choice(Scope)),
    expiresAt=s.DateTimeField(required=False, allow_null=True),
    user=s.CharField(required=False, help_text="somebody else, for cluster admins"),
)

# Sets of objects

BulkItem = shape(
    "BulkItem", index=s.IntegerField(), status=s.IntegerField(), object=s.DictField(allow_null=True), problem=Problem(allow_null=True)
)
BulkResults = shape("BulkResults", results=BulkItem(many=True))
Validated = shape(
    "Validated",
    valid=s.BooleanField(),
    results=shape(
        "ValidatedItem",
        index=s.IntegerField(),
        kind=text(),
        name=text(),
        operation=text(),
        valid=s.BooleanField(),
        violations=Violation(many=True),
        warnings=Notice(many=True),
    )(many=True),
)
AppliedItem = shape(
    "AppliedItem",
    index=s.IntegerField(),
    kind=s.CharField(),
    name=s.CharField(),
    operation=choice(("created", "updated", "unchanged", "executed", "deleted")),
    changed=s.BooleanField(),
    message=text(),
    diff=shape("Difference", field=s.CharField(), before=s.JSONField(allow_null=True), after=s.JSONField(allow_null=True))(many=True),
    warnings=Notice(many=True),
)
Applied = shape("Applied", changed=s.BooleanField(), dryRun=s.BooleanField(), message=s.CharField(), results=AppliedItem(many=True))
AnyManifest = shape(
    "AnyManifest",
    apiVersion=s.CharField(required=False),
    kind=s.CharField(),
    metadata=s.DictField(required=False),
    spec=s.DictField(required=False),
)
Start = shape(
    "Start", collections=s.DictField(child=s.URLField()), singletons=s.DictField(child=s.URLField()), sets=s.DictField(child=s.URLField())
)
