"""What shapes are made of: text, amounts, moments, metadata, pages, problems and notices."""

from __future__ import annotations

from functools import cache
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

Shape = type[s.Serializer[Any]]


def shape(name: str, /, **fields: Any) -> Shape:
    """A serializer class of this name, made from its fields."""
    return type(name, (s.Serializer,), fields)


def text(**more: Any) -> s.CharField:
    return s.CharField(allow_blank=True, **more)


_QUANTITIES = "Kubernetes quantities by resource name"


def amounts(**more: Any) -> s.DictField:
    """Kubernetes quantities by resource name."""
    help_text = _QUANTITIES
    if "help_text" in more:
        help_text = f"{more.pop('help_text')}; {_QUANTITIES}"
    return s.DictField(child=s.CharField(), help_text=help_text, **more)


def given_amounts() -> s.DictField:
    return s.DictField(
        child=s.CharField(),
        required=False,
        help_text='such as {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}',
    )


def choice(values: Any, **more: Any) -> s.ChoiceField:
    choices = []
    for value in values:
        choices.append(str(getattr(value, "value", value)))
    return s.ChoiceField(choices=choices, **more)


@extend_schema_field({"type": ["object", "array", "string", "number", "boolean", "null"]})
class AnyJson(s.JSONField):
    """Any value, null too."""


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
GivenNamespacedMetadata = type(
    "GivenNamespacedMetadata",
    (GivenMetadata,),
    {"namespace": s.CharField(required=False)},
)


def object_shape(kind: str, spec: Any, status: Any, namespaced: bool = False, **more: Any) -> Shape:
    if namespaced:
        metadata = NamespacedMetadata
    else:
        metadata = Metadata
    return shape(
        kind,
        apiVersion=s.CharField(),
        kind=s.CharField(),
        metadata=metadata(),
        spec=spec,
        status=status,
        **more,
    )


def manifest_shape(kind: str, spec: Any, namespaced: bool = False, **more: Any) -> Shape:
    if namespaced:
        metadata = GivenNamespacedMetadata
    else:
        metadata = GivenMetadata
    return shape(
        f"{kind}Manifest",
        apiVersion=s.CharField(required=False),
        kind=s.CharField(required=False),
        metadata=metadata(),
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
Violation = shape(
    "Violation",
    ruleId=s.CharField(),
    queue=text(),
    field=text(),
    message=s.CharField(),
    fix=text(),
)
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
    return type(
        f"Saved{item.__name__}",
        (item,),
        {"warnings": Notice(many=True), "changed": s.BooleanField()},
    )
