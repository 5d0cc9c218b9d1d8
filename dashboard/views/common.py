"""What several pages need: who is asking, is it a fragment for a dialog, where to go afterwards."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme

from scheduler.services.accounts.actors import Actor, Door


def actor(request: HttpRequest) -> Actor:
    return Actor(
        name=request.user.get_username(),
        door=Door.UI,
        user=request.user,
        address=request.META.get("REMOTE_ADDR", ""),
        request_id=getattr(request, "request_id", ""),
        reason=request.POST.get("reason", "").strip()[:1024],
    )


def wants_fragment(request: HttpRequest) -> bool:
    """The script asks for what goes into a dialog or a drawer; others get the whole page."""
    return request.headers.get("X-Part") == "true"


def render_page_or_part(
    request: HttpRequest,
    page: str,
    part: str,
    context: dict[str, Any],
) -> HttpResponse:
    """The template `page`, or `part` of it for a dialog."""
    if wants_fragment(request):
        return render(request, part, context)
    return render(request, page, context)


def watched_only(
    request: HttpRequest, title: str, sentence: str, back: str, kubectl: str = ""
) -> HttpResponse:
    """Instead of a form for something that is only watched: how it is changed in the cluster."""
    context = {"title": title, "sentence": sentence, "kubectl": kubectl, "back": back}
    if wants_fragment(request):
        return render(request, "parts/watched_only.html", context)
    return render(request, "watched_only.html", context, status=409)


def status_for(problems: object) -> int:
    """400 for a page that shows what the reader has to correct."""
    if problems:
        return 400
    return 200


def given_fields(request: HttpRequest) -> QueryDict:
    """What was typed: in the body of a POST, in the address otherwise."""
    if request.method == "POST":
        return request.POST
    return request.GET


def show_result(request: HttpRequest, message: str, *, changed: bool) -> None:
    """Tell on the next page what a command did: in green only where something was changed."""
    if changed:
        messages.success(request, message)
    else:
        messages.info(request, message)


def next_url(request: HttpRequest, otherwise: str) -> str:
    """Where to go afterwards: the page that the reader came from, if it is one of ours."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    if url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}):
        return wanted
    return otherwise
