"""The calendar of planned changes, and what can be done with a plan and its turns."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from dashboard.forms.typed import whole_number
from dashboard.http.access import access, page
from dashboard.present.calendar import STATE_WORDS, month_of, span_of
from dashboard.present.differences import differences
from dashboard.present.plan_words import message_for_reader, problems_for_reader
from dashboard.present.terminal import copies
from dashboard.views.common import actor, status_for
from scheduler.admission.violations import Rejected
from scheduler.domain.access import Permission
from scheduler.domain.calendar import IN_FORCE
from scheduler.domain.change_sets import Crossed
from scheduler.domain.jobs.commands import NotPossible
from scheduler.models import ChangePlan, ChangeSet, Occurrence
from scheduler.models.clock import database_now
from scheduler.selectors.accounts.hidden_names import HiddenNames
from scheduler.selectors.accounts.preferences import preference_of
from scheduler.selectors.change_sets.calendar import (
    conflicts_seen,
    entries_between,
    visible_occurrences,
    visible_plans,
)
from scheduler.selectors.change_sets.listing import visible_sets
from scheduler.services.accounts.actors import Actor
from scheduler.services.change_sets import conflicts
from scheduler.services.change_sets.plans import (
    InTheWay,
    Wish,
    cancel_plan,
    may_decide,
    plan_change_set,
)

Context = dict[str, Any]
_MOST_TURNS = 12
_MOST_SETS = 50


def time_zones() -> list[str]:
    """Those that are named after places."""
    named = [zone for zone in zoneinfo.available_timezones() if "/" in zone]
    zones: list[str] = []
    for zone in named:
        if not zone.startswith(("Etc/", "SystemV/")):
            zones.append(zone)
    return sorted(zones)


def _zone_of(request: HttpRequest) -> str:
    return preference_of(request.user).time_zone or "UTC"


# The calendar


@require_http_methods(["GET", "HEAD", "POST"])
@page
def calendar(request: HttpRequest) -> HttpResponse:
    """A month. A POST plans one of the reader's drafts."""
    if request.method != "POST":
        return _render_calendar(request)
    number = whole_number(request.POST.get("change_set", ""))
    try:
        if number is None:
            raise NotPossible("Choose a change set")
        plan = plan_change_set(number, typed_wish(request), by=actor(request))
    except Rejected as refusal:
        return _render_calendar(request, 400, **why_not_planned(refusal))
    except ChangeSet.DoesNotExist as refusal:
        return _render_calendar(request, 404, problem=str(refusal))
    except NotPossible as refusal:
        return _render_calendar(request, 409, problem=str(refusal))
    messages.success(request, _planned_words(plan))
    month = plan.begins[:7]
    return HttpResponseRedirect(f"{reverse('calendar')}?month={month}")


def why_not_planned(refusal: Rejected) -> Context:
    """With the plans that are in the way, to be opened."""
    others: Iterable[ChangePlan] = ()
    if isinstance(refusal, InTheWay):
        found = ChangePlan.objects.filter(pk__in=refusal.plans).select_related("change_set")
        others = found.order_by("pk")
    return {
        "violations": refusal.violations,
        "not_done": "It was not planned.",
        "in_the_way": others,
    }


def _planned_words(plan: ChangePlan) -> str:
    return f"Planned “{plan.change_set.name}”: {plan.timetable.in_words}."


