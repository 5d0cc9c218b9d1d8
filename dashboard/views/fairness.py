"""/insights/fairness/: who had less than their share, and where the room went."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.forms.choices import UnknownWord
from dashboard.forms.usage import fairness_question, usage_resources
from dashboard.http.access import access, page, require_view, visibility_of
from dashboard.present.amounts import resource_choices
from dashboard.present.fairness import fairness_as_csv, present_fairness
from dashboard.views.usage import WINDOW_TITLES
from scheduler.domain.access import Permission
from scheduler.domain.usage_spans import STEPS, BadSpan
from scheduler.selectors.usage.fairness import fairness as fairness_of


@require_safe
@page
def fairness(request: HttpRequest) -> HttpResponseBase:
    access(request).require_anywhere(Permission.VIEW, "see the fairness")
    resources = usage_resources()
    queue = request.GET.get("queue", "").strip()
    if queue:
        require_view(request, queue)
    try:
        question = fairness_question(request.GET, access(request).visible, resources)
    except BadSpan as problem:
        raise UnknownWord(str(problem)) from None
    found = fairness_of(question)
    if request.GET.get("format") == "csv":
        return fairness_as_csv(request, found)
    first, last = request.GET.get("from", ""), request.GET.get("to", "")
    span = question.span
    filters = {
        "window": span.window,
        "from": first,
        "to": last,
        "step": span.step,
        "resource": question.resource,
        "queue": queue,
    }
    context = {
        **present_fairness(found, visibility_of(request)),
        "filters": {**filters, "first": first, "last": last},
        "span": span,
        "resource": question.resource,
        "resources": resource_choices(resources),
        "windows": WINDOW_TITLES,
        "steps": STEPS,
        "query": urlencode({name: value for name, value in filters.items() if value}),
    }
    return render(request, "insights/fairness.html", context)
