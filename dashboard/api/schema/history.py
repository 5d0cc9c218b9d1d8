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
_Loan = shape(
    "Loan",
    borrower=s.CharField(),
    lender=s.CharField(help_text="a queue, or what it is that no queue lends"),
    level=text(help_text="the queue where both meet; it lends what it has not assigned"),
    amount=s.CharField(),
    lenderLacks=s.CharField(help_text="what the lender deserves, lacks and has jobs waiting for"),
)
_Borrower = shape(
    "LoanBorrower",
    queue=s.CharField(),
    borrowed=s.CharField(),
    askedBack=s.CharField(help_text="a lender lacks it and could take it back now"),
    open=s.CharField(help_text="its lender could take it back if it asked"),
    protected=s.CharField(help_text="by minimum running times, or because its pods end soon"),
    protectedSeconds=s.IntegerField(help_text="until the last of these pods may go"),
    kept=s.CharField(help_text="what cannot be taken back"),
    keptBecause=text(help_text="why not"),
    message=text(help_text="why not, in words"),
)
_Lender = shape(
    "LoanLender",
    queue=s.CharField(),
    lent=s.CharField(),
    lacks=s.CharField(),
    isUnassigned=s.BooleanField(help_text="it lends what it has not assigned below it"),
)
LoanLedger = object_shape(
    "LoanLedger",
    Empty(),
    shape(
        "LoanLedgerStatus",
        resource=text(),
        borrowed=s.CharField(help_text="the sum of all loans"),
        loans=_Loan(many=True),
        borrowers=_Borrower(many=True),
        lenders=_Lender(many=True),
        starved=_Loan(many=True, help_text="loans of lenders that lack it, the widest gap first"),
    )(),
)
LoanHistory = object_shape(
    "LoanHistory",
    Empty(),
    shape(
        "LoanHistoryStatus",
        window=s.CharField(),
        queue=text(help_text="empty for all queues together"),
        resource=text(),
        points=shape(
            "LoanPoint",
            at=moment(),
            queue=text(),
            resource=text(),
            borrowed=s.CharField(),
            lent=s.CharField(),
            **{
                "from": s.DictField(child=s.CharField(), help_text="by lender"),
                "to": s.DictField(child=s.CharField(), help_text="by borrower"),
            },
        )(many=True),
    )(),
)
_HOURS = "resource-hours; for bytes Gi-hours"
_UsageLine = shape(
    "UsageLine",
    name=text(help_text="of the queue, user, namespace or job (namespace/name)"),
    used=s.FloatField(help_text=_HOURS),
    waited=s.FloatField(help_text="from when pods were made until they got a node"),
    lost=s.FloatField(help_text="what evicted pods had used"),
    deserved=s.FloatField(allow_null=True, help_text="only by queue, like the next three"),
    borrowed=s.FloatField(allow_null=True),
    lent=s.FloatField(allow_null=True),
    idle=s.FloatField(allow_null=True, help_text="deserved, and neither used nor lent"),
    owed=s.FloatField(allow_null=True, help_text="lacked of its deserved while pods asked for it"),
    usedSeconds=s.CharField(help_text="exact: whole resources × seconds, for bytes Ki × seconds"),
    share=s.FloatField(allow_null=True, help_text="of its deserved, or else of all that was used"),
    cost=s.CharField(allow_null=True, help_text="of all resources together, by the price lists"),
    message=text(),
)
UsageReport = object_shape(
    "UsageReport",
    Empty(),
    shape(
        "UsageReportStatus",
        window=text(help_text="empty where days were chosen"),
        **{"from": moment()},
        to=moment(help_text="the end, which is not included"),
        step=s.CharField(),
        by=s.CharField(),
        resource=text(),
        unit=s.CharField(),
        completeUntil=maybe_moment(),
        capacity=s.FloatField(help_text="what the nodes of the whole cluster had"),
        currency=text(help_text="of the costs; empty where there are no prices"),
        whole=_UsageLine(),
        rows=_UsageLine(many=True, help_text="the largest first; “others” is the rest of many"),
        steps=s.ListField(child=s.DateTimeField(), help_text="when the steps begin"),
        series=shape("UsageSeries", name=text(), used=s.ListField(child=s.FloatField()))(
            many=True, help_text="the largest, and the others as one"
        ),
    )(),
)
_PriceList = shape(
    "PriceList",
    validFrom=s.DateField(),
    currency=s.CharField(),
    prices=s.DictField(child=s.CharField(), help_text="per resource and hour; bytes per Gi-hour"),
)
PriceLists = object_shape(
    "PriceLists", shape("PriceListsSpec", lists=_PriceList(many=True))(), Empty()
)
GivenPriceList = shape(
    "GivenPriceList",
    validFrom=s.DateField(),
    currency=s.CharField(max_length=16),
    prices=s.DictField(child=s.CharField()),
)
Statement = object_shape(
    "Statement",
    Empty(),
    shape(
        "StatementStatus",
        queue=s.CharField(),
        month=s.CharField(),
        **{"from": moment()},
        to=moment(),
        currency=text(help_text="empty where there are no prices"),
        total=s.CharField(allow_null=True),
        resources=shape(
            "StatementResource",
            queue=s.CharField(),
            month=s.CharField(),
            resource=s.CharField(),
            unit=s.CharField(),
            used=s.FloatField(),
            usedSeconds=s.CharField(),
            price=s.CharField(allow_null=True, help_text="unset where it changed in between"),
            cost=s.CharField(allow_null=True),
            currency=text(),
        )(many=True),
        users=shape("StatementUser", name=text(), cost=s.CharField())(many=True),
    )(),
)
GivenStatement = shape("GivenStatement", queue=s.CharField(), month=s.CharField())
SentStatement = shape(
    "SentStatement", sentTo=s.ListField(child=s.CharField()), dryRun=s.BooleanField()
)
_Waits = shape(
    "WaitsOfGangs",
    name=text(),
    gangs=s.IntegerField(),
    p50Seconds=s.FloatField(allow_null=True),
    p95Seconds=s.FloatField(allow_null=True),
)
Fairness = object_shape(
    "Fairness",
    Empty(),
    shape(
        "FairnessStatus",
        window=text(),
        **{"from": moment()},
        to=moment(),
        step=s.CharField(),
        resource=text(),
        unit=s.CharField(),
        queues=shape(
            "FairnessBalance",
            queue=s.CharField(),
            deserved=s.FloatField(),
            used=s.FloatField(),
            owed=s.FloatField(help_text="below its deserved while it asked for more"),
            borrowed=s.FloatField(),
            balance=s.FloatField(help_text="borrowed − owed; below 0 the others owe it"),
            message=text(),
        )(many=True),
        pairs=shape("StarvedPair", starved=s.CharField(), by=s.CharField(), amount=s.FloatField())(
            many=True
        ),
        waits=shape(
            "FairnessWaits", queue=_Waits(many=True), size=_Waits(many=True), user=_Waits(many=True)
        )(),
        steps=s.ListField(child=s.DateTimeField()),
        room=shape(
            "RoomPart",
            part=s.CharField(),
            hours=s.FloatField(),
            share=s.FloatField(allow_null=True),
            steps=s.ListField(child=s.FloatField()),
        )(many=True, help_text="the parts add up to all that the cluster had"),
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
