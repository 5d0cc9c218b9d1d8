"""/sessions/: how long sessions take and what each decided; pausing and resuming them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.cli.sessions.words import COUNTS, REST_OF_THINKING
from dashboard.forms.choices import checked_word
from dashboard.forms.typed import whole_number
from dashboard.http.access import access, page, visibility_of
from dashboard.present.bars import BAR_WIDTH, Span, bar_html, rectangles
from dashboard.present.terminal import copies
from dashboard.views.common import actor, render_page_or_part, show_result
from scheduler.domain.access import Forbidden, Permission
from scheduler.domain.plans import counted
from scheduler.domain.queues import ROOT
from scheduler.models import ClusterState, Eviction, SchedulingSession
from scheduler.selectors.records.feeds import (
    decisions_of,
    durations,
    kept_sessions,
    page_by_number,
    session_numbered,
    sessions_for,
    victims_of,
)
from scheduler.selectors.sessions.kept import nearest_kept
from scheduler.services.sessions.replay import NotKept, keep_next_sessions, scenario_text
from scheduler.services.sessions.requests import pause_scheduling, resume_scheduling, set_period

Context = dict[str, Any]
ONLY = {"": "All", "decided": "Decided something", "failed": "Failed"}
PARTS = {"claim": "Claim", "read": "Read", "think": "Think", "write": "Write"}
VERBS = {"pause": pause_scheduling, "resume": resume_scheduling}


def _require_sight(request: HttpRequest) -> None:
    access(request).require_anywhere(Permission.VIEW, "see the sessions")


@require_safe
@page
def sessions(request: HttpRequest) -> HttpResponse:
    _require_sight(request)
    only = checked_word(request.GET, "only", [key for key in ONLY if key])
    before = request.GET.get("before", "")
    feed = page_by_number(sessions_for(only), whole_number(before), "number")
    kept = kept_sessions([session.number for session in feed.rows])
    rows = []
    for session in feed.rows:
        rows.append(_row(session, session.number in kept))
    context = {
        "state": ClusterState.objects.get(pk=1),
        "rows": rows,
        "only": only,
        "choices": ONLY,
        "older": _query_of_older(only, feed.older),
        "is_first": not before,
        "may_operate": access(request).may(Permission.OPERATE, ROOT),
        "may_save": access(request).sees_everything,
        "is_cluster_admin": access(request).is_cluster_admin,
    }
    return render(request, "sessions/list.html", context)


def _query_of_older(only: str, older: object) -> str:
    """The address of the next page; "" where this is the last one."""
    if not older:
        return ""
    query = {"before": older}
    if only:
        query = {"only": only, "before": older}
    return urlencode(query)


def _milliseconds(session: SchedulingSession) -> dict[str, float]:
    """By part; the actions are parts of a part."""
    milliseconds: dict[str, float] = {}
    for part, lasted in session.durations.items():
        if part != "actions":
            milliseconds[part] = lasted
    return milliseconds


def _row(session: SchedulingSession, is_kept: bool) -> Context:
    parts = {}
    for key in PARTS:
        parts[key] = session.durations.get(key, 0.0)
    whole = sum(_milliseconds(session).values())
    return {
        "row": session,
        "whole": round(whole, 1),
        "bar": _parts_bar(parts, whole, label=_parts_words(parts)),
        "binds": session.counts.get("binds", 0),
        "evictions": session.counts.get("evictions", 0),
        "lost": session.counts.get("lost", 0),
        "kept": is_kept,
    }


def _all_parts(session: SchedulingSession) -> list[Context]:
    """In the order in which they are drawn; then what each action took, the longest first."""
    lines: list[Context] = []
    for shade, (key, title) in enumerate(PARTS.items()):
        lasted = session.durations.get(key, 0.0)
        lines.append({"title": title, "shade": shade, "ms": lasted})
        if key == "think":
            lines += _parts_of_thinking(lasted, session.durations.get("actions", {}))
    return lines


def _parts_of_thinking(whole: float, actions: Mapping[str, float]) -> list[Context]:
    lines: list[Context] = []
    for name in sorted(actions, key=lambda name: -actions[name]):
        lines.append({"title": name, "ms": actions[name], "within": True})
    rest = max(whole - sum(actions.values()), 0.0)
    lines.append({"title": REST_OF_THINKING, "ms": rest, "within": True})
    return lines


def _parts_words(parts: dict[str, float]) -> str:
    return ", ".join(f"{PARTS[key]} {round(ms, 1)} ms" for key, ms in parts.items() if ms)


def _parts_bar(parts: dict[str, float], whole: float, *, label: str = "") -> SafeString:
    """Each part as wide as its share of the session."""
    spans = []
    start = 0
    for shade, (key, ms) in enumerate(parts.items()):
        width = 0
        if whole:
            width = int(ms * BAR_WIDTH / whole)
        spans.append(Span(f"part-{shade}", start, width, f"{PARTS[key]} {ms:.1f} ms"))
        start += width
    return bar_html(rectangles(spans), label=label, style="parts-bar")


@require_safe
@page
def duration_data(request: HttpRequest) -> HttpResponse:
    """For the chart: times, and a column of milliseconds for each part."""
    _require_sight(request)
    rows = durations()
    data: Context = {
        "times": [at.timestamp() for at, _, _ in rows],
        "numbers": [number for _, number, _ in rows],
    }
    data["parts"] = []
    for key, title in PARTS.items():
        milliseconds = []
        for _, _, row in rows:
            milliseconds.append(row.get(key, 0))
        data["parts"].append({"key": key, "title": title, "ms": milliseconds})
    return JsonResponse(data)


@require_safe
@page
def session(request: HttpRequest, number: int) -> HttpResponse:
    _require_sight(request)
    found = session_numbered(number)
    if found is None:
        words = (
            f"There is no session {number}. "
            "Old ones are tidied away; the newest are on the sessions page."
        )
        return render(request, "404.html", {"missing": words}, status=404)
    seen = access(request).visible
    counts = {}
    for key, title in COUNTS.items():
        if found.counts.get(key):
            counts[title] = found.counts[key]
    victims = []
    for row in victims_of(found, seen):
        victims.append(_victim(request, row))
    is_kept = number in kept_sessions([number])
    context = {
        "session": found,
        "message": visibility_of(request).cluster_words(found.message),
        **_row(found, is_kept),
        "nearest": [] if is_kept else nearest_kept(number),
        "all_parts": _all_parts(found),
        "counts": counts,
        "decisions": decisions_of(found, seen),
        "victims": victims,
        "may_save": access(request).sees_everything,
    }
    return render(request, "sessions/session.html", context)


def _victim(request: HttpRequest, eviction: Eviction) -> Context:
    """For whom and at which level only as far as the reader may see."""
    mine = visibility_of(request)
    return {
        "row": eviction,
        "seen": mine.visible_eviction(eviction),
        "whom": mine.visible_job(eviction.beneficiary, eviction.beneficiary_queue),
    }


@require_safe
@page
def scenario(request: HttpRequest, number: int) -> HttpResponse:
    """The whole cluster as the session saw it: for who may see all of it."""
    if not access(request).sees_everything:
        raise Forbidden(Permission.VIEW, ROOT, "save a session with all queues in it")
    try:
        text = scenario_text(number)
    except NotKept as problem:
        return render(request, "404.html", {"missing": str(problem)}, status=404)
    headers = {"Content-Disposition": f'attachment; filename="session-{number}.json"'}
    return HttpResponse(text, content_type="application/json", headers=headers)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def command(request: HttpRequest, verb: str) -> HttpResponse:
    access(request).require_cluster(Permission.OPERATE, f"{verb} scheduling")
    if request.method == "POST":
        changed = VERBS[verb](by=actor(request), reason=request.POST.get("reason", "")[:1024])
        if changed:
            words = f"Scheduling is {verb}d."
        else:
            words = f"Scheduling was {verb}d already."
        show_result(request, words, changed=changed)
        return redirect("sessions")
    in_a_terminal = {"pause": "pause", "resume": "unpause"}
    context = {
        "verb": verb,
        "state": ClusterState.objects.get(pk=1),
        "copies": copies(request, [in_a_terminal[verb]], f"cluster/{verb}/", {"reason": ""}),
    }
    return render_page_or_part(request, "sessions/command.html", "sessions/_command.html", context)


@require_POST
@page
def settings(request: HttpRequest) -> HttpResponse:
    """The period of sessions, or that the next ones are kept."""
    try:
        if "keep" in request.POST:
            keep_next_sessions(int(request.POST["keep"]), by=actor(request))
            messages.success(
                request, f"The next {counted(int(request.POST['keep']), 'session')} will be kept."
            )
        else:
            set_period(float(request.POST.get("period", "")), by=actor(request))
            messages.success(
                request, f"Sessions run every {float(request.POST['period']):g} s from now on."
            )
    except ValueError as problem:
        words = str(problem)
        if "give" not in words:
            words = "Give a number of seconds such as 1 or 2.5."
        messages.error(request, words)
    return redirect("sessions")
