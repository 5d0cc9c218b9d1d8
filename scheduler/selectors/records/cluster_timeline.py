"""The timeline of the cluster: marks of a window, from the records that are kept anyway.

What is long past is counted in the database, step by step, so that a year costs no more marks than
an hour. A fixed number of queries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Func, IntegerField, Max, Min, Q, QuerySet
from django.utils import timezone

from scheduler.conf import is_kubernetes
from scheduler.domain.access import Access
from scheduler.domain.audit_actions import AuditArea
from scheduler.domain.cluster_timeline import (
    ACTIONS,
    LANES,
    Mark,
    Window,
    gather,
    gathered_words,
)
from scheduler.models import (
    AuditEntry,
    Eviction,
    ExpectedStart,
    Node,
    PodGroup,
    SavedScenario,
    SchedulingSession,
)
from scheduler.selectors.change_sets.calendar import entries_between, visible_plans
from scheduler.selectors.jobs.gangs import WAITING
from scheduler.selectors.queues.objects import names_in_records
from scheduler.selectors.queues.reused_names import records_of
from scheduler.selectors.records.feeds import deeds_alone
from scheduler.selectors.sessions.kept import kept_sessions, nearest_kept

_OF_THE_CLUSTER = ("Node", "Policy", "Cluster")
"""Kinds that belong to no queue: whoever may see any queue may know of them."""
_MOST_AHEAD = 5000


class Step(Func):
    """The number of the step that a moment falls into."""

    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        template = "(CAST(strftime('%%%%s', %(expressions)s) AS INTEGER) / %(step)s)"
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        template = "FLOOR(EXTRACT(EPOCH FROM %(expressions)s) / %(step)s)::bigint"
        return self.as_sql(compiler, connection, template=template, **extra)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for, and by whom. Without lanes, all of them."""

    access: Access
    reader: str
    window: Window
    lanes: Collection[str] = tuple(LANES)
    queue: str = ""

    @property
    def visible(self) -> Collection[str] | None:
        return self.access.visible

    @property
    def names(self) -> list[str]:
        """Of the queue and all below it; none where no queue is asked for."""
        if not self.queue:
            return []
        return names_in_records(self.queue)


def marks_in(asked: Asked) -> list[Mark]:
    """All marks of the window, lane by lane, each in the order of time."""
    by_lane: dict[str, list[Mark]] = {lane: [] for lane in LANES}
    for mark in (*_records(asked), *_evictions(asked), *_lost_nodes(asked), *_ahead(asked)):
        by_lane[mark.lane].append(mark)
    found: list[Mark] = []
    for lane, marks in by_lane.items():
        if lane in asked.lanes:
            found += gather(sorted(marks, key=lambda mark: mark.at), asked.window.step)
    return found


# From the audit log


def _records(asked: Asked) -> list[Mark]:
    actions = [action for action, (lane, _) in ACTIONS.items() if lane in asked.lanes]
    if not actions:
        return []
    rows = _readable_records(asked, actions)
    steps = rows.annotate(step=Step("at", step=asked.window.step)).order_by()
    counts = steps.values("step", "action").annotate(
        number=Count("pk"), first=Min("at"), last=Max("at"), one=Min("pk")
    )
    groups: defaultdict[tuple[str, int], list[Mapping[str, Any]]] = defaultdict(list)
    for row in counts:
        groups[ACTIONS[row["action"]][0], row["step"]].append(row)
    single = [found[0]["one"] for found in groups.values() if _is_single(found)]
    entries = AuditEntry.objects.defer("before", "after").in_bulk(single)
    marks = []
    for (lane, _), found in groups.items():
        if _is_single(found):
            marks.append(_record_mark(lane, entries[found[0]["one"]]))
        else:
            marks.append(_gathered_records(lane, found))
    return marks


def _is_single(found: list[Mapping[str, Any]]) -> bool:
    return len(found) == 1 and found[0]["number"] == 1


def _readable_records(asked: Asked, actions: list[str]) -> QuerySet[AuditEntry]:
    rows = AuditEntry.objects.filter(
        at__gte=asked.window.start,
        at__lt=asked.window.end,
        deeds=AuditArea.ADMIN.value,
        action__in=actions,
    )
    of_cluster = Q(queue_name="", kind__in=_OF_THE_CLUSTER)
    if asked.visible is not None:
        rows = rows.filter(records_of(asked.visible, "at") | of_cluster)
    if asked.queue:
        rows = rows.filter(Q(queue_name__in=asked.names) | of_cluster)
    return deeds_alone(rows, asked.visible, {"queue": asked.queue})


def _record_mark(lane: str, entry: AuditEntry) -> Mark:
    return Mark(
        lane=lane,
        at=entry.at,
        until=entry.at,
        words=f"{_object_words(entry)} {ACTIONS[entry.action][1]}",
        kind=entry.kind,
        name=entry.name,
        queue=entry.queue_name,
        number=entry.pk,
    )


def _object_words(entry: AuditEntry) -> str:
    if entry.kind == "Policy":
        return "the policy"
    if entry.kind == "Cluster":
        return "scheduling"
    noun = {"ChangeSet": "change set", "SafeWindow": "safe window"}.get(entry.kind)
    return f"{noun or entry.kind.lower()} {entry.name}"


def _gathered_records(lane: str, found: list[Mapping[str, Any]]) -> Mark:
    parts = {ACTIONS[row["action"]][1]: row["number"] for row in found}
    count = sum(row["number"] for row in found)
    return Mark(
        lane=lane,
        at=min(row["first"] for row in found),
        until=max(row["last"] for row in found),
        count=count,
        words=gathered_words(lane, count, parts),
    )


# Evictions


