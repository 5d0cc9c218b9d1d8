"""/insights/: what there is to find out about the cluster, each with a sentence."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.http.access import access, page
from scheduler.domain.access import Forbidden, Permission
from scheduler.domain.queues import ROOT


@require_safe
@page
def insights(request: HttpRequest) -> HttpResponse:
    if not access(request).may_anywhere(Permission.VIEW):
        raise Forbidden(Permission.VIEW, ROOT, "see the insights")
    return render(request, "insights/insights.html")
