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
from scheduler.domain.change_sets import KINDS, Operation, SetState
from scheduler.domain.previews import PreviewState

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
Preview = object_shape(
    "Preview",
    shape(
        "PreviewSpec",
        changeSet=s.IntegerField(allow_null=True),
        lostNodes=s.ListField(child=s.CharField()),
        minutes=s.IntegerField(),
    )(),
    shape(
        "PreviewStatus",
        state=choice(PreviewState),
        progress=s.FloatField(help_text="from 0 to 1"),
        message=text(help_text="why it was refused"),
        takenAt=maybe_moment(),
        finishedAt=maybe_moment(),
        result=AnyJson(help_text="now, then, queues, moves and evictions; null until it is done"),
    )(),
)
GivenPreview = shape(
    "GivenPreview",
    changeSet=s.IntegerField(required=False, help_text="the number of a change set"),
    documents=s.ListField(child=AnyJson(), required=False, help_text=_DOCUMENTS),
    lostNodes=s.ListField(child=s.CharField(), required=False),
    minutes=s.IntegerField(required=False, help_text="how far ahead; 60 if left out"),
)
