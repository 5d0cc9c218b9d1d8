"""/queues/-/compare/?q=a&q=b: up to four queues side by side."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.http.access import access, page
from dashboard.present.amounts import resource_choices, short_name
from dashboard.present.queue_comparison import (
    MOST,
    compared_queues,
    compared_resources,
    comparison_chart,
    comparison_table,
)
from dashboard.present.queue_page import chosen_resource
from dashboard.present.queues import page_resources, present_queues
from dashboard.views.common import status_for
from scheduler.selectors.queues.listing import queue_rows
from scheduler.selectors.records.history import SPANS, queue_history

Context = dict[str, Any]


@require_safe
@page
def compare(request: HttpRequest) -> HttpResponse:
    ticked = request.GET.getlist("queue")
    if ticked:  # from the boxes of the page of queues
        query = urlencode({"q": ticked}, doseq=True)
        return HttpResponseRedirect(f"{reverse('queue-compare')}?{query}")
    board = queue_rows()
    visible = board.visible_to(access(request).visible)
    known = [row.name for row in visible.rows]
    wanted = list(dict.fromkeys(name for name in request.GET.getlist("q") if name))
    problems = _problems(wanted, known)
    names = [name for name in wanted if name in known][:MOST]
    resources = page_resources(board)
    context: Context = {
        "names": names,
        "fields": [*names, *[""] * (MOST - len(names))],
        "known": known,
        "problems": problems,
        "period": _period(request),
        "periods": list(SPANS),
        "resources": resource_choices(resources),
        "resource": chosen_resource(request.GET.get("resource", ""), resources),
    }
    if names:
        rows = present_queues(board)
        compared = compared_queues(board, rows, names)
        context |= {
            "compared": compared,
            "lines": compared_resources([entry["row"] for entry in compared], resources),
            **_history(context, resources),
        }
    return render(request, "queues/compare.html", context, status=status_for(problems))


def _problems(wanted: list[str], known: list[str]) -> list[str]:
    problems = []
    for name in wanted:
        if name not in known:
            problems.append(f"There is no queue “{name[:80]}” that you may see.")
    if len(wanted) > MOST:
        problems.append(f"{MOST} queues are the most; the first {MOST} are shown.")
    return problems[:MOST]


def _period(request: HttpRequest) -> str:
    period = request.GET.get("period", "")
    if period in SPANS:
        return period
    return next(iter(SPANS))


def _history(context: Context, resources: list[str]) -> Context:
    resource = context["resource"] or next(iter(resources), "")
    histories = [queue_history(name, context["period"]) for name in context["names"]]
    return {
        "chart_resource": resource,
        "chart_title": short_name(resource),
        "chart": comparison_chart(histories, resource),
        "points": comparison_table(histories, resource),
    }