def _evictions(asked: Asked) -> list[Mark]:
    if "evictions" not in asked.lanes:
        return []
    window = asked.window
    rows = Eviction.objects.filter(created_at__gte=window.start, created_at__lt=window.end)
    if asked.visible is not None:
        rows = rows.filter(records_of(asked.visible, "created_at"))
    if asked.queue:
        rows = rows.filter(queue_name__in=asked.names)
    steps = rows.annotate(step=Step("created_at", step=window.step)).order_by().values("step")
    counts = steps.annotate(
        number=Count("pk"),
        first=Min("created_at"),
        last=Max("created_at"),
        one=Min("pk"),
        session=Min("session_number"),
        last_session=Max("session_number"),
    )
    found = list(counts)
    single = Eviction.objects.in_bulk([row["one"] for row in found if row["number"] == 1])
    marks = []
    for row in found:
        eviction = single.get(row["one"])
        if eviction is not None:
            marks.append(_eviction_mark(eviction))
        else:
            marks.append(_gathered_evictions(row))
    return marks


def _gathered_evictions(row: Mapping[str, Any]) -> Mark:
    """Those of one session lead to it."""
    words = gathered_words("evictions", row["number"], {})
    session = 0
    if row["session"] == row["last_session"]:
        session = row["session"]
        words = f"{words} of session {session}"
    return Mark(
        "evictions", row["first"], row["last"], row["number"], words, "Session", number=session
    )


def _eviction_mark(row: Eviction) -> Mark:
    return Mark(
        lane="evictions",
        at=row.created_at,
        until=row.created_at,
        words=f"pod {row.pod_name} of {row.queue_name} was evicted ({row.action})",
        kind="Session",
        name=str(row.session_number),
        queue=row.queue_name,
        number=row.session_number,
    )


# Nodes of a real cluster, which no command of ours loses or brings back


def _lost_nodes(asked: Asked) -> list[Mark]:
    """The last time that each became ready or not: what the cluster says of itself."""
    if "nodes" not in asked.lanes or not is_kubernetes():
        return []
    window = asked.window
    rows = Node.objects.filter(ready_since__gte=window.start, ready_since__lt=window.end)
    marks = []
    for name, ready, since in rows.values_list("name", "ready", "ready_since"):
        if since is None:
            continue
        words = f"node {name} was lost"
        if ready:
            words = f"node {name} came back"
        marks.append(Mark("nodes", since, since, words=words, kind="Node", name=name))
    return marks


# Ahead of now


def _ahead(asked: Asked) -> list[Mark]:
    now = timezone.now()
    if asked.window.end <= now:
        return []
    return [*_expected_starts(asked, now), *_planned(asked, now)]


def _expected_starts(asked: Asked, now: datetime) -> list[Mark]:
    if "forecasts" not in asked.lanes:
        return []
    gangs = PodGroup.objects.filter(phase__in=WAITING)
    if asked.access.readable is not None:
        gangs = gangs.filter(queue__in=sorted(asked.access.readable))
    if asked.queue:
        gangs = gangs.filter(queue__name__in=asked.names)
    rows = ExpectedStart.objects.filter(
        podgroup_number__in=gangs.values("pk"),
        earliest_at__gte=now,
        earliest_at__lt=asked.window.end,
    ).order_by("earliest_at")[:_MOST_AHEAD]
    starts = list(rows)
    known = gangs.select_related("queue").in_bulk([row.podgroup_number for row in starts])
    marks = []
    for row in starts:
        gang = known.get(row.podgroup_number)
        if gang is not None and row.earliest_at is not None:
            marks.append(_start_mark(row.earliest_at, row.latest_at, gang))
    return marks


def _start_mark(earliest: datetime, latest: datetime | None, gang: PodGroup) -> Mark:
    return Mark(
        lane="forecasts",
        at=earliest,
        until=latest or earliest,
        words=f"expected start of {gang.namespace}/{gang.name}",
        kind="Job",
        name=gang.name,
        namespace=gang.namespace,
        queue=gang.queue.name,
        is_ahead=True,
    )


def _planned(asked: Asked, now: datetime) -> Iterable[Mark]:
    if "changes" not in asked.lanes:
        return []
    plans = visible_plans(asked.access, asked.reader).filter(state="Active")
    marks = []
    for entry in entries_between(
        plans.prefetch_related("occurrences"), max(now, asked.window.start), asked.window.end
    ):
        turn = entry.turn
        if turn.begins_at < now:
            continue
        marks.append(
            Mark(
                lane="changes",
                at=turn.begins_at,
                until=turn.ends_at or turn.begins_at,
                words=f"change set {entry.plan.change_set.name} is planned to begin",
                kind="ChangeSet",
                name=entry.plan.change_set.name,
                number=entry.plan.change_set_id,
                is_ahead=True,
            )
        )
    return marks


# The session that decided


@dataclass(frozen=True, slots=True)
class Moment:
    """The last session that began before a moment, whether it can be run again, and where it
    cannot, the session nearest to it that can.
    """

    at: datetime
    session: SchedulingSession
    is_kept: bool
    nearest: SavedScenario | None = None


def moment_at(at: datetime) -> Moment | None:
    """None where no session is kept from before. At most four queries."""
    session = (
        SchedulingSession.objects.filter(started_at__lte=at)
        .select_related("policy")
        .order_by("-started_at")
        .first()
    )
    if session is None:
        return None
    if kept_sessions().filter(session_number=session.number).exists():
        return Moment(at, session, is_kept=True)
    return Moment(at, session, is_kept=False, nearest=_nearest_to(session))


def _nearest_to(session: SchedulingSession) -> SavedScenario | None:
    return min(
        nearest_kept(session.number),
        key=lambda row: abs(row.created_at - session.started_at),
        default=None,
    )
