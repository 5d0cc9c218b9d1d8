"""OpenAPI 3.1 from the endpoints' own declarations.

What each takes and gives, its parameters, and every error it can answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

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
    streams: bool = False  # may answer with server-sent events
    later: Any = None  # what it gives, with 202, where it is only planned and done later


def command_to(gives: Any, summary: str, code: int = 200) -> Operation:
    """A command to an object, with a reason or without, that answers with the object."""
    return Operation(schema.saved(gives), schema.Reason, code, optional_body=True, summary=summary)


_EVENT: Final = {
    "type": "object",
    "description": "One event. Its data is JSON.",
    "properties": {name: {"type": "string"} for name in ("event", "data", "id")},
}

Operations = Mapping[str, Operation]
"""Each action of an endpoint."""


def query_parameter(name: str, about: str, shape: Any = OpenApiTypes.STR) -> OpenApiParameter:
    return OpenApiParameter(name, shape, OpenApiParameter.QUERY, description=about)


REASON = query_parameter("reason", "Why, at most 1,024 characters. It goes into the audit log.")
DRY_RUN = query_parameter(
    "dry_run", "Check and answer as if it were done, but write nothing.", OpenApiTypes.BOOL
)
FIELDS = query_parameter(
    "fields",
    "Only these parts of each object, such as `metadata.name,status.state`.",
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The ETag that was read, or several; 412 if the object has none of them any more.",
)
KEY = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description=(
        "Any text of up to 128 characters. A request that is repeated with the same key "
        "within 24 hours is carried out once and gets the same answer."
    ),
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
    def operation(self) -> Operation:
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
        words = self.action.replace("_", " ").capitalize()
        return self.operation.summary or f"{words} {self.get_tags()[0]}"

    def get_description(self) -> str:  # type: ignore[override]
        return ""

    def get_request_serializer(self) -> Any:
        takes = self.operation.takes
        if takes is None:
            return None
        if self.method == "PATCH" and takes.__name__.endswith("Manifest"):
            return schema.patch_of(takes)
        return takes

    def get_response_serializers(self) -> Any:
        operation = self.operation
        answers: dict[Any, Any] = {}
        for code in self._error_codes():
            answers[(code, PROBLEM_JSON)] = schema.Problem
        good = operation.gives
        if operation.many:
            good = schema.page_of(good)
        answers[operation.code] = good
        if self.method == "POST" and operation.code == 201:
            answers[200] = good  # a dry run creates nothing
        if operation.later is not None:
            answers[202] = operation.later
        return answers

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        bodies = super()._get_response_bodies(direction)
        other = self.operation.otherwise
        if self.operation.bulk:
            other = schema.bulk_of(self.operation.gives)
        if other is not None:
            found = self.resolve_serializer(other, direction).ref
            for media in bodies["200"]["content"].values():
                media["schema"] = {"oneOf": [media["schema"], found]}
        if self.operation.streams:
            bodies["200"]["content"]["text/event-stream"] = {"schema": _EVENT}
        return bodies

    def _error_codes(self) -> list[int]:
        codes = {*_ALWAYS, *self.operation.errors}
        if self._has_path():
            codes.add(404)
        if self.method != "GET":
            codes |= {409, 413, 415}
        if self._takes_version():
            codes.add(412)
        return sorted(codes)

    def _takes_version(self) -> bool:
        return self.method in ("PUT", "PATCH", "DELETE") or 412 in self.operation.errors

    def _has_path(self) -> bool:
        return "{" in self.path

    def get_override_parameters(self) -> list[Any]:
        parameters = self._path_parameters()
        parameters += self.operation.parameters
        if self.operation.many:
            parameters += [*PAGES, *self._filter_parameters(), self._ordering_parameter()]
        if self.method == "GET":
            parameters.append(FIELDS)
        else:
            parameters += [KEY, REASON]
            if self._endpoint.writes_are_dry_runnable:
                parameters.append(DRY_RUN)
        if self._takes_version():
            parameters.append(IF_MATCH)
        return parameters

    def _path_parameters(self) -> list[OpenApiParameter]:
        parameters = []
        for name in getattr(self.view, "lookups", ()):
            if f"{{{name}}}" in self.path:
                words = _PATH_WORDS.get(name, "Its number.")
                parameters.append(
                    OpenApiParameter(
                        name, OpenApiTypes.STR, OpenApiParameter.PATH, description=words
                    )
                )
        return parameters

    def _filter_parameters(self) -> list[OpenApiParameter]:
        filters = getattr(self.view, "filter_class", None)
        if filters is None:
            return []
        parameters = []
        for name, found in filters.base_filters.items():
            words = (type(found).__doc__ or "").strip()
            parameters.append(query_parameter(name, words or f"By {name}."))
        return parameters

    def _ordering_parameter(self) -> OpenApiParameter:
        names = []
        for name in self._endpoint.orderings:
            names += [name, f"-{name}"]
        words = "The order; - in front reverses it."
        return query_parameter("ordering", words, {"type": "string", "enum": names})

    def get_auth(self) -> list[dict[str, list[str]]]:
        """The two ways to sign in; both are described in the settings."""
        return [{"token": []}, {"browser": []}]

    def _is_list_view(self, serializer: Any = None) -> bool:
        return False  # pages are shapes of their own

    def get_filter_backends(self) -> list[Any]:
        return []

    def get_examples(self) -> list[OpenApiExample]:
        return list(self.operation.examples)

    def _get_request_body(self, direction: Any = "request") -> Any:
        body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        if body is None:
            return None
        for media in body["content"].values():
            if self.operation.takes is schema.AnyManifest:
                media["schema"] = self._any_manifest(direction)
            if self.operation.bulk or self.operation.several:
                many = {"type": "array", "items": media["schema"], "maxItems": 1000}
                media["schema"] = {"oneOf": [media["schema"], many]}
        if self.operation.optional_body:
            body.pop("required", None)
        else:
            body["required"] = True
        return body

    def _any_manifest(self, direction: Any) -> dict[str, Any]:
        manifests = []
        for shape in schema.MANIFESTS:
            manifests.append(self.resolve_serializer(shape, direction).ref)
        return {"anyOf": manifests}

    def map_parsers(self) -> list[str]:
        if self.method == "PATCH":
            return ["application/json"]
        return ["application/json", "application/yaml"]

    def map_renderers(self, attribute: str) -> list[str]:
        if attribute == "media_type":
            return ["application/json"]
        return ["json"]
