"""/account/notices/: the inbox, and what one is told of, where, and what came of sending it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard.forms.choices import problems_with
from dashboard.forms.typed import whole_number
from dashboard.http.access import access, page
from dashboard.present.terminal import copies_of_call
from dashboard.views.common import actor, status_for
from scheduler.admission.violations import Rejected
from scheduler.domain.notices import JOB_KINDS, KIND_WORDS, NoticeKind
from scheduler.models import NoticeChannel
from scheduler.selectors.accounts.preferences import preference_of
from scheduler.selectors.notices.inbox import (
    channels_of,
    deliveries_to,
    readable_notices,
    rules_of,
)
from scheduler.selectors.records.feeds import page_by_number
from scheduler.services.accounts.preferences import set_preferences
from scheduler.services.notices import choices
from scheduler.services.notices.chat import has_chat
from scheduler.services.notices.delivery import has_email

Context = dict[str, Any]
_SHOWN = ("", "unread")
_MOST_SENT = 20


@require_safe
@page
def inbox(request: HttpRequest) -> HttpResponse:
    show = request.GET.get("show", "")
    problems = problems_with({"show": show}, {"show": _SHOWN})
    found = readable_notices(request.user, access(request)).select_related("queue")
    if show == "unread":
        found = found.filter(read_at=None)
    before = request.GET.get("before", "")
    feed = page_by_number(found, whole_number(before))
    older = urlencode({"show": show, "before": feed.older}) if feed.older else ""
    context = {
        "entries": [{"row": row, "words": KIND_WORDS[NoticeKind(row.kind)]} for row in feed.rows],
        "show": show,
        "problems": problems,
        "older": older,
        "is_first": not before,
        "has_rules": rules_of(request.user).exists(),
    }
    return render(request, "notices/inbox.html", context, status=status_for(problems))


@require_POST
@page
def read(request: HttpRequest) -> HttpResponse:
    """One notice, or all of them."""
    number = whole_number(request.POST.get("notice", ""))
    changed = choices.mark_read(request.user, None if number is None else [number])
    if number is None:
        messages.success(request, f"{changed} notices are marked as read.")
    return redirect("notices")


@require_safe
@page
def settings(request: HttpRequest) -> HttpResponse:
    return _settings(request)


def _settings(
    request: HttpRequest,
    *,
    problems: tuple[str, Rejected] | None = None,
    with_secret: NoticeChannel | None = None,
) -> HttpResponse:
    where, refusal = problems or ("", None)
    rules = []
    for rule in rules_of(request.user):
        words = KIND_WORDS[NoticeKind(rule.kind)]
        rules.append({"row": rule, "words": words, "about": choices.about(rule)})
    channels = []
    for channel in channels_of(request.user):
        channels.append({"row": channel, "target": choices.shown(channel)})
    context: Context = {
        "rules": rules,
        "channels": channels,
        "tells_calendar": preference_of(request.user).calendar_notices,
        "kinds": [(kind, words, kind in JOB_KINDS) for kind, words in KIND_WORDS.items()],
        "channel_kinds": _offered_kinds(),
        "has_email": has_email(),
        "has_chat": has_chat(),
        "sent": deliveries_to(request.user)[:_MOST_SENT],
        "with_secret": with_secret,
        "given": request.POST,
        "where": where,
        "problems": [violation.message for violation in refusal.violations] if refusal else [],
        "copies": copies_of_call(request, "noticerules/", {"kind": "JobFailed"}),
    }
    return render(request, "notices/settings.html", context, status=400 if refusal else 200)


def _offered_kinds() -> list[tuple[str, str]]:
    offered = [(NoticeChannel.WEBHOOK, "Webhook")]
    if has_email():
        offered.insert(0, (NoticeChannel.EMAIL, "E-mail"))
    if has_chat():
        offered.append((NoticeChannel.CHAT, "Chat"))
    return offered


@require_POST
@page
def new_rule(request: HttpRequest) -> HttpResponse:
    try:
        rule = choices.save_rule(
            request.user,
            request.POST.get("kind", ""),
            queue=request.POST.get("queue", "").strip(),
            channels=request.POST.getlist("channel"),
            times_usual=_typed_number(request.POST.get("times", "") or "2"),
            by=actor(request),
        )
    except Rejected as refusal:
        return _settings(request, problems=("rules", refusal))
    words = KIND_WORDS[NoticeKind(rule.kind)]
    messages.success(request, f"You are told: {words}, {choices.about(rule)}.")
    return redirect("notice-settings")


@require_POST
@page
def calendar(request: HttpRequest) -> HttpResponse:
    """Whether planned changes come to the inbox without a rule."""
    wanted = request.POST.get("wanted") == "on"
    set_preferences(request.user, calendar_notices=wanted, by=actor(request))
    if wanted:
        messages.success(request, "Planned changes of yours come to your inbox.")
    else:
        messages.success(request, "Planned changes come to your inbox only if a rule asks for it.")
    return redirect("notice-settings")


def _typed_number(text: str) -> float:
    """What is no number is refused by the service, with a sentence."""
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return 0.0


@require_POST
@page
def forget_rule(request: HttpRequest, number: int) -> HttpResponse:
    rule = rules_of(request.user).filter(pk=number).first()
    if rule is None:
        messages.error(request, "There is no such rule of yours.")
    else:
        choices.delete_rule(rule, by=actor(request))
        messages.success(request, "The rule is deleted.")
    return redirect("notice-settings")


@require_POST
@never_cache
@page
def new_channel(request: HttpRequest) -> HttpResponse:
    """The secret of a webhook is in this one answer and nowhere else."""
    try:
        channel = choices.add_channel(
            request.user,
            request.POST.get("kind", ""),
            request.POST.get("name", ""),
            request.POST.get("target", ""),
            by=actor(request),
        )
    except Rejected as refusal:
        return _settings(request, problems=("channels", refusal))
    if channel.secret:
        return _settings(request, with_secret=channel)
    messages.success(request, f"The channel {channel.name} is added. Choose it in a rule.")
    return redirect("notice-settings")


@require_POST
@never_cache
@page
def command_channel(request: HttpRequest, number: str, verb: str) -> HttpResponse:
    channel = channels_of(request.user).filter(pk=int(number)).first()
    if channel is None:
        messages.error(request, "There is no such channel of yours.")
        return redirect("notice-settings")
    try:
        return _carry_out(request, channel, verb)
    except Rejected as refusal:
        return _settings(request, problems=("channels", refusal))


def _carry_out(request: HttpRequest, channel: NoticeChannel, verb: str) -> HttpResponse:
    by = actor(request)
    if verb == "rotate":
        return _settings(request, with_secret=choices.rotate_secret(channel, by=by))
    if verb == "delete":
        choices.delete_channel(channel, by=by)
        messages.success(request, f"The channel {channel.name} is deleted.")
    else:
        result = choices.send_test(channel, by=by)
        if result.worked:
            messages.success(request, f"The test reached {channel.name}: {result.message}")
        else:
            messages.error(request, f"The test did not reach {channel.name}: {result.message}")
    return redirect("notice-settings")
