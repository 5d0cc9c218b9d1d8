"""/api/v1/loans/: who uses whose idle share, and how safe that is."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from dashboard.api import schema
from dashboard.api.filters import one_of
from dashboard.api.framework import permissions
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import bad_parameter
from dashboard.api.framework.formats import CSVRenderer
from dashboard.api.objects import record_object
from dashboard.api.schema.openapi import Operation, Operations, query_parameter
from dashboard.api.windowed import WindowedFigures, limits
from dashboard.http.visibility import Visibility
from dashboard.present.ledger import ledger_as_csv, ledger_object, seen_ledger
from dashboard.present.loan_charts import points
from dashboard.present.queue_page import chosen_resource
from dashboard.present.queues import page_resources
from scheduler.selectors.queues.listing import QueueBoard, queue_rows
from scheduler.selectors.records.loan_history import DEFAULT_WINDOW, WINDOWS, loan_history
from scheduler.services.queues.exposure import exposure_now

RESOURCE = query_parameter(
    "resource", "Such as nvidia.com/gpu or gpu. The first of the cluster where nothing is given."
)
_QUEUE = query_parameter("queue", "Only what this queue and those below it borrow or lend.")


class Loans(Endpoint):
    """The loans of one resource as they are now, with how much of each could be taken back."""

    basename = "loans"
    parameters = frozenset({"resource", "queue"})
    rules: ClassVar[permissions.Rules] = {"get": permissions.MEMBER}
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.LoanLedger,
            summary="Who borrows from whom, and how exposed that is to reclaim",
            parameters=(RESOURCE, _QUEUE),
        )
    }

    def get_renderers(self) -> list[Any]:
        return [*super().get_renderers(), CSVRenderer()]

    def get(self, request: Request) -> HttpResponseBase:
        board = queue_rows()
        resource = resource_in(request, board)
        seen = Visibility(self.access.visible)
        queue = queue_in(request.query_params.get("queue") or "", seen)
        ledger = seen_ledger(board, resource, exposure_now(), seen, queue)
        if self.answer_format == "csv":
            return ledger_as_csv(request._request, ledger)
        name = resource or "none"
        return self.response_with(
            record_object("LoanLedger", name, None, {}, ledger_object(ledger))
        )


class LoanHistories(WindowedFigures):
    """What a queue borrowed and lent over time, or without one all queues together."""

    basename = "loans-history"
    parameters = frozenset({"queue", "window", "resource"})
    kind = "LoanHistory"
    windows = WINDOWS
    default_window = DEFAULT_WINDOW
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.LoanHistory,
            summary="What a queue borrowed and lent over time, and from and to whom",
            parameters=(RESOURCE, *limits(WINDOWS, DEFAULT_WINDOW)),
        )
    }

    def status(self, window: str, queue: str) -> dict[str, Any]:
        seen = Visibility(self.access.visible)
        queue_in(queue, seen)
        resource = resource_in(self.request, queue_rows())
        found = points(loan_history(queue, resource, window), seen)
        return {"queue": queue, "resource": resource, "points": found}


def queue_in(queue: str, seen: Visibility) -> str:
    """Of a queue that the reader may not see, not even the loans with others are told."""
    if queue and not seen.sees(queue):
        message = f"There is no queue “{queue[:253]}” that you may see."
        raise bad_parameter("queue", message)
    return queue


def resource_in(request: Request, board: QueueBoard) -> str:
    """The resource that is asked about. Raises `Refusal` for one that there is not."""
    wanted = (request.query_params.get("resource") or "").strip()
    resources = page_resources(board)
    if not wanted:
        return next(iter(resources), "")
    return chosen_resource(wanted, resources) or one_of("resource", wanted, resources)
