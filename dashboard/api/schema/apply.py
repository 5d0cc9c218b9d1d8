"""Many objects at once: bulk results, validate, apply, and the first page."""

from __future__ import annotations

from functools import cache

from rest_framework import serializers as s

from dashboard.api.schema.cluster import NamespaceManifest, NodeManifest, PriorityClassManifest
from dashboard.api.schema.history import CommandManifest
from dashboard.api.schema.jobs import Check, JobManifest, PodGroupManifest, PodManifest
from dashboard.api.schema.parts import (
    AnyJson,
    Notice,
    Problem,
    Shape,
    Violation,
    amounts,
    choice,
    shape,
    text,
)
from dashboard.api.schema.queues import QueueManifest
from scheduler.services.files.configuration import WRITTEN
from scheduler.services.jobs.forecast import Prospect


@cache
def bulk_of(item: Shape) -> Shape:
    """A result for each object of a list, in its order."""
    name = item.__name__
    one = shape(
        f"{name}BulkItem",
        index=s.IntegerField(),
        status=s.IntegerField(),
        object=item(allow_null=True),
        problem=Problem(allow_null=True),
    )
    return shape(f"{name}BulkResults", results=one(many=True))


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
    diff=shape(
        "Difference",
        field=s.CharField(),
        before=AnyJson(),
        after=AnyJson(),
    )(many=True),
    warnings=Notice(many=True),
)
Applied = shape(
    "Applied",
    changed=s.BooleanField(),
    dryRun=s.BooleanField(),
    message=s.CharField(),
    results=AppliedItem(many=True),
)
SampleLoaded = shape(
    "SampleLoaded",
    changed=s.BooleanField(),
    dryRun=s.BooleanField(),
    message=s.CharField(),
    queues=s.ListField(child=s.CharField()),
)
Forecast = shape(
    "Forecast",
    prospect=choice(Prospect),
    message=s.CharField(),
    reason=text(help_text="the reason code of one that would wait"),
    pods=s.IntegerField(),
    placed=s.IntegerField(help_text="how many would start at once"),
    nodes=s.DictField(child=s.IntegerField(), help_text="how many each node would get"),
    victims=s.IntegerField(help_text="pods of others that would have to go"),
    request=amounts(),
    checks=Check(many=True),
    violations=Violation(many=True),
    warnings=Notice(many=True),
)
ConfigurationManifest = shape(
    "ConfigurationManifest",
    apiVersion=s.CharField(required=False),
    kind=choice(tuple(WRITTEN)),
    metadata=shape("ConfigurationMetadata", name=s.CharField())(),
    spec=s.DictField(),
)
ConfigurationExport = shape(
    "ConfigurationExport",
    apiVersion=s.CharField(),
    kind=choice(("List",)),
    items=s.ListField(child=s.DictField()),
)
AnyManifest = shape("AnyManifest", kind=s.CharField())
MANIFESTS = (
    QueueManifest,
    JobManifest,
    PodGroupManifest,
    PodManifest,
    NodeManifest,
    NamespaceManifest,
    PriorityClassManifest,
    CommandManifest,
    ConfigurationManifest,
)
"""What `AnyManifest` stands for."""
Start = shape(
    "Start",
    collections=s.DictField(child=s.URLField()),
    singletons=s.DictField(child=s.URLField()),
    sets=s.DictField(child=s.URLField()),
)
