"""/api/v1/forecasts/: how often gangs started in the range that was foretold."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from dashboard.api import schema
from dashboard.api.filters import one_of
from dashboard.api.framework import permissions
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.formats import CSVRenderer
from dashboard.api.objects import iso_time, record_object
from dashboard.api.schema.openapi import Operation, Operations, query_parameter
from dashboard.present.start_times import accuracies_as_csv, accuracy_object
from scheduler.domain.start_forecasts import COVERAGE
from scheduler.selectors.jobs.start_times import (
    DEFAULT_WINDOW,
    WINDOWS,
    Accuracies,
    accuracies_for,
    last_look,
)

_QUEUE = query_parameter("queue", "Only in this queue and the queues below it.")
_WINDOW = query_parameter(
    "window",
    f"How far back. {DEFAULT_WINDOW} where nothing is given.",
    {"type": "string", "enum": list(WINDOWS)},
)


class Forecasts(Endpoint):
    """Coverage and median error by queue and size; `queue` and `window` (24h, 7d, 30d) limit it."""

    basename = "forecasts"
    parameters = frozenset({"queue", "window"})
    rules: ClassVar[permissions.Rules] = {"get": permissions.MEMBER}
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.ForecastAccuracy,
            summary="How often gangs started when it was foretold, by queue and size",
            parameters=(_QUEUE, _WINDOW),
        )
    }

    def get_renderers(self) -> list[Any]:
        return [*super().get_renderers(), CSVRenderer()]

    def get(self, request: Request) -> HttpResponseBase:
        window = one_of("window", request.query_params.get("window") or DEFAULT_WINDOW, WINDOWS)
        queue = request.query_params.get("queue") or ""
        found = accuracies_for(self.access.visible, window, queue)
        if getattr(request.accepted_renderer, "format", "") == "csv":
            return accuracies_as_csv(request._request, found.rows)
        return self.response_with(
            record_object("ForecastAccuracy", window, None, {}, _status(window, found))
        )


def _status(window: str, found: Accuracies) -> dict[str, Any]:
    look = last_look()
    return {
        "window": window,
        "stated": COVERAGE,
        "lookedAheadAt": iso_time(look.made_at) if look else None,
        "whole": accuracy_object(found.whole),
        "rows": [accuracy_object(row) for row in found.rows],
    }
