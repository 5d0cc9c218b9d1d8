"""/api/v1/fairness/: debt and credit of queues, who was starved by whom, waits, and lost room."""

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
from dashboard.api.usage import SPAN, STEP
from dashboard.forms.usage import fairness_question, usage_resources
from dashboard.http.visibility import Visibility
from dashboard.present.fairness import fairness_as_csv, fairness_object
from scheduler.domain.usage_spans import BadSpan
from scheduler.selectors.usage.fairness import FairnessQuestion, fairness


class FairnessOverTime(Endpoint):
    basename = "fairness"
    parameters = frozenset({"window", "from", "to", "step", "resource", "queue"})
    rules: ClassVar[permissions.Rules] = {"get": permissions.MEMBER}
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.Fairness,
            summary="Debt and credit of queues, who was starved by whom, waits, and lost room",
            parameters=(
                *SPAN,
                STEP,
                RESOURCE,
                query_parameter("queue", "Only this queue and the queues below it."),
            ),
        )
    }

    def get_renderers(self) -> list[Any]:
        return [*super().get_renderers(), CSVRenderer()]

    def get(self, request: Request) -> HttpResponseBase:
        found = fairness(self._question(request))
        if getattr(request.accepted_renderer, "format", "") == "csv":
            return fairness_as_csv(request._request, found)
        status = fairness_object(found, Visibility(self.access.visible))
        return self.response_with(record_object("Fairness", "fairness", None, {}, status))

    def _question(self, request: Request) -> FairnessQuestion:
        try:
            return fairness_question(request.query_params, self.access.visible, usage_resources())
        except BadSpan as problem:
            raise bad_parameter(problem.field, str(problem)) from None
