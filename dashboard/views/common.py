"""What several pages need: who is asking, is it a fragment for a dialog, where to go afterwards."""

from __future__ import annotations

from django.http import HttpRequest
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


def next_url(request: HttpRequest, otherwise: str) -> str:
    """Where to go afterwards: the page that the reader came from, if it is one of ours."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    if url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}):
        return wanted
    return otherwise
