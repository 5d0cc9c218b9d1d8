"""/api/v1/forecasts/: how often gangs started in the range that was foretold."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from dashboard.api import schema
from dashboard.api.framework.formats import CSVRenderer
from dashboard.api.objects import iso_time
from dashboard.api.schema.openapi import Operation, Operations
from dashboard.api.windowed import WindowedFigures, limits
from dashboard.present.start_times import accuracies_as_csv, accuracy_object
from scheduler.domain.start_forecasts import COVERAGE
from scheduler.selectors.jobs.start_times import (
    DEFAULT_WINDOW,
    WINDOWS,
    accuracies_for,
    last_look,
)


class Forecasts(WindowedFigures):
    """Coverage and median error by queue and size; `queue` and `window` (24h, 7d, 30d) limit it."""

    basename = "forecasts"
    kind = "ForecastAccuracy"
    windows = WINDOWS
    default_window = DEFAULT_WINDOW
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.ForecastAccuracy,
            summary="How often gangs started when it was foretold, by queue and size",
            parameters=limits(WINDOWS, DEFAULT_WINDOW),
        )
    }

    def get_renderers(self) -> list[Any]:
        return [*super().get_renderers(), CSVRenderer()]

    def answer(self, request: Request, window: str, queue: str) -> HttpResponseBase:
        if self.answer_format != "csv":
            return super().answer(request, window, queue)
        found = accuracies_for(self.access.visible, window, queue)
        return accuracies_as_csv(request._request, found.rows)

    def status(self, window: str, queue: str) -> dict[str, Any]:
        found = accuracies_for(self.access.visible, window, queue)
        look = last_look()
        return {
            "stated": COVERAGE,
            "lookedAheadAt": iso_time(look.made_at) if look else None,
            "whole": accuracy_object(found.whole),
            "rows": [accuracy_object(row) for row in found.rows],
        }
