"""/api/v1/usage/: who used what, in resource-hours."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from dashboard.api import schema
from dashboard.api.framework import permissions
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import bad_parameter
from dashboard.api.framework.formats import CSVRenderer
from dashboard.api.loans import RESOURCE
from dashboard.api.objects import record_object
from dashboard.api.schema.openapi import Operation, Operations, query_parameter
from dashboard.forms.usage import PARAMETERS, usage_question, usage_resources
from dashboard.present.usage import report_object, usage_as_csv
from scheduler.domain.usage_spans import DEFAULT_WINDOW, STEPS, WINDOWS, BadSpan
from scheduler.selectors.usage.costs import costs_of
from scheduler.selectors.usage.report import GROUPS, QUEUE, UsageQuestion, usage_report

SPAN = (
    query_parameter(
        "window",
        f"How far back. {DEFAULT_WINDOW} where nothing is given.",
        {"type": "string", "enum": list(WINDOWS)},
    ),
    query_parameter("from", "The first day (UTC), such as 2026-11-01, instead of a window."),
    query_parameter("to", "The last day (UTC), which is included."),
)


STEP = query_parameter(
    "step",
    "It follows from the length where nothing is given.",
    {"type": "string", "enum": list(STEPS)},
)


class Usage(Endpoint):
    """Resource-hours by queue, user, namespace or job, over a stretch of time."""

    basename = "usage"
    parameters = frozenset(PARAMETERS)
    rules: ClassVar[permissions.Rules] = {"get": permissions.MEMBER}
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.UsageReport,
            summary="Who used how many resource-hours, what was deserved, and what was lost",
            parameters=(
                *SPAN,
                STEP,
                query_parameter(
                    "by",
                    f"What the rows are. {QUEUE} where nothing is given.",
                    {"type": "string", "enum": list(GROUPS)},
                ),
                RESOURCE,
                query_parameter("queue", "Only in this queue and the queues below it."),
                query_parameter("user", "Only of jobs of this user."),
                query_parameter("namespace", "Only of jobs in this namespace."),
            ),
        )
    }

    def get_renderers(self) -> list[Any]:
        return [*super().get_renderers(), CSVRenderer()]

    def get(self, request: Request) -> HttpResponseBase:
        report = usage_report(self._question(request))
        costs = costs_of(report.question)
        if getattr(request.accepted_renderer, "format", "") == "csv":
            return usage_as_csv(request._request, report, costs)
        name = report.question.by
        return self.response_with(
            record_object("UsageReport", name, None, {}, report_object(report, costs))
        )

    def _question(self, request: Request) -> UsageQuestion:
        try:
            return usage_question(request.query_params, self.access.visible, usage_resources())
        except BadSpan as problem:
            raise bad_parameter(problem.field, str(problem)) from None
