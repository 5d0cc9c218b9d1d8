"""/api/v1/timeline/: what happened in the cluster within a window, and what is expected."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from dashboard.api import schema
from dashboard.api.filters import one_of
from dashboard.api.framework import permissions
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import bad_parameter
from dashboard.api.framework.formats import CSVRenderer
from dashboard.api.loans import queue_in
from dashboard.api.objects import iso_time, record_object
from dashboard.api.schema.openapi import Operation, Operations, query_parameter
from dashboard.http.exports import as_csv, streamed
from dashboard.http.visibility import Visibility
from dashboard.present.cluster_timeline import (
    COLUMNS,
    DEFAULT_SPAN,
    SPANS,
    BadWindow,
    Reader,
    mark_object,
    moment_in,
    window_of,
)
from scheduler.domain.cluster_timeline import LANES, Window
from scheduler.selectors.records.cluster_timeline import Asked, Moment, marks_in, moment_at

_MOMENT = {"type": "string", "format": "date-time"}


class Timeline(Endpoint):
    """Marks of all lanes; where many fall together, one mark with their number."""

    basename = "timeline"
    parameters = frozenset({"start", "end", "span", "lane", "queue", "at"})
    rules: ClassVar[permissions.Rules] = {"get": permissions.MEMBER}
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.ClusterTimeline,
            summary="What happened in the cluster within a window, and what is expected",
            parameters=(
                query_parameter(
                    "span",
                    f"How far back from now. {DEFAULT_SPAN} where nothing is given.",
                    {"type": "string", "enum": list(SPANS)},
                ),
                query_parameter("start", "Instead of a span: where it begins.", _MOMENT),
                query_parameter("end", "Where it ends. Now where nothing is given.", _MOMENT),
                query_parameter("lane", f"Only these, joined by commas: {', '.join(LANES)}."),
                query_parameter("queue", "Only in this queue and the queues below it."),
                query_parameter("at", "Also name the session that decided then.", _MOMENT),
            ),
        )
    }

    def get_renderers(self) -> list[Any]:
        return [*super().get_renderers(), CSVRenderer()]

    def get(self, request: Request) -> HttpResponseBase:
        given = request.query_params
        queue = queue_in((given.get("queue") or "").strip(), Visibility(self.access.visible))
        lanes = _lanes(given.get("lane") or "")
        try:
            span, window = window_of(given.dict(), timezone.now())
            session = _session_at(given.get("at") or "")
        except BadWindow as problem:
            raise bad_parameter(problem.field, str(problem)) from None
        asked = Asked(self.access, request.user.get_username(), window, lanes, queue)
        reader = Reader(self.access, window, {"queue": queue})
        marks = [mark_object(mark, reader) for mark in marks_in(asked)]
        if getattr(request.accepted_renderer, "format", "") == "csv":
            return streamed(request._request, as_csv(marks, COLUMNS), "text/csv", "timeline.csv")
        status = {**_window_object(window), "queue": queue, "session": session, "marks": marks}
        name = span or "window"
        return self.response_with(record_object("ClusterTimeline", name, None, {}, status))


def _lanes(text: str) -> list[str]:
    """Raises `Refusal` for a lane that there is not."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    return [one_of("lane", word, LANES) for word in words] or list(LANES)


def _window_object(window: Window) -> dict[str, Any]:
    return {
        "start": iso_time(window.start),
        "end": iso_time(window.end),
        "stepSeconds": window.step,
    }


def _session_at(text: str) -> dict[str, Any] | None:
    """Raises `BadWindow`."""
    if not text.strip():
        return None
    found = moment_at(moment_in("at", text.strip()))
    if found is None:
        return None
    return {
        "number": found.session.number,
        "startedAt": iso_time(found.session.started_at),
        "binds": found.session.counts.get("binds", 0),
        "evictions": found.session.counts.get("evictions", 0),
        "policyVersion": found.session.policy_id,
        "kept": found.is_kept,
        "nearestKept": _nearest(found),
    }


def _nearest(moment: Moment) -> dict[str, Any] | None:
    """The nearest session that can be run again, where this one cannot."""
    if moment.nearest is None:
        return None
    return {
        "number": moment.nearest.session_number,
        "startedAt": iso_time(moment.nearest.created_at),
    }
