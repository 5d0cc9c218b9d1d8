"""/users/-/sign-on/: groups of the provider and their roles, and whether the connection works."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from dashboard.http.access import access, page
from dashboard.present.terminal import copies_of_call
from dashboard.views.common import actor
from dashboard.views.users import ROLES, administered, require_any_admin
from scheduler.admission.violations import Rejected, in_words
from scheduler.conf import conf
from scheduler.domain.access import Access, Permission
from scheduler.domain.plans import counted
from scheduler.domain.queues import ROOT
from scheduler.models import GroupMapping
from scheduler.services.accounts.sign_on import map_group, unmap_group


@require_safe
@page
def sign_on(request: HttpRequest) -> HttpResponse:
    mine = require_any_admin(request)
    checks: list[Any] = []
    if mine.is_cluster_admin and request.GET.get("check") and settings.HAS_SIGN_ON_PACKAGES:
        from dashboard.sso.connection import check_connection  # only where the extra is installed
        from dashboard.sso.provider import callback_url

        checks = check_connection(callback_url(request))
    context = {
        "sign_on": conf().sign_on,
        "mappings": _mappings_in_sight(mine),
        "queues": sorted(administered(mine)),
        "roles": ROLES.items(),
        "may_check": mine.is_cluster_admin,
        "checks": checks,
        "copies": copies_of_call(
            request,
            "groupmappings/",
            {"providerGroup": "GROUP", "role": next(iter(ROLES)), "queue": ROOT},
        ),
    }
    return render(request, "accounts/sign_on.html", context)


def _mappings_in_sight(mine: Access) -> list[dict[str, Any]]:
    found = []
    rows = GroupMapping.objects.select_related("queue").annotate(held=Count("grants"))
    for row in rows.filter(queue__deleted_at=None).order_by("provider_group", "queue__name"):
        if mine.may(Permission.VIEW, row.queue.name):
            may_change = mine.may(Permission.ADMINISTER, row.queue.name)
            found.append({"row": row, "may_change": may_change})
    return found


@require_POST
@page
def mapping(request: HttpRequest) -> HttpResponse:
    group = request.POST.get("provider_group", "").strip()
    queue = request.POST.get("queue", ROOT)
    try:
        made = map_group(group, role=request.POST.get("role", ""), queue=queue, by=actor(request))
        messages.success(
            request,
            f"The group {group} is {made.role} on {queue} and below, from the next sign-on on.",
        )
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
    return redirect("sign-on")


@require_POST
@page
def forget_mapping(request: HttpRequest, number: int) -> HttpResponse:
    found = GroupMapping.objects.select_related("queue").filter(pk=number).first()
    if found is None or not access(request).may(Permission.VIEW, found.queue.name):
        messages.info(request, "That mapping was deleted already.")
    else:
        ended = unmap_group(found, by=actor(request))
        messages.success(
            request,
            f"The group {found.provider_group} is no longer {found.role} on {found.queue.name}. "
            f"{counted(ended, 'role')} ended.",
        )
    return redirect("sign-on")
