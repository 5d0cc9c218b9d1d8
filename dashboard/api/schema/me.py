"""Views, preferences, passwords, and one command for many jobs."""

from __future__ import annotations

import uuid

from rest_framework import serializers as s

from dashboard.api.schema.cluster import Empty
from dashboard.api.schema.parts import choice, maybe_moment, object_shape, shape, text
from scheduler.models import BulkRun as BulkRunRow
from scheduler.services.accounts.preferences import THEMES

_ACTIONS = ("suspend", "resume", "restart", "cancel")

View = object_shape(
    "View",
    shape(
        "ViewSpec",
        page=choice(("jobs",)),
        name=s.CharField(),
        query=text(help_text="the query string of the page: q, cols and sort"),
        shared=s.BooleanField(),
    )(),
    shape(
        "ViewStatus",
        owner=s.CharField(),
        address=s.CharField(help_text="the page that shows it"),
    )(),
)
ViewCount = shape(
    "ViewCount",
    jobs=s.IntegerField(help_text="at most 1000"),
    isMore=s.BooleanField(help_text="there are more than that"),
    oldestWaitSince=maybe_moment(),
)
GivenView = shape(
    "GivenView",
    name=s.CharField(max_length=80),
    page=choice(("jobs",), required=False),
    query=text(required=False, max_length=1024),
    shared=s.BooleanField(required=False),
)
GivenViewPatch = shape(
    "GivenViewPatch",
    query=text(required=False, max_length=1024),
    shared=s.BooleanField(required=False),
)
Preferences = object_shape(
    "Preferences",
    shape(
        "PreferencesSpec",
        timeZone=text(),
        theme=choice(THEMES),
        calendarNotices=s.BooleanField(),
        folded=s.ListField(child=s.CharField()),
        unfolded=s.ListField(child=s.CharField()),
        levels=s.IntegerField(allow_null=True),
        pinned=s.ListField(child=s.CharField()),
        pinnedViews=s.ListField(child=s.CharField()),
    )(),
    Empty(),
)
GivenPreferences = shape(
    "GivenPreferences",
    timeZone=text(required=False, help_text="such as Europe/Berlin; empty for UTC"),
    theme=choice(THEMES, required=False),
    calendarNotices=s.BooleanField(
        required=False,
        help_text="whether planned changes that you made, or of queues that you own, come to "
        "your inbox",
    ),
    folded=s.ListField(
        child=s.CharField(),
        required=False,
        help_text="the queues whose children the tree does not show",
    ),
    unfolded=s.ListField(
        child=s.CharField(),
        required=False,
        help_text="those whose children it shows although they are deeper than levels",
    ),
    pinned=s.ListField(
        child=s.CharField(),
        required=False,
        help_text="the queues that come first on the page of queues, in this order",
    ),
    pinnedViews=s.ListField(
        child=s.CharField(),
        required=False,
        help_text="the names of the views that are tiles of your overview, in this order",
    ),
    levels=s.IntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        help_text="how many levels the tree shows; 0 for all",
    ),
)
GivenPassword = shape("GivenPassword", old=s.CharField(), new=s.CharField())
PasswordChanged = shape(
    "PasswordChanged",
    changed=s.BooleanField(),
    message=s.CharField(),
    dryRun=s.BooleanField(),
)
BulkRun = object_shape(
    "BulkRun",
    shape("BulkRunSpec", action=choice(_ACTIONS), query=text(), reason=text())(),
    shape(
        "BulkRunStatus",
        state=choice(BulkRunRow.STATES),
        owner=s.CharField(),
        jobs=s.IntegerField(),
        left=s.IntegerField(help_text="those whose turn has not come"),
        done=s.IntegerField(),
        unchanged=s.IntegerField(),
        refused=s.IntegerField(),
        finishedAt=maybe_moment(),
    )(),
)
GivenBulkRun = shape(
    "GivenBulkRun",
    action=choice(_ACTIONS),
    jobs=s.ListField(
        child=s.CharField(), required=False, help_text='by name, such as "default/train"'
    ),
    query=s.CharField(
        required=False,
        max_length=1024,
        help_text="or all that match, as in the query box: state:waiting user:me",
    ),
    reason=text(required=False, max_length=1024),
)
BulkJob = shape(
    "BulkJob",
    namespace=s.CharField(),
    name=s.CharField(),
    result=choice(("", "Done", "NoOp", "Refused")),
    message=text(),
)


def is_uid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
