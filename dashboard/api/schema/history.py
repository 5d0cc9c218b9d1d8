"""What happened: commands, sessions, decisions, evictions, events, the audit log."""

from __future__ import annotations

from rest_framework import serializers as s

from dashboard.api.schema.cluster import Empty
from dashboard.api.schema.parts import (
    GivenNamespacedMetadata,
    amounts,
    choice,
    maybe_moment,
    moment,
    object_shape,
    shape,
    text,
)
from scheduler.domain.audit_actions import AuditArea
from scheduler.domain.cluster_timeline import LANES
from scheduler.domain.comparison import Verdict

Target = shape(
    "Target",
    kind=choice(("Queue", "Job")),
    name=s.CharField(),
    namespace=text(required=False),
    uid=text(required=False),
)
CommandSpec = shape("CommandSpec", action=s.CharField(), target=Target(), reason=text())
Command = object_shape(
    "Command",
    CommandSpec(),
    shape(
        "CommandStatus",
        result=choice(("Done", "NoOp", "Refused", "Failed")),
        message=text(),
        actor=text(),
        door=s.CharField(),
        requestId=text(),
        executedAt=maybe_moment(),
        effect=s.DictField(),
    )(),
)
GivenTarget = shape(
    "GivenTarget",
    kind=choice(("Queue", "Job"), required=False),
    name=s.CharField(),
    namespace=s.CharField(required=False),
    uid=s.CharField(required=False),
)
GivenCommand = shape(
    "GivenCommand",
    action=s.CharField(
        help_text=(
            "OpenQueue, CloseQueue, SuspendQueue, ResumeQueue; "
            "AbortJob, ResumeJob, RestartJob, TerminateJob, CompleteJob"
        )
    ),
    target=GivenTarget(),
    reason=text(required=False, max_length=1024),
)
CommandManifest = shape(
    "CommandManifest",
    apiVersion=s.CharField(required=False),
    kind=choice(("Command",)),
    metadata=GivenNamespacedMetadata(required=False),
    action=s.CharField(),
    target=GivenTarget(),
    reason=text(required=False, max_length=1024),
)
Durations = shape(
    "Durations",
    claim=s.FloatField(required=False, help_text="milliseconds, as all of these"),
    read=s.FloatField(required=False),
    think=s.FloatField(required=False),
    write=s.FloatField(required=False),
    actions=s.DictField(
        child=s.FloatField(), required=False, help_text="what each action took of the thinking"
    ),
)
Session = object_shape(
    "Session",
    Empty(),
    shape(
        "SessionStatus",
        state=s.CharField(),
        startedAt=maybe_moment(),
        finishedAt=maybe_moment(),
        durations=Durations(),
        counts=s.DictField(child=s.IntegerField()),
        message=text(),
        trigger=text(),
        worker=text(),
        policy=s.IntegerField(allow_null=True),
    )(),
)
Scenario = shape(
    "Scenario",
    name=s.CharField(),
    session=s.IntegerField(),
    takenAt=s.CharField(),
    paused=s.BooleanField(),
    conf=s.DictField(),
    **{
        table: s.ListField(child=s.DictField())
        for table in ("nodes", "queues", "podgroups", "pods")
    },
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
        rule=text(help_text="of an eviction: the rule that allowed it"),
        why=text(help_text="of an eviction: the rule, its figures and the choice in words"),
    )(),
    shape(
        "DecisionStatus",
        claimedAt=maybe_moment(),
        doneAt=maybe_moment(),
        attempts=s.IntegerField(),
        error=text(),
    )(),
)
Standing = shape(  # of the victim's queue
    "Standing",
    allocated=amounts(required=False),
    deserved=amounts(required=False),
    guarantee=amounts(required=False),
)
_Holding = shape(
    "EvictionHolding",
    queue=s.CharField(),
    before=s.CharField(),
    after=s.CharField(),
    due=s.CharField(),
    dueIs=choice(("deserved", "guarantee")),
)
Grounds = shape(
    "EvictionGrounds",
    resource=text(required=False),
    taker=_Holding(required=False),
    loser=_Holding(required=False),
    priority=s.IntegerField(required=False),
    victimPriority=s.IntegerField(required=False),
    possible=s.IntegerField(required=False, help_text="how many victims there might have been"),
    chosen=s.IntegerField(required=False),
    hasTriedAll=s.BooleanField(required=False, help_text="whether every set was looked at"),
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
        before=Standing(),
        after=Standing(),
        rule=text(help_text="the rule that allowed it"),
        why=text(help_text="the rule, its figures and the choice in words"),
        grounds=Grounds(),
        ranSeconds=s.FloatField(help_text="how long the pod had run"),
        acceleratorSeconds=s.FloatField(help_text="that, times its accelerators"),
        coreSeconds=s.FloatField(help_text="that, times its cores"),
    )(),
    Empty(),
)
Comparison = object_shape(
    "Comparison",
    shape(
        "ComparisonSpec",
        podgroup=s.CharField(),
        queue=s.CharField(),
        about=choice(("Start", "Eviction")),
        verdict=choice(Verdict),
        since=moment(),
        theirsAt=maybe_moment(),
        oursAt=maybe_moment(),
        oursSession=s.IntegerField(allow_null=True),
        halfSeconds=s.FloatField(help_text="how long only a part of the gang had places"),
        reason=text(help_text="why it would have waited here"),
        message=text(),
        beneficiary=text(help_text="for whom ours would have evicted it"),
    )(),
    Empty(),
)
_Agreement = shape(
    "Agreement",
    agreed=s.IntegerField(),
    decided=s.IntegerField(),
    rate=s.FloatField(allow_null=True, help_text="unset where nothing was decided"),
)
ComparisonTotals = object_shape(
    "ComparisonTotals",
    Empty(),
    shape(
        "ComparisonTotalsStatus",
        compares=s.BooleanField(help_text="whether another scheduler decides in this cluster"),
        window=s.CharField(),
        definition=s.CharField(help_text="when both agree"),
        starts=_Agreement(),
        evictions=_Agreement(),
        counts=s.DictField(child=s.IntegerField(), help_text="by verdict"),
    )(),
)
_Accuracy = shape(
    "Accuracy",
    queue=text(),
    size=text(help_text="a class of sizes, such as gpu-8: more than 4 and up to 8 GPUs"),
    known=s.IntegerField(help_text="forecasts that could be compared with what happened"),
    held=s.IntegerField(help_text="of these, starts in the range that was foretold"),
    coverage=s.FloatField(allow_null=True, help_text="unset where too few are known"),
    medianErrorSeconds=s.FloatField(allow_null=True),
    medianWidthSeconds=s.FloatField(allow_null=True),
    message=text(help_text="that too few are known"),
)
ForecastAccuracy = object_shape(
    "ForecastAccuracy",
    Empty(),
    shape(
        "ForecastAccuracyStatus",
        window=s.CharField(),
        stated=s.FloatField(help_text="the part of all starts that shall lie in their range"),
        lookedAheadAt=maybe_moment(),
        whole=_Accuracy(),
        rows=_Accuracy(many=True),
    )(),
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
        deeds=choice(AuditArea),
        action=s.CharField(),
        kind=s.CharField(),
        namespace=text(),
        name=text(),
        queue=text(),
        follows=text(help_text="the queue that it was done to, where this one only followed"),
        reason=text(),
        message=text(),
        before=s.DictField(allow_null=True),
        after=s.DictField(allow_null=True),
    )(),
    Empty(),
)
ClusterTimeline = object_shape(
    "ClusterTimeline",
    Empty(),
    shape(
        "ClusterTimelineStatus",
        start=moment(),
        end=moment(),
        stepSeconds=s.IntegerField(help_text="what falls into one step is gathered in one mark"),
        queue=text(),
        session=shape(
            "SessionOfMoment",
            number=s.IntegerField(),
            startedAt=maybe_moment(),
            binds=s.IntegerField(),
            evictions=s.IntegerField(),
            policyVersion=s.IntegerField(allow_null=True),
            kept=s.BooleanField(help_text="it can be run again"),
            nearestKept=shape(
                "NearestKeptSession", number=s.IntegerField(), startedAt=maybe_moment()
            )(allow_null=True, help_text="where it cannot: the nearest session that can"),
        )(allow_null=True, help_text="the last that began before `at`"),
        marks=shape(
            "TimelineMark",
            lane=choice(tuple(LANES)),
            at=moment(),
            until=moment(help_text="of the last, where several are gathered"),
            count=s.IntegerField(),
            message=s.CharField(),
            queue=text(),
            kind=text(),
            name=text(),
            ahead=s.BooleanField(help_text="it is expected or planned"),
            url=s.CharField(help_text="its page"),
        )(many=True),
    )(),
)