def _render_calendar(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    zone = zoneinfo.ZoneInfo(_zone_of(request))
    now = database_now().astimezone(zone)
    first, wrong = _month_asked_for(request, now.date())
    start, end = span_of(first, zone)
    reader = request.user.get_username()
    plans = visible_plans(access(request), reader).prefetch_related("occurrences")
    context: Context = {
        "month": month_of(entries_between(plans, start, end), first, now.date(), zone),
        "weekdays": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
        "zone": str(zone),
        "problems": wrong,
        "waiting": conflicts_seen(access(request), reader),
        "troubled": _troubled(request, plans.filter(state="Active")),
        "drafts": _plannable(request),
        "form": plan_form(request),
        **more,
    }
    return render(
        request, "change_sets/calendar.html", context, status=max(status, status_for(wrong))
    )


def _troubled(request: HttpRequest, plans: Iterable[ChangePlan]) -> list[Context]:
    hidden = _hidden_names(request)
    found = []
    for plan in plans:
        if problems := problems_for_reader(plan, hidden):
            found.append({"plan": plan, "message": problems[0]["message"]})
    return found


def _hidden_names(request: HttpRequest) -> HiddenNames:
    return HiddenNames(access(request), request.user.get_username())


def _month_asked_for(request: HttpRequest, today: date) -> tuple[date, list[str]]:
    typed = request.GET.get("month", "")
    if not typed:
        return today.replace(day=1), []
    try:
        found = datetime.strptime(typed, "%Y-%m").date()  # noqa: DTZ007 - a month has no zone
    except ValueError:
        found = None
    if found is None or not 2000 <= found.year <= 2999:
        return today.replace(day=1), [f"“{typed[:20]}” is not a month. Write it like 2026-11."]
    return found, []


def _plannable(request: HttpRequest) -> list[ChangeSet]:
    mine = access(request)
    if not mine.may_anywhere(Permission.OPERATE):
        return []
    found = visible_sets(mine, request.user.get_username()).filter(state="Draft")
    return [row for row in found.order_by("-pk")[:_MOST_SETS] if row.items]


# The part of a change set's page


def plan_form(request: HttpRequest) -> Context:
    """What was typed, or a beginning."""
    given = request.POST
    return {
        "begin": given.get("begin", ""),
        "end": given.get("end", ""),
        "zone": given.get("zone", _zone_of(request)),
        "weekly": "weekly" in given,
        "last_date": given.get("last_date", ""),
        "zones": time_zones(),
        "change_set": given.get("change_set", ""),
    }


def typed_wish(request: HttpRequest) -> Wish:
    given = request.POST
    return Wish(
        given.get("begin", ""),
        given.get("end", ""),
        given.get("zone", "UTC"),
        "weekly" in given,
        given.get("last_date", ""),
    )


def plan_of(request: HttpRequest, row: ChangeSet) -> Context:
    """The plan of a set that is not over, its turns, and what waits for the reader."""
    by = actor(request)
    plans = list(row.plans.order_by("-pk"))
    turns = Occurrence.objects.filter(plan__in=plans).select_related("plan__change_set")
    current = next((plan for plan in plans if plan.is_active), None)
    hidden = _hidden_names(request)
    return {
        "plan": current,
        "plan_problems": problems_for_reader(current, hidden) if current else [],
        "may_decide": bool(plans) and may_decide(plans[0], by),
        "turns": [_turn(turn, hidden) for turn in turns.order_by("-begins_at")[:_MOST_TURNS]],
        "held_up": [_conflict(turn, hidden) for turn in turns if turn.is_conflict],
        "is_in_force": any(turn.state in IN_FORCE for turn in turns),
        "form": plan_form(request),
        "plan_copies": _in_a_terminal(request, row),
    }


def _in_a_terminal(request: HttpRequest, row: ChangeSet) -> dict[str, str]:
    """With the next Friday as an example."""
    today = database_now().date()
    friday = today + timedelta(days=(4 - today.weekday()) % 7 or 7)
    begin = f"{friday}T18:00"
    return copies(
        request,
        ["changes", "plan", str(row.pk), "--begin", begin],
        "plans/",
        {"changeSet": row.pk, "begin": begin},
    )


def _turn(row: Occurrence, hidden: HiddenNames) -> Context:
    words = STATE_WORDS.get(row.state, row.state)
    return {"row": row, "words": words, "message": message_for_reader(row, hidden)}


def _conflict(row: Occurrence, hidden: HiddenNames) -> Context:
    changes = []
    for item in conflicts.ways_out(row):
        changes.append({"item": item, "changes": differences(item.base, item.wanted)})
    return {
        "row": row,
        "ends": row.state == "EndConflict",
        "changes": changes,
        "message": message_for_reader(row, hidden),
    }


def plan_set(request: HttpRequest, row: ChangeSet, by: Actor) -> ChangeSet:
    plan = plan_change_set(row.pk, typed_wish(request), by=by)
    messages.success(request, _planned_words(plan))
    return row


def unplan_set(request: HttpRequest, row: ChangeSet, by: Actor) -> ChangeSet:
    plan = row.plans.filter(state="Active").first()
    if plan is None:
        raise NotPossible(f"“{row.name}” is not planned")
    cancel_plan(plan.pk, by=by)
    messages.success(request, f"The plan of “{row.name}” was cancelled.")
    return row


# Turns


@require_http_methods(["GET", "HEAD", "POST"])
@page
def occurrence_command(request: HttpRequest, number: int, verb: str) -> HttpResponse:
    """A decision about a conflict, and back to the page of its set. A GET decides nothing."""
    mine = visible_occurrences(access(request), request.user.get_username())
    row = mine.filter(pk=number).first()
    if row is None:
        missing = f"There is no occurrence {number} that you may see."
        return render(request, "404.html", {"missing": missing}, status=404)
    shown = HttpResponseRedirect(reverse("change-set", args=[row.plan.change_set_id]))
    if request.method != "POST":
        return shown
    decide = {"apply": conflicts.apply_now, "skip": conflicts.skip}[verb]
    try:
        decide(number, by=actor(request))
    except (Rejected, Crossed, NotPossible) as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, _DONE[verb])
    return shown


_DONE = {"apply": "Brought up to date and applied.", "skip": "Left as it is."}
