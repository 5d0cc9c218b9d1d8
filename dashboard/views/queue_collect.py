"""Add to change set, beside Save in the form of a queue."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.forms.typed import whole_number
from dashboard.views.changes import page_of as change_set_page
from dashboard.views.changes import visible_row
from dashboard.views.common import actor, wants_fragment
from dashboard.views.queue_typed import opened_manifest
from scheduler.admission.reading.queue import read_queue
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.change_sets import QUEUE
from scheduler.domain.jobs.commands import NotPossible
from scheduler.models import ChangeSet
from scheduler.services.change_sets import drafts


def collected_response(request: HttpRequest, name: str, manifest: object) -> HttpResponse:
    """Kept for later: the rules judge it together with the rest of the change set."""
    change_set = collect_queue(request, name, manifest, opened_manifest(request))
    messages.success(request, _added_words(change_set))
    for notice in read_queue(manifest).notices:
        if notice.code == "unknown_field":
            messages.warning(request, f"{notice.message}.")
    if not wants_fragment(request):
        return HttpResponseRedirect(change_set_page(change_set))
    answer = render(request, "parts/messages.html")
    answer["X-Outcome"] = "saved"
    return answer


def _added_words(change_set: ChangeSet) -> SafeString:
    """With a link: the drawer stays on the page of queues."""
    return format_html(
        'Added to “<a href="{}">{}</a>”. Nothing is applied yet.',
        change_set_page(change_set),
        change_set.name,
    )


def collect_queue(
    request: HttpRequest, name: str, manifest: object, opened: dict[str, Any] | None
) -> ChangeSet:
    """The queue form's "Add to change set". Raises `Rejected`."""
    by = actor(request)
    number = whole_number(request.POST.get("change_set", ""))
    if number is None:
        title = f"Changes by {by.name}, {timezone.now():%d %B %H:%M}"
        return drafts.begin_with_queue(title, name, manifest, by=by, opened=opened)
    try:
        return drafts.add_queue(number, name, manifest, by=by, opened=opened)
    except (NotPossible, ChangeSet.DoesNotExist) as refusal:
        message = f"{str(refusal).rstrip('.')}."
        fix = "choose another change set"
        raise Rejected(
            [Violation("no_draft", "", "change_set", message, fix)], by_state=True
        ) from None


def manifest_in_set(request: HttpRequest, name: str) -> Any:
    """The queue as the change set in the address wants it; None without one."""
    number = whole_number(request.GET.get("change_set", ""))
    if number is None:
        return None
    row = visible_row(request, number)
    if row is None:
        return None
    for item in row.changes:
        if item.key == (QUEUE, name):
            return item.wanted
    return None
