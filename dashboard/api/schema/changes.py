"""Change sets."""

from __future__ import annotations

from rest_framework import serializers as s

from dashboard.api.schema.parts import (
    AnyJson,
    Notice,
    Violation,
    choice,
    maybe_moment,
    object_shape,
    shape,
    text,
)
from scheduler.domain.calendar import OccurrenceState, PlanState
from scheduler.domain.change_sets import KINDS, Operation, SetState
from scheduler.domain.lifecycle import REQUESTABLE_STATES
from scheduler.domain.previews import PreviewState
from scheduler.domain.queues import QueueState
from scheduler.domain.safe_windows import WindowState, WindowStep

ChangedField = shape("ChangedField", field=s.CharField(), before=AnyJson(), after=AnyJson())
ChangeSetItem = shape(
    "ChangeSetItem",
    kind=choice(KINDS),
    name=s.CharField(),
    operation=choice(Operation),
    diff=ChangedField(many=True),
    base=AnyJson(help_text="the object when it was added; null for a new one"),
    wanted=AnyJson(help_text="the object as it is to be; null for one that is to go"),
)
ChangeConflict = shape(
    "ChangeConflict",
    kind=choice(KINDS),
    name=s.CharField(),
    message=s.CharField(),
    diff=ChangedField(many=True, help_text="what others changed since it was added"),
)
ChangeSet = object_shape(
    "ChangeSet",
    shape(
        "ChangeSetSpec", name=s.CharField(), description=text(), items=ChangeSetItem(many=True)
    )(),
    shape(
        "ChangeSetStatus",
        state=choice(SetState),
        author=text(),
        updatedAt=maybe_moment(),
        endedAt=maybe_moment(),
        endedBy=text(),
        reverts=s.IntegerField(allow_null=True, help_text="the change set that it reverts"),
        mayBeApplied=s.BooleanField(
            allow_null=True, help_text="by you, now; null in lists and for what is no draft"
        ),
        violations=Violation(many=True),
        warnings=Notice(many=True),
        conflicts=ChangeConflict(many=True),
        missingPermission=text(),
    )(),
    message=text(required=False),
)
_DOCUMENTS = (
    "Queue and Node manifests, which may name some fields only, and a Policy with spec.policy. "
    "`$patch: delete` beside the name deletes an object."
)
GivenChangeSet = shape(
    "GivenChangeSet",
    name=s.CharField(max_length=100),
    description=text(required=False, max_length=1024),
    documents=s.ListField(child=AnyJson(), required=False, help_text=_DOCUMENTS),
)
ChangeSetPatch = shape(
    "ChangeSetPatch",
    name=s.CharField(required=False, max_length=100),
    description=text(required=False, max_length=1024),
)
GivenDocuments = shape(
    "GivenDocuments", documents=s.ListField(child=AnyJson(), help_text=_DOCUMENTS)
)
GivenPlace = shape("GivenPlace", kind=choice(KINDS), name=s.CharField())
_WindowState = shape(
    "WindowQueue",
    queue=s.CharField(),
    requested=choice(REQUESTABLE_STATES, help_text="what was asked for it"),
    state=choice(QueueState),
)
_Incident = shape("WindowIncident", code=s.CharField(), queue=s.CharField(), message=s.CharField())
SafeWindow = object_shape(
    "SafeWindow",
    shape(
        "SafeWindowSpec",
        queue=s.CharField(help_text="held with all queues below it"),
        changeSet=s.IntegerField(help_text="the number of its change set"),
        reason=text(),
    )(),
    shape(
        "SafeWindowStatus",
        state=choice(WindowState),
        step=choice(WindowStep, help_text="what comes next"),
        author=text(),
        isSuspended=s.BooleanField(help_text="whether its queue is asked to be Suspended now"),
        before=_WindowState(many=True, help_text="its queues when it began"),
        incidents=_Incident(many=True, help_text="what others did to its queues since"),
        conflicts=ChangeConflict(
            many=True, help_text="what others changed of what it applied: a revert is refused"
        ),
        endedAt=maybe_moment(),
        endedBy=text(),
    )(),
    message=text(required=False),
    effect=AnyJson(
        required=False,
        help_text="queues, podgroups, pods, users and warnings of the command that was given",
    ),
)
GivenWindow = shape(
    "GivenWindow",
    queue=s.CharField(),
    name=text(required=False, max_length=100, help_text="of its change set"),
    reason=text(required=False, max_length=1024),
)
Preview = object_shape(
    "Preview",
    shape(
        "PreviewSpec",
        changeSet=s.IntegerField(allow_null=True),
        jobs=s.ListField(child=AnyJson(), help_text="tried out as if they were submitted now"),
        lostNodes=s.ListField(child=s.CharField()),
        minutes=s.IntegerField(),
        beginsAt=maybe_moment(),
    )(),
    shape(
        "PreviewStatus",
        state=choice(PreviewState),
        progress=s.FloatField(help_text="from 0 to 1"),
        message=text(help_text="why it was refused"),
        takenAt=maybe_moment(),
        finishedAt=maybe_moment(),
        result=AnyJson(
            help_text="now, then, jobs, queues, setBack (gangs that lose pods with their nodes), "
            "moves, evictions, notices and runTimes; null until it is done. An eviction whose "
            "action is shed has no beneficiary: its gang has too few pods left"
        ),
    )(),
)
GivenPreview = shape(
    "GivenPreview",
    changeSet=s.IntegerField(required=False, help_text="the number of a change set"),
    documents=s.ListField(
        child=AnyJson(),
        required=False,
        help_text=f"{_DOCUMENTS} A Job or PodGroup is tried out as if it were submitted now.",
    ),
    lostNodes=s.ListField(child=s.CharField(), required=False),
    minutes=s.IntegerField(required=False, help_text="how far ahead; 60 if left out"),
    beginsAt=s.DateTimeField(
        required=False, help_text="the moment to apply it at; now if left out"
    ),
)
_TURN_TIMES = {"beginsAt": s.DateTimeField(), "endsAt": maybe_moment()}
PlanTurn = shape(
    "PlanTurn",
    number=s.IntegerField(help_text="of the occurrence"),
    **_TURN_TIMES,
    state=choice(OccurrenceState),
    message=text(),
)
PlanProblem = shape(
    "PlanProblem",
    at=s.DateTimeField(),
    begins=s.BooleanField(help_text="whether it is about a begin or an end"),
    message=s.CharField(),
)
ChangePlan = object_shape(
    "ChangePlan",
    shape(
        "ChangePlanSpec",
        changeSet=s.IntegerField(),
        name=s.CharField(help_text="of the change set"),
        begin=s.CharField(help_text="of the first turn, in timeZone: 2026-11-20T18:00"),
        end=s.CharField(allow_null=True, help_text="null if it only begins"),
        timeZone=s.CharField(),
        weekly=s.BooleanField(),
        lastDate=s.DateField(allow_null=True, help_text="the last day on which it may begin"),
    )(),
    shape(
        "ChangePlanStatus",
        state=choice(PlanState),
        inWords=s.CharField(),
        plannedBy=text(),
        problems=PlanProblem(many=True, help_text="what stands against the turns to come"),
        occurrences=PlanTurn(many=True, help_text="newest first, at most 20"),
        endedAt=maybe_moment(),
        endedBy=text(),
    )(),
)
GivenPlan = shape(
    "GivenPlan",
    changeSet=s.IntegerField(help_text="the number of a draft"),
    begin=s.CharField(help_text="a wall time in timeZone: 2026-11-20T18:00"),
    end=text(required=False, help_text="left out: it only begins"),
    timeZone=s.CharField(required=False, help_text="such as Europe/Berlin; UTC if left out"),
    weekly=s.BooleanField(required=False),
    lastDate=text(required=False, help_text="the last day on which a weekly plan may begin"),
)
Occurrence = object_shape(
    "Occurrence",
    shape(
        "OccurrenceSpec",
        plan=s.IntegerField(),
        changeSet=s.IntegerField(),
        name=s.CharField(help_text="of the change set"),
        beginsAt=s.DateTimeField(),
        endsAt=maybe_moment(),
    )(),
    shape(
        "OccurrenceStatus",
        state=choice(OccurrenceState),
        message=text(help_text="what it waits for, or why it was missed"),
        beganAt=maybe_moment(),
        endedAt=maybe_moment(),
        decidedBy=text(help_text="who skipped it"),
        wouldChange=ChangeSetItem(
            many=True,
            allow_null=True,
            help_text="what applying a conflict now would change; null in lists",
        ),
    )(),
)
