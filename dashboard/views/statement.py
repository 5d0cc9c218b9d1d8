"""/insights/usage/statement/ and /insights/usage/prices/: what usage costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.forms.choices import UnknownWord
from dashboard.forms.usage import usage_resources
from dashboard.http.access import access, page, require_view
from dashboard.present.amounts import short_name
from dashboard.present.statement import present_statement, statement_as_csv, statement_of
from dashboard.present.usage import priced_unit
from dashboard.views.common import actor
from scheduler.admission.violations import Rejected, in_words
from scheduler.domain.access import Permission
from scheduler.domain.queues import ROOT
from scheduler.domain.usage_spans import BadSpan
from scheduler.models import PriceList
from scheduler.services.usage.prices import delete_prices, set_prices
from scheduler.services.usage.statements import owners_of_queue, send_statement


@require_safe
@page
def statement(request: HttpRequest) -> HttpResponseBase:
    """?queue=NAME&month=2026-10"""
    _require_sight(request)
    queue = request.GET.get("queue", "").strip()[:253]
    month = request.GET.get("month", "").strip() or timezone.now().strftime("%Y-%m")
    context: dict[str, Any] = {"queue": queue, "month": month}
    if queue:
        require_view(request, queue)
        try:
            found = statement_of(queue, month, access(request).visible)
        except BadSpan as problem:
            raise UnknownWord(str(problem)) from None
        if request.GET.get("format") == "csv":
            return statement_as_csv(request, found)
        context |= present_statement(found)
        context["may_send"] = access(request).may(Permission.ADMINISTER, queue)
        context["owners"] = owners_of_queue(queue)
        context["is_going_on"] = found.span.end > timezone.now()
    return render(request, "insights/statement.html", context)


@require_POST
@page
def statement_send(request: HttpRequest) -> HttpResponse:
    queue = request.POST.get("queue", "").strip()[:253]
    month = request.POST.get("month", "").strip()
    try:
        sent = send_statement(queue, month, by=actor(request))
    except BadSpan as problem:
        raise UnknownWord(str(problem)) from None
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
        return redirect("statement")
    messages.success(request, f"The statement was sent to {', '.join(sent)}.")
    query = urlencode({"queue": queue, "month": month})
    return redirect(f"{reverse('statement')}?{query}")


@require_safe
@page
def prices(request: HttpRequest) -> HttpResponse:
    _require_sight(request)
    return render(request, "insights/prices.html", _prices_context(request, {}))


def _prices_context(request: HttpRequest, typed: Mapping[str, str]) -> dict[str, Any]:
    """The lists, and the form with what was typed in it or else with the newest prices."""
    lists = list(PriceList.objects.order_by("-valid_from"))
    newest = dict(lists[0].prices) if lists else {}
    resources = [*usage_resources()]
    resources += [name for name in newest if name not in resources]
    fields = []
    for name in resources:
        fields.append(
            {
                "name": name,
                "title": short_name(name),
                "unit": priced_unit(name),
                "price": typed.get(f"price:{name}", newest.get(name, "")),
            }
        )
    return {
        "lists": lists,
        "fields": fields,
        "currency": typed.get("currency", lists[0].currency if lists else ""),
        "day": typed.get("valid_from", timezone.now().date().isoformat()),
        "may_change": access(request).may(Permission.ADMINISTER, ROOT),
    }


@require_http_methods(["GET", "HEAD", "POST"])
@page
def prices_set(request: HttpRequest) -> HttpResponse:
    """A refusal is shown at this address. To read it anew leads to the page of prices."""
    if request.method != "POST":
        return redirect("prices")
    given = {}
    for name, text in request.POST.items():
        resource = name.removeprefix("price:")
        if resource != name and str(text).strip():
            given[resource] = str(text)
    day = request.POST.get("valid_from", "")
    try:
        set_prices(day, request.POST.get("currency", ""), given, by=actor(request))
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
        context = _prices_context(request, request.POST.dict())
        return render(request, "insights/prices.html", context, status=400)
    messages.success(request, f"These prices count from {day} on.")
    return redirect("prices")


@require_POST
@page
def prices_delete(request: HttpRequest) -> HttpResponse:
    day = request.POST.get("valid_from", "")
    try:
        delete_prices(day, by=actor(request))
        messages.success(request, f"The prices from {day} on were deleted.")
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
    return redirect("prices")


def _require_sight(request: HttpRequest) -> None:
    access(request).require_anywhere(Permission.VIEW, "see the usage")
