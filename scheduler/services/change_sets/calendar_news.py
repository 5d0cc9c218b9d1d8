"""What the calendar did, told: in the audit log, as events of the touched queues, to open pages."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from scheduler import notify
from scheduler.domain.change_sets import QUEUE
from scheduler.domain.notices import LONGEST_TITLE, Note, NoticeKind
from scheduler.domain.queues import ROOT
from scheduler.models import ChangePlan, Queue
from scheduler.selectors.accounts.access import owners_of
from scheduler.services.accounts.actors import Actor
from scheduler.services.notices.publish import publish
from scheduler.services.records import audit
from scheduler.services.records.events import EventNote, record_events


class News(StrEnum):
    """Actions of the audit log, and reasons of events."""

    PLANNED = "PlanChangeSet"
    CANCELLED = "CancelPlan"
    BEGAN = "BeginPlannedChange"
    ENDED = "EndPlannedChange"
    CONFLICT = "HoldUpPlannedChange"
    MISSED = "MissPlannedChange"
    FORESEEN = "ForeseeConflict"
    RESOLVED = "ResolveConflict"
    SKIPPED = "SkipPlannedChange"


_NOTICES = {
    News.BEGAN: NoticeKind.CALENDAR_BEGAN,
    News.ENDED: NoticeKind.CALENDAR_ENDED,
    News.CONFLICT: NoticeKind.CALENDAR_CONFLICT,
    News.MISSED: NoticeKind.CALENDAR_CONFLICT,
    News.FORESEEN: NoticeKind.CALENDAR_CONFLICT,
}
_WARNINGS = (News.CONFLICT, News.MISSED, News.FORESEEN)


def tell(
    plan: ChangePlan, news: News, message: str, by: Actor, now: datetime, brief: str = ""
) -> None:
    """In the transaction of the deed.

    `brief` is for readers of one queue, who may not see the others that the message names.
    """
    audit.record(
        by, news.value, "ChangeSet", str(plan.change_set_id), message=message, reason=by.reason
    )
    queues = touched_queues(plan)
    notes = []
    for name in queues:
        notes.append(
            EventNote(
                "Queue",
                name,
                news.value,
                f"{by.name}: {brief or message}",
                queue=name,
                warning=news in _WARNINGS,
            )
        )
    record_events(notes, now)
    _publish(plan, news, brief or message, queues, now)
    notify.queues_changed(queues)
    notify.cluster_changed()


def _publish(plan: ChangePlan, news: News, message: str, queues: list[str], now: datetime) -> None:
    """To those who asked to be told of one of the queues; to owners and planners in any case."""
    kind = _NOTICES.get(news)
    if kind is None:
        return
    # A set of the policy or of nodes only is about the whole tree.
    places = queues or [ROOT]
    concerned = _concerned(plan, places)
    notes = []
    for name in places:
        notes.append(
            Note(
                kind,
                key=f"calendar:{news.value}:{plan.pk}:{now:%Y%m%dT%H%M%S%f}:{name}"[:200],
                title=message[:LONGEST_TITLE],
                message=f"Planned: {plan.timetable.in_words}.",
                queue=name,
                by_default=concerned[name],
                link=f"/changes/{plan.change_set_id}/",
            )
        )
    publish(notes)


def _concerned(plan: ChangePlan, places: list[str]) -> dict[str, tuple[str, ...]]:
    """By queue: who is told there. Each person once, at a queue that they own if there is one."""
    found: dict[str, list[str]] = {name: [] for name in places}
    told: set[str] = set()
    for name, owner in owners_of(places).items():
        if owner and owner not in told:
            told.add(owner)
            found[name].append(owner)
    for planner in (plan.planned_by, plan.change_set.author):
        if planner and planner not in told:
            told.add(planner)
            found[places[0]].append(planner)
    return {name: tuple(people) for name, people in found.items()}


def touched_queues(plan: ChangePlan) -> list[str]:
    """Those that exist."""
    names = {item.name for item in plan.change_set.changes if item.kind == QUEUE}
    found = Queue.objects.filter(name__in=names).order_by("name")
    return list(found.values_list("name", flat=True))
