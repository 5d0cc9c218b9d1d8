"""OpenAPI 3.1 from the endpoints' own declarations: what each takes and gives, its parameters, and every error it can answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from dashboard.api import schema

PROBLEM_JSON = "application/problem+json"
_ALWAYS = (400, 401, 403, 406, 429, 503)


@dataclass(frozen=True)
class Operation:
    """What one action takes and gives."""

    gives: Any
    takes: Any = None
    code: int = 200
    errors: tuple[int, ...] = ()
    many: bool = False  # a page of what it gives
    bulk: bool = False  # takes a list too, and then gives a result for each
    several: bool = False  # takes a list too, and gives the same for all of it
    parameters: tuple[OpenApiParameter, ...] = ()
    summary: str = ""
    examples: tuple[OpenApiExample, ...] = field(default=())
    optional_body: bool = False
    otherwise: Any = None  # what it gives instead where a parameter asks for it
    later: Any = None  # what it gives, with 202, where it is only planned and done later


Operations = Mapping[str, Operation]
"""Each action of an endpoint."""


def query_parameter(
    name: str, about: str, kind: Any = OpenApiTypes.STR, **more: Any
) -> OpenApiParameter:
    return OpenApiParameter(name, kind, OpenApiParameter.QUERY, description=about, **more)


REASON = query_parameter("reason", "Why, at most 1,024 characters: it stands in the audit log.")
DRY_RUN = query_parameter(
    "dry_run", "Check and answer as if it were done, but write nothing.", OpenApiTypes.BOOL
)
FIELDS = query_parameter(
    "fields",
    "Only these parts of each object, such as `metadata.name,status.state`; the others are then left out.",
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The ETag that was read, or several; 412 when it is none of them any more.",
)
KEY = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="Any text of up to 128 characters. The same request with the same key is carried out once and answered alike for 24 hours.",
)
PAGES = (
    query_parameter("cursor", "The place to go on from, out of `next` or `previous`."),
    query_parameter(
        "page_size",
        "How many at most, 1 to 1000.",
        {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    ),
    query_parameter("search", "Words that must occur, in any case."),
)
_PATH_WORDS = {
    "name": "The object's name; may contain dots.",
    "namespace": "The namespace it lives in.",
}


class EndpointSchema(AutoSchema):
    @property
    def form(self) -> Operation:
        found: Operation = self._endpoint.operations[self.action]
        return found

    @property
    def _endpoint(self) -> Any:
        return self.view

    @property
    def action(self) -> str:
        return str(getattr(self.view, "action", None) or self.method.lower())

    def get_operation_id(self) -> str:
        base = getattr(self.view, "basename", None) or type(self.view).__name__
        return f"{base}_{self.action}"

    def get_tags(self) -> list[str]:
        return [getattr(self.view, "basename", None) or type(self.view).__name__.lower()]

    def get_summary(self) -> str:
        return (
            self.form.summary
            or f"{self.action.replace('_', ' ').capitalize()} {self.get_tags()[0]}"
        )

    def get_description(self) -> str:  # type: ignore[override]
        return ""

    def get_request_serializer(self) -> Any:
        takes = self.form.takes
        if takes is None:
            return None
        return (
            schema.patch_of(takes)
            if self.method == "PATCH" and takes.__name__.endswith("Manifest")
            else takes
        )

    def get_response_serializers(self) -> Any:
        form = self.form
        answers: dict[Any, Any] = {(code, PROBLEM_JSON): schema.Problem for code in self._errors()}
        good = schema.page_of(form.gives) if form.many else form.gives
        answers[form.code] = good
        if self.method == "POST" and form.code == 201:
            answers[200] = good  # a dry run creates nothing
        if form.later is not None:
            answers[202] = form.later
        return answers

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        bodies = super()._get_response_bodies(direction)
        other = schema.bulk_of(self.form.gives) if self.form.bulk else self.form.otherwise
        if other is not None:
            found = self.resolve_serializer(other, direction).ref
            for media in bodies["200"]["content"].values():
                media["schema"] = {"oneOf": [media["schema"], found]}
        return bodies

    def _errors(self) -> list[int]:
        codes = {*_ALWAYS, *self.form.errors}
        if self._has_path():
            codes.add(404)
        if self.method != "GET":
            codes |= {409, 413, 415}
        if self._takes_version():
            codes.add(412)
        return sorted(codes)

    def _takes_version(self) -> bool:
        return self.method in ("PUT", "PATCH", "DELETE") or 412 in self.form.errors

    def _has_path(self) -> bool:
        return "{" in self.path

    def get_override_parameters(self) -> list[Any]:
        parameters = [
            OpenApiParameter(
                name,
                OpenApiTypes.STR,
                OpenApiParameter.PATH,
                description=_PATH_WORDS.get(name, "Its number."),
            )
            for name in getattr(self.view, "lookups", ())
            if f"{{{name}}}" in self.path
        ]
        parameters += self.form.parameters
        if self.form.many:
            parameters += [*PAGES, *self._filters(), self._ordering()]
        if self.method == "GET":
            parameters.append(FIELDS)
        else:
            parameters += [
                KEY,
                REASON,
                *([DRY_RUN] if self._endpoint.writes_are_dry_runnable else []),
            ]
        if self._takes_version():
            parameters.append(IF_MATCH)
        return parameters

    def _filters(self) -> list[OpenApiParameter]:
        filters = getattr(self.view, "filter_class", None)
        if filters is None:
            return []
        return [
            query_parameter(name, (type(found).__doc__ or "").strip() or f"By {name}.")
            for name, found in filters.base_filters.items()
        ]

    def _ordering(self) -> OpenApiParameter:
        names = [sign + name for name in self._endpoint.orderings for sign in ("", "-")]
        return query_parameter(
            "ordering", "The order; - in front turns it round.", {"type": "string", "enum": names}
        )

    def get_auth(self) -> list[dict[str, list[str]]]:
        """The two ways in; both are described in the settings."""
        return [{"token": []}, {"browser": []}]

    def _is_list_view(self, serializer: Any = None) -> bool:
        return False  # pages are shapes of their own

    def get_filter_backends(self) -> list[Any]:
        return []

    def get_examples(self) -> list[OpenApiExample]:
        return list(self.form.examples)

    def _get_request_body(self, direction: Any = "request") -> Any:
        body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        if body is None:
            return None
        form = self.form
        for media in body["content"].values():
            if form.takes is schema.AnyManifest:
                media["schema"] = {
                    "anyOf": [
                        self.resolve_serializer(manifest, direction).ref
                        for manifest in schema.MANIFESTS
                    ]
                }
            if form.bulk or form.several:
                media["schema"] = {
                    "oneOf": [
                        media["schema"],
                        {"type": "array", "items": media["schema"], "maxItems": 1000},
                    ]
                }
        if form.optional_body:
            body.pop("required", None)
        else:
            body["required"] = True
        return body

    def map_parsers(self) -> list[str]:
        takes = ["application/json", "application/yaml"]
        return ["application/json"] if self.method == "PATCH" else takes

    def map_renderers(self, attribute: str) -> list[str]:
        return ["application/json"] if attribute == "media_type" else ["json"]
