"""/insights/: what there is to find out about the cluster, each with a sentence."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.http.access import access, page
from scheduler.domain.access import Permission


@require_safe
@page
def insights(request: HttpRequest) -> HttpResponse:
    access(request).require_anywhere(Permission.VIEW, "see the insights")
    return render(request, "insights/insights.html")
