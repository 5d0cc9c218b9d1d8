"""Feeds: events, the audit log and sessions, a page at a time, found by key so that the length of
the tables does not matter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Concat

from scheduler.engine.actions import ACTIONS
from scheduler.models import AuditEntry, Decision, Event, Eviction, SavedScenario, SchedulingSession
from scheduler.selectors.queues.objects import names_in_records
from scheduler.selectors.queues.reused_names import records_of

PAGE = 50
EVENT_KINDS = ("Queue", "Job", "PodGroup", "Pod", "Node", "Cluster")
PLACING_ACTIONS = (*ACTIONS, "stop")
"""What a decision can come from: an action of a session, or somebody who stops a job."""
EVICTING_ACTIONS = ("preempt", "reclaim", "shed")
EVERYTHING = "all"  # as a kind: pods too
# said again in each session of all that waits: a feed of changes leaves them out
WAITING_REASONS = (
    "Unschedulable",
    "FailedScheduling",
)
_OF_NO_QUEUE = ("Node", "Cluster")
# so many that walking back in time finds a page sooner than sorting all that the index on kind
# gives
_CHATTY = (
    "Job",
    "PodGroup",
    "Pod",
)


@dataclass(frozen=True, slots=True)
class Feed:
    """One page of a feed, newest first.

    `older` is what to ask the next page with, "" at the end.
    """

    rows: list[Any]
    older: str


@dataclass(frozen=True, slots=True)
class Span:
    """From a moment on, and up to another one; None where it is open."""

    start: datetime | None = None
    end: datetime | None = None


# Events


def events_for(
    visible: Collection[str] | None,
    filters: Mapping[str, str],
    span: Span | None = None,
) -> QuerySet[Event]:
    """Events of the queues in sight, and of what belongs to no queue."""
    found = Event.objects.order_by("-last_at", "-pk").alias(kind_walked=Concat("kind", Value("")))
    if visible is not None:
        found = found.filter(
            records_of(visible, "last_at") | Q(kind__in=_OF_NO_QUEUE, queue_name="")
        )
    if only_changes(filters):
        # they would be all there is to see
        found = found.exclude(kind="Pod").exclude(reason__in=WAITING_REASONS)
    kind = filters.get("kind", "").removeprefix(EVERYTHING)
    if kind in _CHATTY:
        found = found.filter(kind_walked=kind)
    elif kind:
        found = found.filter(kind=kind)
    if filters.get("reason"):
        found = found.filter(reason=filters["reason"])
    if filters.get("queue"):
        found = found.filter(queue_name__in=names_in_records(filters["queue"]))
    if filters.get("type"):
        found = found.filter(type=filters["type"].capitalize())
    found = _within_span(found, span or Span(), "last_at")
    if filters.get("q"):
        words = filters["q"]
        found = found.filter(Q(name__contains=words) | Q(message__contains=words))
    return found


def only_changes(filters: Mapping[str, str]) -> bool:
    """Whether pods, and what each session says of what waits, are left out: they were not asked
    for.
    """
    return not any(filters.get(name) for name in ("kind", "q", "reason", "type"))


def event_page(found: QuerySet[Event], before: str = "") -> Feed:
    """`before` is what the page above gave as `older`: the moment and number of its last event."""
    mark = _read_mark(before)
    if mark:
        at, pk = mark
        found = found.filter(Q(last_at__lt=at) | Q(last_at=at, pk__lt=pk))
    rows = list(found[: PAGE + 1])
    if len(rows) > PAGE:
        last = rows[PAGE - 1]
    else:
        last = None
    return Feed(rows[:PAGE], f"{last.last_at.isoformat()}_{last.pk}" if last else "")


def _read_mark(text: str) -> tuple[datetime, int] | None:
    at, _, pk = text.rpartition("_")
    try:
        if at:
            return (datetime.fromisoformat(at), int(pk))
        return None
    except ValueError:
        return None


# The audit log

_AUDIT_COLUMNS = {
    "deeds": "deeds",
    "actor": "actor",
    "action": "action",
    "kind": "kind",
    "name": "name",
    "door": "door",
    "request": "request_id",
}
"""Filters of the audit log, and the columns that they compare with."""


def audit_for(
    queues: Collection[str] | None,
    filters: Mapping[str, str],
    span: Span | None = None,
) -> QuerySet[AuditEntry]:
    """`queues` are those whose record may be read, None for everything."""
    found = AuditEntry.objects.order_by("-pk")
    if queues is not None:
        found = found.filter(records_of(queues, "at"))
    for name, column in _AUDIT_COLUMNS.items():
        if filters.get(name):
            found = found.filter(**{column: filters[name]})
    if filters.get("queue"):
        found = found.filter(queue_name__in=names_in_records(filters["queue"]))
    found = _within_span(found, span or Span(), "at")
    if filters.get("q"):
        found = found.filter(
            Q(name__contains=filters["q"])
            | Q(reason__contains=filters["q"])
            | Q(message__contains=filters["q"])
        )
    return found


def deeds_alone(
    found: QuerySet[AuditEntry],
    queues: Collection[str] | None,
    filters: Mapping[str, str],
) -> QuerySet[AuditEntry]:
    """Without what only followed from a deed that is in the list too: closing a team is one line,
    not one for each queue below it.
    """
    if any(filters.get(name) for name in ("name", "q", "request")):
        return found
    if not filters.get("queue"):
        if queues is None:
            return found.filter(follows="")
        return found.exclude(follows__in=queues)
    listed = set(names_in_records(filters["queue"]))
    return found.exclude(follows__in=listed if queues is None else listed & set(queues))


def _within_span(found: QuerySet[Any], span: Span, column: str) -> QuerySet[Any]:
    if span.start is not None:
        found = found.filter(**{f"{column}__gte": span.start})
    if span.end is not None:
        found = found.filter(**{f"{column}__lt": span.end})
    return found


def page_by_number(found: QuerySet[Any], before: int | None, field: str = "pk") -> Feed:
    if before is not None:
        found = found.filter(**{f"{field}__lt": before})
    rows = list(found[: PAGE + 1])
    older = ""
    if len(rows) > PAGE:
        older = str(getattr(rows[PAGE - 1], field))
    return Feed(rows[:PAGE], older)


# Sessions


def sessions_for(only: str = "") -> QuerySet[SchedulingSession]:
    """`only` is "" for all, "failed", or "decided" for those that placed or evicted something."""
    found = SchedulingSession.objects.order_by("-number").defer("message")
    if only == "failed":
        return found.filter(state__in=(SchedulingSession.FAILED, SchedulingSession.TAKEN_OVER))
    if only == "decided":
        return found.filter(Q(counts__binds__gt=0) | Q(counts__evictions__gt=0))
    return found


def durations(limit: int = 300) -> list[tuple[datetime, int, Mapping[str, float]]]:
    """Of the last sessions that ended: when, number, milliseconds by part; oldest first."""
    ended = SchedulingSession.objects.exclude(finished_at=None).order_by("-number")
    return list(reversed(ended.values_list("started_at", "number", "durations")[:limit]))


def session_numbered(number: int) -> SchedulingSession | None:
    return SchedulingSession.objects.select_related("policy").filter(number=number).first()


def decisions_of(
    session: SchedulingSession,
    visible: Collection[str] | None,
    limit: int = 300,
) -> list[Decision]:
    found = session.decisions.order_by("pk")
    if visible is not None:
        found = found.filter(queue_name__in=visible)
    return list(found[:limit])


def victims_of(
    session: SchedulingSession,
    visible: Collection[str] | None,
    limit: int = 300,
) -> list[Eviction]:
    found = session.evictions.order_by("pk")
    if visible is not None:
        found = found.filter(queue_name__in=visible)
    return list(found[:limit])


def evictions_decided(decisions: Iterable[Decision]) -> dict[tuple[int | None, str], Eviction]:
    """The records of those that evict, by session and pod."""
    evicting = []
    for row in decisions:
        if row.kind == Decision.EVICT and row.session_id:
            evicting.append(row)
    if not evicting:
        return {}
    found = Eviction.objects.filter(
        session__in={row.session_id for row in evicting},
        pod_name__in={row.pod_name for row in evicting},
    )
    evictions: dict[tuple[int | None, str], Eviction] = {}
    for eviction in found:
        evictions[(eviction.session_id, eviction.pod_name)] = eviction
    return evictions


def kept_sessions(numbers: Collection[int]) -> set[int]:
    """Of these, the sessions that can be saved as a scenario file."""
    return set(
        SavedScenario.objects.filter(session_number__in=list(numbers)).values_list(
            "session_number", flat=True
        )
    )


def last_changes(kind: str, name: str, namespace: str = "", most: int = 3) -> list[dict[str, Any]]:
    """Who did what to an object lately, newest first: for whoever finds it changed."""
    rows = AuditEntry.objects.filter(kind=kind, namespace=namespace, name=name).order_by("-pk")[
        :most
    ]
    found: list[dict[str, Any]] = []
    for row in rows:
        found.append(
            {
                "by": row.actor,
                "at": row.at.isoformat(),
                "action": row.action,
                "message": row.message,
            }
        )
    return found
