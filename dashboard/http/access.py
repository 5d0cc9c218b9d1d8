"""What the signed-in reader may see and do, worked out once a request.

The rules are in the domain, and the services enforce them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from dashboard.forms.choices import UnknownWord
from dashboard.http.visibility import Visibility
from dashboard.live.freshness import is_as_new_as, page_mark
from scheduler.domain.access import Access, Forbidden, OutOfSight, Permission
from scheduler.domain.queues import ROOT
from scheduler.models import AuditEntry, PodGroup
from scheduler.selectors.accounts.access import access_of, queue_parents, whom_to_ask
from scheduler.services.cluster.mirrored import may_be_changed_here

LONGEST_PARAMETER = 12_000
"""Characters of one value in an address. SQLite takes patterns of at most 50,000 bytes."""

AS_OF_HEADER = "X-As-Of"
"""The mark of the page that a script has: `dashboard/live/freshness.py`."""

View = Callable[..., HttpResponseBase]


def access(request: HttpRequest) -> Access:
    if not hasattr(request, "_access"):
        request._access = access_of(request.user)  # type: ignore[attr-defined]
    return request._access  # type: ignore[attr-defined, no-any-return]


def may_operate(request: HttpRequest, queue: str) -> bool:
    return may_be_changed_here("Queue") and access(request).may(Permission.OPERATE, queue)


def may_edit(request: HttpRequest, queue: str) -> bool:
    return may_be_changed_here("Queue") and has_edit_role(request, queue)


def has_edit_role(request: HttpRequest, queue: str) -> bool:
    """The parent's admin changes quotas and place, the queue's admin the rest: both may open it."""
    mine = access(request)
    parent = queue_parents().get(queue) or ROOT
    return mine.may(Permission.ADMINISTER, parent) or mine.may(Permission.ADMINISTER, queue)


def require_edit(request: HttpRequest, queue: str, doing: str) -> None:
    """Raises `OutOfSight` and `Forbidden`."""
    require_view(request, queue)
    if not has_edit_role(request, queue):
        raise access(request).refusal(Permission.ADMINISTER, queue, doing)


def may_create_below(request: HttpRequest, queue: str) -> bool:
    return may_be_changed_here("Queue") and access(request).may(Permission.ADMINISTER, queue)


def may_submit_to(request: HttpRequest, queue: str) -> bool:
    return may_be_changed_here("Job") and access(request).may(Permission.SUBMIT, queue)


def may_submit_anywhere(request: HttpRequest) -> bool:
    return may_be_changed_here("Job") and access(request).may_anywhere(Permission.SUBMIT)


def page(view: View) -> View:
    """A page for signed-in users. What they may not do or see becomes a page that says so."""

    @login_required
    @wraps(view)
    def guarded(request: HttpRequest, *arguments: Any, **keywords: Any) -> HttpResponseBase:
        refused = _refuse_early(request)
        if refused is not None:
            return refused
        if _is_known(request):
            return HttpResponse(status=204)
        try:
            return view(request, *arguments, **keywords)
        except Forbidden as refusal:
            context = {"missing_permission": str(refusal), "whom": whom_to_ask(refusal.queue)}
            return render(request, "403.html", context, status=403)
        except OutOfSight as hidden:
            return no_such_queue(request, hidden.queue)
        except UnknownWord as problem:
            return render(request, "400.html", {"problem": str(problem)}, status=400)

    return guarded


def _is_known(request: HttpRequest) -> bool:
    """Whether the page that the reader has is as new as one made now. Marks the one to be made."""
    known = request.headers.get(AS_OF_HEADER)
    if known and is_as_new_as(known):
        return True
    if "text/html" in request.headers.get("Accept", ""):
        request.as_of = page_mark()  # type: ignore[attr-defined]
    return False


def _refuse_early(request: HttpRequest) -> HttpResponse | None:
    """The answer to a request that no view has to look at."""
    if settings.READ_ONLY and request.method == "POST":
        answer = render(request, "503.html", status=503)
        answer["Retry-After"] = "60"
        return answer
    if "\x00" in request.path:
        return render(request, "404.html", {"missing": "Nothing has a name like that."}, status=404)
    problem = _problem_of_fields(request)
    if problem:
        return render(request, "400.html", {"problem": problem}, status=400)
    return None


def _problem_of_fields(request: HttpRequest) -> str:
    field = _unusable_field(request)
    if field is not None:
        return (
            f"The field “{field}” has a character that cannot be stored. "
            "Nothing was changed. Take it out and try again."
        )
    for _name, values in request.GET.lists():
        if max(map(len, values), default=0) > LONGEST_PARAMETER:
            return (
                f"The text to look for is longer than {LONGEST_PARAMETER:,} characters. Shorten it."
            )
    return ""


def _unusable_field(request: HttpRequest) -> str | None:
    """The first that holds a NUL character, which PostgreSQL takes in no text."""
    for fields in (request.GET, request.POST):
        for name, values in fields.lists():
            if any("\x00" in text for text in (name, *values)):
                return name.replace("\x00", "?")
    return None


def require_view(request: HttpRequest, queue: str) -> None:
    """Raises `OutOfSight` where the reader may not know of the queue."""
    access(request).require(Permission.VIEW, queue)


def visibility_of(request: HttpRequest) -> Visibility:
    """What the reader may be told of others' work."""
    return Visibility(access(request).visible)


def no_such_queue(request: HttpRequest, name: str) -> HttpResponse:
    """Deleted, never there, or hidden from this reader: only who may read its records is told."""
    mine = access(request)
    deletion = None
    if mine.may(Permission.VIEW, name) or mine.sees_everything:
        deletion = AuditEntry.objects.filter(action="DeleteQueue", name=name).first()
    context = {
        "queue_name": name,
        "deletion": deletion,
        "may_audit": mine.may(Permission.ADMINISTER, name) or mine.is_cluster_admin,
        "has_jobs": deletion is not None and PodGroup.objects.filter(queue__name=name).exists(),
    }
    return render(request, "404.html", context, status=404)
