"""Nodes, namespaces, priority classes, the policy and the cluster itself."""

from __future__ import annotations

from rest_framework import serializers as s

from dashboard.api.schema.parts import (
    AnyJson,
    Notice,
    Violation,
    amounts,
    choice,
    given_amounts,
    manifest_shape,
    maybe_moment,
    object_shape,
    saved,
    shape,
    text,
)
from scheduler.domain.node_fit import Fit
from scheduler.services.sessions.presets import PRESET_NAMES
from scheduler.services.sessions.replay import MOST_WANTED

NodeSpec = shape(
    "NodeSpec",
    unschedulable=s.BooleanField(),
    taints=s.ListField(child=s.DictField(child=text())),
)
NodeStatus = shape(
    "NodeStatus",
    allocatable=amounts(),
    allocated=amounts(),
    promised=amounts(help_text="room that is kept for pods that wait"),
    idle=amounts(help_text="not allocated; what is promised is idle until it is taken"),
    pods=s.IntegerField(),
    conditions=s.ListField(child=s.DictField(child=text())),
)
Node = object_shape("Node", NodeSpec(), NodeStatus())
NodeManifest = manifest_shape(
    "Node",
    shape(
        "GivenNodeSpec",
        unschedulable=s.BooleanField(required=False),
        taints=s.ListField(child=s.DictField(child=text()), required=False),
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
    pods=s.IntegerField(help_text="told to leave, or lost"),
    podgroups=shape(
        "GangOnNode",
        namespace=s.CharField(),
        name=s.CharField(),
        queue=s.CharField(),
        user=text(),
        pods=s.IntegerField(),
        left=s.IntegerField(help_text="members that stay"),
        minMember=s.IntegerField(),
        breaks=s.BooleanField(),
    )(many=True),
    users=s.ListField(child=s.CharField()),
)
Empty = shape("Empty")
Namespace = object_shape(
    "Namespace",
    Empty(),
    shape("NamespaceStatus", phase=s.CharField(), queue=text())(),
)
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
        preset=text(help_text="the preset that this policy is equal to; empty if it is none"),
        presetWithOtherTimes=text(
            help_text="the preset that this policy differs from in times alone, such as "
            "minRunSeconds; empty if there is none"
        ),
    )(),
)
PolicyPreset = shape(
    "PolicyPreset",
    name=choice(PRESET_NAMES),
    about=s.CharField(),
    policy=s.CharField(help_text="its text"),
    isDefault=s.BooleanField(help_text="what every installation starts with"),
    inForce=s.BooleanField(help_text="the policy in force is equal to it"),
    inForceWithOtherTimes=s.BooleanField(
        help_text="the policy in force differs from it in times alone"
    ),
    settings=shape(
        "PolicySetting",
        owner=s.CharField(help_text="the action or the plugin"),
        name=s.CharField(),
        value=AnyJson(help_text="null where the preset leaves the action or plugin out"),
        default=AnyJson(help_text="what holds where it is not given"),
        meaning=s.CharField(),
    )(many=True),
)
PolicyPresets = shape("PolicyPresets", presets=PolicyPreset(many=True))
PolicyVersion = object_shape(
    "PolicyVersion",
    PolicySpec(),
    shape(
        "PolicyVersionStatus",
        author=text(),
        reason=text(),
        warnings=s.ListField(child=s.CharField()),
        inForce=s.BooleanField(),
    )(),
)
SessionEffect = shape(
    "SessionEffect",
    placed=s.IntegerField(),
    gangs=s.IntegerField(),
    evicted=s.IntegerField(),
)
PolicyEffect = shape(
    "PolicyEffect",
    now=SessionEffect(help_text="the next session under the policy in force"),
    then=SessionEffect(help_text="the same under the one that was sent"),
    waiting=s.IntegerField(help_text="gangs that wait now"),
    noLonger=s.ListField(
        child=s.CharField(), help_text="gangs that would get a place, and would not under it"
    ),
    newly=s.ListField(child=s.CharField(), help_text="gangs that would get a place only under it"),
)
SavedPolicy = type(
    "SavedPolicy",
    (saved(Policy),),
    {"effect": PolicyEffect(allow_null=True, help_text="of a dry run")},
)
GivenPolicy = shape(
    "GivenPolicy",
    spec=shape(
        "GivenPolicySpec",
        policy=s.CharField(required=False, help_text="the text of the policy"),
        preset=choice(PRESET_NAMES, required=False, help_text="a preset instead of a text"),
    )(),
    reason=s.CharField(required=False, allow_blank=True),
)
CheckedPolicy = shape(
    "CheckedPolicy",
    valid=s.BooleanField(),
    violations=Violation(many=True),
    warnings=Notice(many=True),
)
_OftenEvicted = shape(
    "OftenEvicted",
    podgroup=s.CharField(),
    queue=s.CharField(),
    times=s.IntegerField(help_text="sessions that evicted pods of it"),
    pods=s.IntegerField(),
    lastAt=maybe_moment(),
)
_EvictionCosts = shape(
    "EvictionCosts",
    windowSeconds=s.IntegerField(),
    placements=s.IntegerField(),
    evictions=s.IntegerField(),
    perPlacement=s.FloatField(allow_null=True),
    lostOf=choice(("accelerators", "cores")),
    lostSeconds=s.FloatField(help_text="running time of evicted pods, times lostOf"),
    lostShare=s.FloatField(allow_null=True, help_text="of what the cluster has in that time"),
    often=_OftenEvicted(many=True, help_text="evicted more than twice, in queues you may see"),
)
ClusterStatus = shape(
    "ClusterStatus",
    paused=s.BooleanField(),
    pausedBy=text(),
    pausedAt=maybe_moment(),
    pauseReason=text(),
    lastSession=s.IntegerField(),
    lastSessionAt=maybe_moment(),
    total=amounts(),
    allocated=amounts(help_text="what pods hold on nodes"),
    promised=amounts(help_text="room that is kept for pods that wait"),
    nodes=s.IntegerField(),
    evictions=_EvictionCosts(help_text="of the last hour"),
    warnings=shape("ClusterWarning", code=s.CharField(required=False), message=s.CharField())(
        many=True
    ),
)
ClusterSpec = shape(
    "ClusterSpec",
    periodSeconds=s.FloatField(),
    keepSessions=s.IntegerField(help_text="how many of the next sessions are kept as files"),
)
Cluster = object_shape("Cluster", ClusterSpec(), ClusterStatus())
GivenCluster = shape(
    "GivenCluster",
    spec=shape(
        "GivenClusterSpec",
        periodSeconds=s.FloatField(required=False, min_value=0.5, max_value=3600),
        keepSessions=s.IntegerField(required=False, min_value=1, max_value=MOST_WANTED),
    )(),
)
ClusterCommandAnswer = shape(
    "ClusterCommandAnswer",
    changed=s.BooleanField(),
    message=s.CharField(),
    dryRun=s.BooleanField(),
    command=s.CharField(),
    paused=s.BooleanField(),
)
Fragmentation = object_shape(
    "Fragmentation",
    Empty(),
    shape(
        "FragmentationStatus",
        resources=shape(
            "FreeRoom",
            resource=s.CharField(),
            total=s.CharField(help_text="of all nodes that take pods"),
            free=s.CharField(help_text="of it on all nodes together"),
            largest=s.CharField(help_text="free on the node with the most"),
            fragmented=s.BooleanField(
                help_text="enough is free for the largest pod that a node could take, but in pieces"
            ),
            message=s.CharField(),
            room=shape(
                "RoomForPod",
                size=s.CharField(help_text="what one pod asks for"),
                nodes=s.IntegerField(help_text="that have so much free"),
            )(many=True),
        )(many=True),
    )(),
)
LargestGangs = object_shape(
    "LargestGangs",
    Empty(),
    shape(
        "LargestGangsStatus",
        queue=text(help_text="whose limits count; empty for none"),
        gangs=shape(
            "LargestGang",
            shape=amounts(help_text="what one pod asks for"),
            pods=s.IntegerField(help_text="that would start together now"),
            capped=s.BooleanField(help_text="no larger gang was tried"),
            message=s.CharField(),
            why=text(help_text="what keeps one pod more"),
            gangs=shape(
                "GangsOfSize",
                pods=s.IntegerField(),
                gangs=s.IntegerField(help_text="so many gangs of so many pods"),
            )(many=True),
        )(many=True),
    )(),
)
_FITS = tuple(fit.value for fit in Fit)
NodeWaiting = object_shape(
    "NodeWaiting",
    Empty(),
    shape(
        "NodeWaitingStatus",
        counts=shape("FitCount", fit=choice(_FITS), title=s.CharField(), gangs=s.IntegerField())(
            many=True
        ),
        hidden=s.IntegerField(help_text="gangs that wait in queues you may not see"),
        next=s.IntegerField(allow_null=True, help_text="start of the next page"),
        gangs=shape(
            "GangAtNode",
            namespace=s.CharField(),
            name=s.CharField(),
            queue=s.CharField(),
            user=text(),
            minMember=s.IntegerField(),
            fit=choice(_FITS),
            message=s.CharField(help_text="what the node says to it"),
            pods=s.IntegerField(help_text="of it that wait"),
            places=s.IntegerField(help_text="for how many of them there is room, or a place kept"),
            short=shape(
                "ShortOnNode",
                resource=s.CharField(),
                need=s.CharField(help_text="by one pod"),
                free=s.CharField(),
                limit=s.CharField(help_text="what the node has in all"),
                short=s.CharField(),
            )(many=True),
            reason=text(help_text="what else keeps it, as in its explanation"),
            reasonMessage=text(),
        )(many=True),
    )(),
)
