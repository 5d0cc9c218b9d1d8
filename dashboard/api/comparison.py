"""/api/v1/comparisons/ and comparison/: another scheduler beside ours."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from dashboard.api import schema
from dashboard.api.filters import ComparisonFilters
from dashboard.api.framework.collection import Objects, Rows
from dashboard.api.framework.formats import CSVRenderer
from dashboard.api.objects import record_object
from dashboard.api.records import Records
from dashboard.api.schema.openapi import Operation, Operations
from dashboard.api.windowed import WindowedFigures, limits
from dashboard.http.exports import all_rows
from dashboard.http.visibility import Visibility
from dashboard.present.comparison import (
    comparison_spec,
    comparisons_as_csv,
    counts_by_name,
)
from scheduler.conf import is_shadow
from scheduler.domain.comparison import DEFINITION, Agreement
from scheduler.models import Comparison
from scheduler.selectors.queues.objects import names_in_records
from scheduler.selectors.sessions.comparison import (
    DEFAULT_WINDOW,
    WINDOWS,
    comparisons_for,
    summary_of,
    within_window,
)


class Comparisons(Records):
    noun = "comparison"
    filter_class = ComparisonFilters
    search_fields = ("podgroup_name",)
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.Comparison,
            many=True,
            summary="What another scheduler did with each gang, and what ours would have done",
        ),
        "retrieve": Operation(schema.Comparison),
    }

    def get_renderers(self) -> list[Any]:
        renderers = super().get_renderers()
        if self.action_name == "list":
            renderers.append(CSVRenderer())
        return renderers

    def visible_rows(self) -> QuerySet[Any]:
        return comparisons_for(self.access.visible)

    def as_objects(self, rows: Rows) -> Objects:
        visibility = Visibility(self.access.visible)
        return [comparison_object(row, visibility) for row in rows]

    def list(self, request: Request, *_args: Any, **_kwargs: Any) -> HttpResponseBase:
        if self.answer_format != "csv":
            return super().list(request)
        rows = all_rows(self.filter_rows(self.visible_rows()))
        return comparisons_as_csv(request._request, rows, Visibility(self.access.visible))


def comparison_object(row: Comparison, visibility: Visibility) -> dict[str, Any]:
    spec = comparison_spec(row, visibility)
    return record_object("Comparison", str(row.pk), row.since, spec, {})


class ComparisonTotals(WindowedFigures):
    """How often both agree; `queue` and `window` (1h, 24h, 7d) limit it."""

    basename = "comparison"
    kind = "ComparisonTotals"
    windows = WINDOWS
    default_window = DEFAULT_WINDOW
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.ComparisonTotals,
            summary="How often another scheduler and ours agree, by queue and window",
            parameters=limits(WINDOWS, DEFAULT_WINDOW),
        )
    }

    def status(self, window: str, queue: str) -> dict[str, Any]:
        rows = within_window(comparisons_for(self.access.visible), window)
        if queue:
            rows = rows.filter(queue_name__in=names_in_records(queue))
        summary = summary_of(rows)
        return {
            "compares": is_shadow(),
            "definition": DEFINITION,
            "starts": _agreement_object(summary.starts),
            "evictions": _agreement_object(summary.evictions),
            "counts": counts_by_name(summary.counts),
        }


def _agreement_object(agreement: Agreement) -> dict[str, Any]:
    return {"agreed": agreement.agreed, "decided": agreement.decided, "rate": agreement.rate}
