"""/api/v1/forecast/: what would become of a job if it were submitted now. Nothing is written."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.framework import permissions
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import notice_json, violation_json
from dashboard.api.schema.openapi import Operation, Operations
from scheduler.services.jobs.forecast import Forecast as JobForecast
from scheduler.services.jobs.forecast import forecast_job


class Forecast(Endpoint):
    basename = "forecast"
    writes_are_dry_runnable = False
    rules: ClassVar[permissions.Rules] = {"post": permissions.SUBMIT}
    operations: ClassVar[Operations] = {
        "post": Operation(
            schema.Forecast,
            schema.JobManifest,
            summary="Whether it would start now, wait, never run, or be refused, and why",
        )
    }

    def post(self, request: Request) -> Response:
        return self.response_with(_forecast_json(forecast_job(request.data, by=self.actor)))


def _forecast_json(forecast: JobForecast) -> dict[str, Any]:
    """Victims are only counted: they may be in queues that the caller cannot see."""
    return {
        "prospect": forecast.prospect.value,
        "message": forecast.message,
        "reason": forecast.code,
        "pods": forecast.pods,
        "placed": forecast.placed,
        "nodes": dict(forecast.nodes),
        "victims": len(forecast.victims),
        "request": forecast.request.to_quantities(),
        "checks": [check.as_dict() for check in forecast.checks],
        "violations": [violation_json(violation) for violation in forecast.violations],
        "warnings": [notice_json(notice) for notice in forecast.notices],
    }
