"""A change set planned for set times, and a plan cancelled."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from django.db import transaction

from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import Forbidden, Permission
from scheduler.domain.calendar import (
    IN_FORCE,
    WEEK,
    OccurrenceState,
    PlanState,
    Timetable,
    Turn,
    is_time_zone,
)
from scheduler.domain.change_sets import SetState
from scheduler.domain.foresight import Trouble
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.queues import ROOT
from scheduler.models import ChangePlan, ChangeSet
from scheduler.models.calendar import WALL
from scheduler.models.clock import database_now
from scheduler.selectors.change_sets.calendar import booking_of, bookings, visible_plans
from scheduler.services.accounts.access import access_for
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.change_sets.apply import check_set_version, require_draft, visible_set
from scheduler.services.change_sets.calendar import lay_out
from scheduler.services.change_sets.calendar_news import News, tell
from scheduler.services.change_sets.occurrences import end, finish_plan
from scheduler.services.change_sets.outlook import trouble_words, troubles_of
from scheduler.services.change_sets.verdicts import require_right_to_apply
from scheduler.services.files.versions import Expected
from scheduler.services.locks import lock_tree

MOST_PLANS: Final = 200
FARTHEST: Final = timedelta(days=366)


class InTheWay(Rejected):
    """Refused because of other plans. `plans` are those that the caller may see."""

    def __init__(self, violations: Iterable[Violation], plans: Collection[int]) -> None:
        super().__init__(violations)
        self.plans = tuple(sorted(plans))


@dataclass(frozen=True, slots=True)
class Wish:
    """When a set is to begin and end, as it was typed: "2026-11-20T18:00"."""

    begin: str
    end: str = ""
    zone: str = "UTC"
    weekly: bool = False
    last_date: str = ""


def read_timetable(wish: Wish) -> Timetable:
    """Raises `Rejected` with every flaw."""
    flaws: list[Violation] = []
    begins = _wall_time("begin", wish.begin, flaws)
    ends = None
    if wish.end:
        ends = _wall_time("end", wish.end, flaws)
    last = _last_date(wish, begins, flaws)
    if not is_time_zone(wish.zone):
        message = f"“{wish.zone[:64]}” is not a time zone."
        flaws.append(_flaw("timeZone", message, "write one such as Europe/Berlin"))
    if begins is not None and ends is not None and ends <= begins:
        flaws.append(_flaw("end", "The end is not after the begin.", "write a later end"))
    if wish.weekly and not wish.end:
        message = "A change that begins every week must end in between."
        flaws.append(_flaw("end", message, "write an end"))
    if wish.weekly and begins is not None and ends is not None and ends - begins >= WEEK:
        message = "A change that begins every week must be over within a week."
        flaws.append(_flaw("end", message, "write an earlier end"))
    if flaws or begins is None:
        raise Rejected(flaws)
    return Timetable(begins, ends, wish.zone, wish.weekly, last)


def _flaw(field: str, message: str, fix: str = "") -> Violation:
    return Violation("invalid_value", "", field, message, fix)


def _wall_time(field: str, text: str, flaws: list[Violation]) -> datetime | None:
    fix = "write it like 2026-11-20T18:00"
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        flaws.append(_flaw(field, f"“{text[:40]}” is not a time.", fix))
        return None
    if found.tzinfo is not None:
        message = f"{field} is local time in the time zone that you chose: leave out the offset."
        flaws.append(_flaw(field, message, fix))
        return None
    if found.second or found.microsecond:
        flaws.append(_flaw(field, f"{field} is a time in whole minutes.", fix))
    if not 2000 <= found.year <= 9000:
        flaws.append(_flaw(field, f"The year {found.year} is too far away.", fix))
        return None
    return found


def _last_date(wish: Wish, begins: datetime | None, flaws: list[Violation]) -> date | None:
    if not wish.last_date:
        return None
    if not wish.weekly:
        message = "Only a weekly plan has a last date."
        flaws.append(_flaw("lastDate", message, "leave it out, or make it weekly"))
        return None
    try:
        found = date.fromisoformat(wish.last_date.strip())
    except ValueError:
        message = f"“{wish.last_date[:40]}” is not a date."
        flaws.append(_flaw("lastDate", message, "write it like 2026-12-31"))
        return None
    if begins is not None and found < begins.date():
        message = "The last date is before the first begin."
        flaws.append(_flaw("lastDate", message, "write a later date"))
    return found


def plan_change_set(
    number: int,
    wish: Wish,
    *,
    by: Actor = SYSTEM,
    expected_version: Expected = None,
    dry_run: bool = False,
) -> ChangePlan:
    """Plan a draft. Who may apply it may do this. It cannot be changed while it is planned.

    Raises `Rejected` for times that make no sense, and where it would break a rule together with
    what else is planned, `ChangeSet.DoesNotExist`, `Stale`, `NotPossible`, `Forbidden` and
    `OutOfSight`.
    """
    timetable = read_timetable(wish)
    with transaction.atomic():
        lock_tree()  # two plans that cannot be together are not judged at the same time
        now = database_now()
        change_set = _plannable(number, by, expected_version)
        _refuse_times(timetable, now)
        plan = _new_plan(change_set, timetable, by)
        _refuse_what_cannot_be(plan, by, now)
        change_set.state = SetState.PLANNED.value
        change_set.resource_version += 1
        change_set.save()
        lay_out(plan.pk, now)
        message = f"Planned “{change_set.name}”: {timetable.in_words}."
        tell(plan, News.PLANNED, message, by, now)
        if dry_run:
            transaction.set_rollback(True)
    return plan


def _plannable(number: int, by: Actor, expected_version: Expected) -> ChangeSet:
    change_set = ChangeSet.objects.select_for_update().get(pk=visible_set(number, by).pk)
    require_draft(change_set, "planned")
    check_set_version(change_set, expected_version)
    if not change_set.items:
        raise NotPossible(f"“{change_set.name}” is empty: there is nothing to plan")
    require_right_to_apply(change_set.changes, by)
    return change_set


def _refuse_times(timetable: Timetable, now: datetime) -> None:
    first = timetable.turn(0)
    assert first is not None
    if first.begins_at <= now:
        message = f"It would begin at {first.begins_at:%Y-%m-%d %H:%M} UTC, which has passed."
        raise Rejected([_flaw("begin", message, "write a later time")])
    if first.begins_at > now + FARTHEST:
        message = "It would begin more than a year from now."
        raise Rejected([_flaw("begin", message, "write an earlier time")])
    if _is_empty(first):
        message = "Clocks are put forward then, and nothing is left between its begin and its end."
        raise Rejected([_flaw("end", message, "write another time")])
    if ChangePlan.objects.filter(state=PlanState.ACTIVE.value).count() >= MOST_PLANS:
        message = f"{MOST_PLANS} change sets are planned already."
        raise Rejected(
            [Violation("too_many", "", "", message, "cancel one, or wait")], by_state=True
        )


def _is_empty(turn: Turn) -> bool:
    return turn.ends_at is not None and turn.ends_at <= turn.begins_at


def _new_plan(change_set: ChangeSet, timetable: Timetable, by: Actor) -> ChangePlan:
    ends = ""
    if timetable.ends is not None:
        ends = timetable.ends.strftime(WALL)
    scopes = None
    if by.scopes is not None:
        scopes = sorted(by.scopes)
    return ChangePlan.objects.create(
        change_set=change_set,
        begins=timetable.begins.strftime(WALL),
        ends=ends,
        zone=timetable.zone,
        weekly=timetable.weekly,
        last_date=timetable.last,
        planner=by.user,
        planned_by=by.name[:150],
        scopes=scopes,
    )


def _refuse_what_cannot_be(plan: ChangePlan, by: Actor, now: datetime) -> None:
    """New trouble, of this plan or of others because of it."""
    others = bookings(now, without=plan)
    known = {trouble.key for trouble in troubles_of(others)}
    found = troubles_of([*others, booking_of(plan, [], now)])
    new = [trouble for trouble in found if trouble.key not in known]
    if new:
        names = _names_seen(by)
        in_the_way = _others_of(plan, new) & names.keys()
        raise InTheWay([_refusal(plan, trouble, names) for trouble in new], in_the_way)


def _others_of(plan: ChangePlan, troubles: list[Trouble]) -> set[int]:
    found = {trouble.plan for trouble in troubles}
    return found.union(*(trouble.others for trouble in troubles)) - {plan.pk}


def _refusal(plan: ChangePlan, trouble: Trouble, names: dict[int, str]) -> Violation:
    message = trouble_words(trouble, names)
    if trouble.plan != plan.pk:
        other = names.get(trouble.plan, "Another plan")
        message = f"{other} would be disturbed. {message}"
    return Violation("plan_conflict", "", "begin", message, "choose another time")


def _names_seen(by: Actor) -> dict[int, str]:
    seen = visible_plans(access_for(by), by.name)
    return {plan.pk: plan.change_set.name for plan in seen}


def cancel_plan(number: int, *, by: Actor = SYSTEM, dry_run: bool = False) -> ChangePlan:
    """Nothing of it begins any more. What holds of it is taken back at once.

    Raises `ChangePlan.DoesNotExist`, `NotPossible` for one that is over, and `Forbidden`.
    """
    with transaction.atomic():
        plan = visible_plan(number, by)
        require_say(plan, by)
        lock_tree()
        waiting = plan.occurrences.filter(state__in=_WAITING).select_for_update()
        waiting.update(state=OccurrenceState.CANCELLED.value)
        plan = ChangePlan.objects.select_for_update().get(pk=plan.pk)
        if not plan.is_active:
            raise NotPossible(f"The plan of {plan.change_set.name} is over already")
        now = database_now()
        plan.state = PlanState.CANCELLED.value
        plan.ended_at = now
        plan.ended_by = by.name[:150]
        plan.save()
        message = f"Cancelled the plan of {plan.change_set.name}: {plan.timetable.in_words}."
        tell(plan, News.CANCELLED, message, by, now)
        finish_plan(plan, now)
        if dry_run:
            transaction.set_rollback(True)
    if not dry_run:
        for row in plan.occurrences.filter(state__in=IN_FORCE):
            end(row.pk, by=by, at_once=True)
        plan.refresh_from_db()
    return plan


_WAITING = (OccurrenceState.PLANNED.value, OccurrenceState.BEGIN_CONFLICT.value)


def visible_plan(number: int, by: Actor) -> ChangePlan:
    plan = visible_plans(access_for(by), by.name).filter(pk=number).first()
    if plan is None:
        raise ChangePlan.DoesNotExist(f"There is no plan {number}.")
    return plan


def require_say(plan: ChangePlan, by: Actor) -> None:
    """The author of the set, who planned it, and admins of every queue of it have a say."""
    if not may_decide(plan, by):
        message = (
            f"Only {plan.planned_by or 'the system'}, who planned it, and admins of all its queues "
            "decide about this plan."
        )
        raise Forbidden(Permission.ADMINISTER, ROOT, message=message)


def may_decide(plan: ChangePlan, by: Actor) -> bool:
    mine = access_for(by)
    if not mine.may_anywhere(Permission.OPERATE):
        return False
    if mine.is_cluster_admin or by.name in (plan.planned_by, plan.change_set.author):
        return True
    queues = plan.change_set.queues
    return bool(queues) and all(mine.may(Permission.ADMINISTER, name) for name in queues)
