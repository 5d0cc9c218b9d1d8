"""/insights/usage/: who used what, in resource-hours."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.forms.choices import UnknownWord
from dashboard.forms.usage import PARAMETERS, usage_question, usage_resources
from dashboard.http.access import access, page, require_view
from dashboard.present.amounts import resource_choices
from dashboard.present.usage import present_report, usage_as_csv
from scheduler.domain.access import Permission
from scheduler.domain.usage_spans import STEPS, BadSpan
from scheduler.selectors.usage.costs import costs_of
from scheduler.selectors.usage.report import GROUPS, UsageQuestion, usage_report

WINDOW_TITLES = {
    "24h": "Last 24 hours",
    "7d": "Last 7 days",
    "30d": "Last 30 days",
    "365d": "Last 365 days",
}


@require_safe
@page
def usage(request: HttpRequest) -> HttpResponseBase:
    resources = usage_resources()
    question = _question(request, resources)
    report = usage_report(question)
    costs = costs_of(question)
    if request.GET.get("format") == "csv":
        return usage_as_csv(request, report, costs)
    context = {**present_report(report, costs), **_context(request, question, resources)}
    return render(request, "insights/usage.html", context)


def _question(request: HttpRequest, resources: list[str]) -> UsageQuestion:
    access(request).require_anywhere(Permission.VIEW, "see the usage")
    queue = request.GET.get("queue", "").strip()
    if queue:
        require_view(request, queue)
    try:
        return usage_question(request.GET, access(request).visible, resources)
    except BadSpan as problem:
        raise UnknownWord(str(problem)) from None


def _context(request: HttpRequest, question: UsageQuestion, resources: list[str]) -> dict[str, Any]:
    given = {name: request.GET.get(name, "").strip() for name in PARAMETERS}
    span = question.span
    filters = {
        **given,
        "window": span.window,
        "step": span.step,
        "by": question.by,
        "resource": question.resource,
    }
    return {
        "filters": {**filters, "first": given["from"], "last": given["to"]},
        "span": span,
        "last_day": span.end,
        "resource": question.resource,
        "resources": resource_choices(resources),
        "windows": WINDOW_TITLES,
        "steps": STEPS,
        "groups": GROUPS,
        "query": urlencode({name: value for name, value in filters.items() if value}),
    }
