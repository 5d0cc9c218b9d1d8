"""What the endpoints of figures share that are about a queue and a stretch of time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from dashboard.api.filters import one_of
from dashboard.api.framework import permissions
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.objects import record_object
from dashboard.api.schema.openapi import query_parameter


def limits(windows: Iterable[str], default: str) -> tuple[Any, ...]:
    """The two parameters, for the OpenAPI document."""
    window = query_parameter(
        "window",
        f"How far back. {default} where nothing is given.",
        {"type": "string", "enum": list(windows)},
    )
    return (query_parameter("queue", "Only in this queue and the queues below it."), window)


class WindowedFigures(Endpoint):
    """One object: its `status` says it all. `kind` is the object's."""

    parameters = frozenset({"queue", "window"})
    rules: ClassVar[permissions.Rules] = {"get": permissions.MEMBER}
    kind: ClassVar[str]
    windows: ClassVar[Iterable[str]]
    default_window: ClassVar[str]

    def get(self, request: Request) -> HttpResponseBase:
        given = request.query_params
        window = one_of("window", given.get("window") or self.default_window, self.windows)
        return self.answer(request, window, given.get("queue") or "")

    def answer(self, request: Request, window: str, queue: str) -> HttpResponseBase:
        status = {"window": window, **self.status(window, queue)}
        return self.response_with(record_object(self.kind, window, None, {}, status))

    def status(self, window: str, queue: str) -> dict[str, Any]:
        raise NotImplementedError
