"""One queue's page: its gangs, why they wait, how long, and what happened to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.db.models import Case, Count, IntegerField, Min, Value, When
from django.utils import timezone

from scheduler.domain.durations import seconds_between
from scheduler.domain.lifecycle import QueueCommand, derive, obstacles
from scheduler.domain.resources import NOTHING, Resources
from scheduler.domain.shown_phases import shown_phase
from scheduler.models import Command, Event, Pod, PodGroup, Queue
from scheduler.selectors.queues.facts import live_podgroups, queue_tree
from scheduler.selectors.queues.reused_names import records_of
from scheduler.selectors.records.feeds import WAITING_REASONS

WAITING = ("Pending", "Inqueue")
_STARTS_FOR_A_MEDIAN = 500
_FEWEST_STARTS = 5
_NO_REASON = "AwaitingEvaluation"


@dataclass(frozen=True, slots=True)
class Waits:
    """How long gangs wait. None where there is nothing to say it from."""

    oldest_since: datetime | None
    median_seconds: float | None
    starts: int
    finished_24h: int


@dataclass(frozen=True, slots=True)
class MinRunTime:
    """How long pods of a queue run before they may be evicted, and the queue that says so.

    `named_by` is empty where no queue does, and the policy decides.
    """

    seconds: int
    named_by: str = ""


def min_run_time(names: Sequence[str], of_policy: int) -> MinRunTime:
    """`names` lead from the queue up to root."""
    rows = Queue.objects.filter(name__in=names).values_list("name", "min_run_seconds")
    named = dict(rows)
    for name in names:
        seconds = named.get(name)
        if seconds is not None:
            return MinRunTime(seconds, name)
    return MinRunTime(of_policy)


@dataclass(frozen=True, slots=True)
class GangRow:
    """A gang as a table shows it. `members` counts pods by phase."""

    namespace: str
    name: str
    queue: str
    owner: str
    phase: str
    min_member: int
    members: dict[str, int]
    priority: int
    created_at: datetime
    started_at: datetime | None
    reason_code: str
    reason_message: str
    request: Resources
    position: int | None = (
        None  # among those that wait in its queue, by priority and age; None if it does not
    )

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_waiting(self) -> bool:
        return self.phase in WAITING

    @property
    def size(self) -> int:
        """All its pods, also those beyond its minimum. Before there are any, the minimum."""
        return max(self.min_member, sum(self.members.values()))

    @property
    def placed(self) -> int:
        return sum(
            self.members.get(phase, 0) for phase in ("Binding", "Bound", "Running", "Succeeded")
        )


def gang_rows(queues: Collection[str], reason: str = "", limit: int = 100) -> list[GangRow]:
    """Gangs that are not over, those that wait first, the oldest first among them. Two queries."""
    gangs = PodGroup.objects.filter(queue__name__in=queues, queue__deleted_at=None).exclude(
        phase="Completed"
    )
    if reason:
        gangs = gangs.filter(phase__in=WAITING, reason_code="" if reason == _NO_REASON else reason)
    rank = Case(
        When(phase__in=WAITING, then=Value(0)),
        default=Value(1),
        output_field=IntegerField(),
    )
    rows = with_members(
        gangs.select_related("queue", "job")
        .annotate(rank=rank)
        .order_by("rank", "-priority", "created_at", "id")[:limit]
    )
    if reason:
        return rows
    return list(_in_line(rows))


def _in_line(rows: Iterable[GangRow]) -> Iterator[GangRow]:
    """With their places in line, each queue counting for itself: they come in that order, and none
    of those that wait is left out.
    """
    places: dict[str, int] = {}
    for row in rows:
        if row.is_waiting:
            places[row.queue] = places.get(row.queue, 0) + 1
        yield replace(row, position=places[row.queue]) if row.is_waiting else row


def with_members(gangs: Iterable[PodGroup]) -> list[GangRow]:
    """The gangs with their pods counted, in one more query."""
    found = list(gangs)
    members = _members(gang.pk for gang in found)
    rows: list[GangRow] = []
    for gang in found:
        rows.append(_gang_row(gang, members.get(gang.pk, {})))
    return rows


def _gang_row(gang: PodGroup, members: dict[str, int]) -> GangRow:
    job_phase = gang.job.phase if gang.job else None
    return GangRow(
        namespace=gang.namespace,
        name=gang.name,
        queue=gang.queue.name,
        owner=gang.owner,
        phase=shown_phase(gang.phase, job_phase),
        min_member=gang.min_member,
        members=members,
        priority=gang.priority,
        created_at=gang.created_at,
        started_at=gang.started_at,
        reason_code=gang.reason_code or _NO_REASON,
        reason_message=gang.reason_message,
        request=gang.min_resources or NOTHING,
    )


def _members(gangs: Iterable[int]) -> dict[int, dict[str, int]]:
    members: dict[int, dict[str, int]] = {}
    for gang, phase, number in (
        Pod.objects.filter(podgroup__in=list(gangs))
        .order_by()
        .values_list("podgroup", "phase")
        .annotate(n=Count("id"))
    ):
        members.setdefault(gang, {})[phase] = number
    return members


def waiting_by_reason(queues: Collection[str] | None = None) -> dict[str, int]:
    """How many gangs wait for each reason, most first; all queues when none are named."""
    waiting = PodGroup.objects.filter(phase__in=WAITING)
    if queues is not None:
        waiting = waiting.filter(queue__name__in=queues)
    counted = waiting.order_by().values_list("reason_code").annotate(number=Count("id"))
    return dict(
        sorted(
            ((code or _NO_REASON, number) for code, number in counted),
            key=lambda pair: (-pair[1], pair[0]),
        )
    )


def waiting_by_reason_and_queue() -> dict[str, dict[str, int]]:
    """For each queue that has waiting gangs of its own, how many wait for each reason.

    One query.
    """
    counted = (
        PodGroup.objects.filter(phase__in=WAITING)
        .order_by()
        .values_list("queue__name", "reason_code")
        .annotate(number=Count("id"))
    )
    found: dict[str, dict[str, int]] = {}
    for queue, code, number in counted:
        found.setdefault(queue, {})[code or _NO_REASON] = number
    return found


def waits(queues: Collection[str]) -> Waits:
    since = timezone.now() - timedelta(days=1)
    gangs = PodGroup.objects.filter(queue__name__in=queues, queue__deleted_at=None)
    oldest = gangs.filter(phase__in=WAITING).aggregate(oldest=Min("created_at"))["oldest"]
    starts = (
        gangs.filter(started_at__gte=since)
        .order_by("-started_at")
        .values_list("created_at", "started_at")[:_STARTS_FOR_A_MEDIAN]
    )
    seconds = []
    for created, started in starts:
        if started:
            seconds.append(seconds_between(created, started))
    finished = gangs.filter(phase="Completed", finished_at__gte=since).count()
    usual = None
    if len(seconds) >= _FEWEST_STARTS:
        usual = median(seconds)
    return Waits(oldest, usual, len(seconds), finished)


def command_obstacles(name: str) -> dict[QueueCommand, str]:
    """For each command why it would do nothing now, "" where it would do something."""
    tree = queue_tree()
    live = live_podgroups()
    unknown = frozenset(Queue.objects.filter(is_unknown=True).values_list("name", flat=True))
    return obstacles(tree, derive(tree, live, unknown), name, live=live, unknown=unknown)


def queue_activity(queues: Collection[str], limit: int = 100) -> list[dict[str, Any]]:
    """Commands and events of these queues, newest first, in one list.

    Why jobs wait stands with the jobs.
    """
    commands = Command.objects.filter(
        records_of(queues, "created_at", "target_name"), target_kind="Queue"
    )[:limit]
    events = Event.objects.filter(records_of(queues, "last_at")).exclude(
        reason__in=WAITING_REASONS
    )[:limit]
    entries = [_command_entry(command) for command in commands]
    entries += [_event_entry(event) for event in events]
    return sorted(entries, key=lambda entry: entry["at"], reverse=True)[:limit]


def _command_entry(command: Command) -> dict[str, Any]:
    return {
        "at": command.executed_at or command.created_at,
        "what": command.action,
        "kind": "Queue",
        "namespace": "",
        "name": command.target_name,
        "who": command.actor,
        "door": command.door,
        "result": command.result,
        "message": command.message,
        "reason": command.reason,
        "count": 1,
        "is_warning": command.result in (Command.REFUSED, Command.FAILED),
    }


def _event_entry(event: Event) -> dict[str, Any]:
    return {
        "at": event.last_at,
        "what": event.reason,
        "kind": event.kind,
        "namespace": event.namespace,
        "name": event.name,
        "who": "",
        "door": "",
        "result": "",
        "message": event.message,
        "reason": "",
        "count": event.count,
        "is_warning": event.type == Event.WARNING,
    }


def last_command(name: str) -> Command | None:
    """The last order that changed this queue: who, when and why stand in the banner."""
    return Command.objects.filter(
        target_kind="Queue", target_name=name, result=Command.DONE
    ).first()
