"""/insights/timeline/: what happened in the cluster on one axis, and which session decided it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.forms.choices import UnknownWord, refusal_of
from dashboard.http.access import access, page, require_view
from dashboard.http.exports import as_csv, streamed
from dashboard.present.cluster_timeline import (
    COLUMNS,
    SPANS,
    BadWindow,
    Reader,
    lanes_of,
    mark_object,
    moment_in,
    moves,
    ticks,
    window_of,
)
from scheduler.domain.access import Forbidden, Permission
from scheduler.domain.cluster_timeline import LANES
from scheduler.domain.queues import ROOT
from scheduler.models import ClusterState
from scheduler.selectors.records.cluster_timeline import Asked, Moment, marks_in, moment_at
from scheduler.services.sessions.policies import policy_in_force
from scheduler.services.sessions.replay import NotKept, Replay, replay_with_policy_in_force


@require_safe
@page
def timeline(request: HttpRequest) -> HttpResponseBase:
    access(request).require_anywhere(Permission.VIEW, "see the timeline")
    queue = request.GET.get("queue", "").strip()[:253]
    if queue:
        require_view(request, queue)
    try:
        span, window = window_of(request.GET.dict(), timezone.now())
        moment = _moment(request)
    except BadWindow as problem:
        raise UnknownWord(str(problem)) from None
    chosen = _lanes(request)
    kept = {"queue": queue, "lane": ",".join(chosen) if len(chosen) < len(LANES) else ""}
    reader = Reader(access(request), window, kept)
    marks = marks_in(Asked(access(request), request.user.get_username(), window, chosen, queue))
    if request.GET.get("format") == "csv":
        rows = (mark_object(mark, reader) for mark in marks)
        return streamed(request, as_csv(rows, COLUMNS), "text/csv", "timeline.csv")
    context: dict[str, Any] = {
        "span": span,
        "spans": {name: title for name, (title, _) in SPANS.items()},
        "window": window,
        "ticks": ticks(window),
        "now_at": _now_at(window),
        "drawn_at": timezone.now(),
        "queue": queue,
        "lanes": lanes_of(marks, reader, chosen),
        "all_lanes": LANES,
        "chosen": chosen,
        "marks": [{**mark_object(mark, reader), "mark": mark} for mark in marks],
        "moves": moves(window, kept),
        "kept": urlencode({name: value for name, value in kept.items() if value}),
        "csv": urlencode({**_given(request), "format": "csv"}),
        "moment": moment,
        "asked_moment": request.GET.get("at", ""),
        "replayed": _replayed(request, moment),
        "may_replay": access(request).sees_everything,
    }
    return render(request, "insights/timeline.html", context)


def _given(request: HttpRequest) -> dict[str, str]:
    names = ("start", "end", "span", "queue", "lane")
    return {name: request.GET[name] for name in names if request.GET.get(name)}


def _lanes(request: HttpRequest) -> list[str]:
    """All, or those named: by several parameters, or joined by commas. Raises `UnknownWord`."""
    words: list[str] = []
    for text in request.GET.getlist("lane"):
        words += [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in LANES:
            raise UnknownWord(refusal_of("lane", word, LANES))
    if not words:
        return list(LANES)
    return [lane for lane in LANES if lane in words]


def _now_at(window: Any) -> str:
    """Where now is on the axis, in parts of a hundred; "" where it is outside."""
    place = window.place(timezone.now())
    if not 0 <= place <= 1:
        return ""
    return f"{100 * place:.2f}%"


def _moment(request: HttpRequest) -> Moment | None:
    """The session that decided at the moment which is asked about. Raises `BadWindow`."""
    text = request.GET.get("at", "").strip()
    if not text:
        return None
    return moment_at(moment_in("at", text))


def _replayed(request: HttpRequest, moment: Moment | None) -> Replay | None:
    """Run again where it is asked for: for who may see all of the cluster."""
    if moment is None or not moment.is_kept or not request.GET.get("replay"):
        return None
    if not access(request).sees_everything:
        raise Forbidden(Permission.VIEW, ROOT, "run a session again with all queues in it")
    state = ClusterState.objects.select_related("policy").get(pk=1)
    try:
        return replay_with_policy_in_force(moment.session.number, policy_in_force(state))
    except NotKept:
        return None
