"""/api/v1/prices/ and /api/v1/usage/statement/: what usage costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.framework import permissions
from dashboard.api.framework.body_fields import given_fields, given_text
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import bad_parameter
from dashboard.api.framework.formats import CSVRenderer
from dashboard.api.loans import queue_in
from dashboard.api.objects import record_object
from dashboard.api.schema.openapi import Operation, Operations, query_parameter
from dashboard.http.visibility import Visibility
from dashboard.present.statement import statement_as_csv, statement_object, statement_of
from scheduler.domain.usage_spans import BadSpan
from scheduler.models import PriceList
from scheduler.services.usage.prices import delete_prices, describe, set_prices
from scheduler.services.usage.statements import send_statement

_QUEUE = query_parameter("queue", "Of this queue and the queues below it; else of all you see.")
_MONTH = query_parameter("month", "Year and month (UTC), such as 2026-10. Else the present one.")


class PriceLists(Endpoint):
    """All price lists. Each counts from a day on, until the next one."""

    basename = "prices"
    parameters = frozenset({"validFrom"})
    rules: ClassVar[permissions.Rules] = {
        "get": permissions.MEMBER,
        "put": permissions.CLUSTER_ADMIN,
        "delete": permissions.CLUSTER_ADMIN,
    }
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.PriceLists, summary="What a resource costs per hour, and since when"
        ),
        "put": Operation(
            schema.PriceLists, schema.GivenPriceList, summary="Set the prices from a day on"
        ),
        "delete": Operation(
            schema.Gone,
            summary="Delete the prices that begin on a day",
            parameters=(query_parameter("validFrom", "The day, such as 2026-11-01."),),
        ),
    }

    def get(self, request: Request) -> Response:
        return self.response_with(_lists_object())

    def put(self, request: Request) -> Response:
        with self.undone_in_dry_run():
            for given in _given_lists(given_fields(request.data)):
                set_prices(
                    given_text(given, "validFrom", required=True),
                    given.get("currency"),
                    given.get("prices"),
                    by=self.actor,
                )
            made = _lists_object()
        return self.response_with(made)

    def delete(self, request: Request) -> Response:
        day = request.query_params.get("validFrom") or ""
        delete_prices(day, by=self.actor, dry_run=self.dry_run)
        return self.response_with({"message": "The prices were deleted.", "dryRun": self.dry_run})


def _given_lists(given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """One list; or several, as a GET answers them."""
    if "lists" not in given:
        return [given]
    lists = given["lists"]
    if not isinstance(lists, list) or not all(isinstance(each, Mapping) for each in lists):
        raise bad_parameter("spec.lists", "lists must be a list of price lists.")
    return lists


def _lists_object() -> dict[str, Any]:
    rows = []
    for row in PriceList.objects.order_by("valid_from"):
        rows.append({"validFrom": row.valid_from.isoformat(), **describe(row)})
    return record_object("PriceLists", "prices", None, {"lists": rows}, {})


class Statements(Endpoint):
    """What a queue used in a month, and what that costs. A POST sends it to the queue's owners."""

    basename = "usage-statement"
    parameters = frozenset({"queue", "month"})
    rules: ClassVar[permissions.Rules] = {"get": permissions.MEMBER, "post": permissions.ADMIN}
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.Statement, summary="The statement of a queue", parameters=(_QUEUE, _MONTH)
        ),
        "post": Operation(
            schema.SentStatement,
            schema.GivenStatement,
            summary="Send it to the admins of the queue",
        ),
    }

    def get_renderers(self) -> list[Any]:
        return [*super().get_renderers(), CSVRenderer()]

    def get(self, request: Request) -> HttpResponseBase:
        given = request.query_params
        queue = queue_in(given.get("queue") or "", Visibility(self.access.visible))
        month = given.get("month") or timezone.now().strftime("%Y-%m")
        try:
            statement = statement_of(queue, month, self.access.visible)
        except BadSpan as problem:
            raise bad_parameter(problem.field, str(problem)) from None
        if getattr(request.accepted_renderer, "format", "") == "csv":
            return statement_as_csv(request._request, statement)
        body = record_object("Statement", month, None, {}, statement_object(statement))
        return self.response_with(body)

    def post(self, request: Request) -> Response:
        body = request.data
        queue = given_text(body, "queue", required=True)
        month = given_text(body, "month", required=True)
        try:
            sent = send_statement(queue, month, by=self.actor, dry_run=self.dry_run)
        except BadSpan as problem:
            raise bad_parameter(problem.field, str(problem)) from None
        return self.response_with({"sentTo": sent, "dryRun": self.dry_run})
