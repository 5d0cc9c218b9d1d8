"""Accounts, groups, grants and tokens."""

from __future__ import annotations

from rest_framework import serializers as s

from dashboard.api.schema.cluster import Empty
from dashboard.api.schema.parts import choice, maybe_moment, object_shape, shape, text
from scheduler.domain.access import Role, Scope

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
User = object_shape(
    "User",
    UserSpec(),
    shape("UserStatus", lastLogin=maybe_moment(), secondFactor=s.BooleanField())(),
)
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
Group = object_shape(
    "Group",
    shape("GroupSpec", name=s.CharField(), members=s.ListField(child=s.CharField()))(),
    Empty(),
)
GivenGroup = shape(
    "GivenGroup",
    name=s.CharField(required=False, max_length=150),
    members=s.ListField(child=s.CharField(), required=False),
)
GrantSpec = shape("GrantSpec", user=text(), group=text(), role=choice(Role), queue=s.CharField())
Grant = object_shape(
    "Grant",
    GrantSpec(),
    shape(
        "GrantStatus",
        createdBy=text(),
        providerGroup=text(help_text="the group of the sign-on provider that it comes from"),
    )(),
)
GivenGrant = shape(
    "GivenGrant",
    user=s.CharField(required=False),
    group=s.CharField(required=False),
    role=choice(Role),
    queue=s.CharField(required=False, help_text="root, the whole cluster, where it is left out"),
)
GroupMapping = object_shape(
    "GroupMapping",
    shape(
        "GroupMappingSpec", providerGroup=s.CharField(), role=choice(Role), queue=s.CharField()
    )(),
    shape(
        "GroupMappingStatus",
        createdBy=text(),
        grants=s.IntegerField(help_text="how many people have the role by it now"),
    )(),
)
GivenGroupMapping = shape(
    "GivenGroupMapping",
    providerGroup=s.CharField(max_length=255),
    role=choice(Role),
    queue=s.CharField(required=False, help_text="root, the whole cluster, where it is left out"),
)
Token = object_shape(
    "Token",
    shape(
        "TokenSpec",
        name=s.CharField(),
        user=s.CharField(),
        scopes=s.ListField(child=choice(Scope)),
        expiresAt=maybe_moment(),
    )(),
    shape(
        "TokenStatus",
        prefix=s.CharField(),
        lastUsedAt=maybe_moment(),
        revokedAt=maybe_moment(),
    )(),
)
NewToken = type("NewToken", (Token,), {"token": s.CharField(help_text="shown this one time only")})
GivenToken = shape(
    "GivenToken",
    name=s.CharField(max_length=100),
    scopes=s.ListField(child=choice(Scope)),
    expiresAt=s.DateTimeField(required=False, allow_null=True),
    user=s.CharField(required=False, help_text="somebody else, for cluster admins"),
)
