"""What happened to a job, step by step, with what the time between was spent on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

from django.db.models import Count, Min, QuerySet
from django.utils import timezone

from scheduler.domain.durations import seconds_between
from scheduler.domain.evictions import Grounds, why_evicted
from scheduler.models import Command, Decision, Event, Eviction, PodGroup
from scheduler.selectors.jobs.listing import WAITING
from scheduler.selectors.jobs.page import evictions_of

_MOST_RECORDS = 200


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """Something that happened.

    `pods` counts the places it gained by it, or lost. `queue` is where `whom` is, for whom pods had
    to go, by this `action` and on these `grounds`.
    """

    at: datetime
    title: str
    detail: str = ""
    kind: str = "life"  # life, command, eviction, warning
    pods: int = 0
    whom: str = ""
    queue: str = ""
    action: str = ""
    grounds: Grounds = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Span:
    """The time between two steps, or since the last.

    `what` is the code of the reason why it waited, "" where nobody gave one.
    """

    seconds: float
    waited: bool = False
    what: str = ""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Each step with the time before it, None before the first.

    `now` is the time since the last, None when all is over.
    """

    entries: tuple[tuple[Span | None, TimelineEntry], ...]
    now: Span | None


def timeline_of(gang: PodGroup) -> Timeline:
    """Oldest first: submitted, admitted, started, evictions, new places, commands, the end."""
    steps = sorted(
        chain(
            _life_entries(gang),
            _restart_entries(gang),
            _command_entries(gang),
            _loss_entries(gang),
            _restart_events(gang),
        ),
        key=lambda step: step.at,
    )
    reasons = list(_reason_events(gang))
    spans = []
    for number in range(1, len(steps)):
        spans.append(_span_between(gang, steps, number, reasons))
    return Timeline(tuple(zip([None, *spans], steps, strict=True)), _current_span(gang, steps[-1]))


def _life_entries(gang: PodGroup) -> list[TimelineEntry]:
    job = gang.job
    return [
        TimelineEntry(gang.created_at, "Submitted", f"by {gang.owner}" if gang.owner else ""),
        *_if_at(gang.enqueued_at, "Admitted to the queue"),
        *_if_at(
            gang.started_at,
            "Started",
            f"with at least {gang.min_member} {_pod_or_pods(gang.min_member)}",
        ),
        *_if_at(
            job.finished_at if job else gang.finished_at,
            job.phase if job else gang.phase,
            job.message if job else "",
        ),
    ]


def _if_at(at: datetime | None, title: str, detail: str = "") -> list[TimelineEntry]:
    if at:
        return [TimelineEntry(at, title, detail)]
    return []


def _pod_or_pods(number: int) -> str:
    if number == 1:
        return "pod"
    return "pods"


_ASKED = {
    "AbortJob": "Suspend",
    "ResumeJob": "Resume",
    "RestartJob": "Restart",
    "TerminateJob": "Cancel",
    "CompleteJob": "Complete",
}


def _restart_entries(gang: PodGroup) -> list[TimelineEntry]:
    """Places that it got after its start, those of one session together.

    What was found by its pods is found by an index.
    """
    if gang.started_at is None:
        return []
    placed = Decision.objects.filter(
        pod__podgroup=gang, kind=Decision.BIND, created_at__gt=gang.started_at
    )
    rows = (
        placed.order_by()
        .values_list("session")
        .annotate(at=Min("created_at"), number=Count("pk"), nodes=Count("node_name", distinct=True))
    )
    found: list[TimelineEntry] = []
    for _, at, number, nodes in rows.order_by("-at")[:_MOST_RECORDS]:
        found.append(
            TimelineEntry(
                at,
                f"{number} {_pod_or_pods(number)} placed",
                f"on {nodes} {'node' if nodes == 1 else 'nodes'}",
                pods=number,
            )
        )
    return found


def _command_entries(gang: PodGroup) -> list[TimelineEntry]:
    given = Command.objects.filter(
        target_kind="Job",
        target_namespace=gang.namespace,
        target_name=gang.name,
        created_at__gte=gang.created_at,
    )[:_MOST_RECORDS]
    found: list[TimelineEntry] = []
    for command in given:
        found.append(
            TimelineEntry(
                command.executed_at or command.created_at,
                f"{_ASKED.get(command.action, command.action)}, asked for by {command.actor}",
                _command_reason(command),
                "command",
            )
        )
    return found


def _command_reason(command: Command) -> str:
    if command.reason:
        return f"{command.message} Reason: {command.reason}"
    return command.message


def _loss_entries(gang: PodGroup) -> list[TimelineEntry]:
    """Evictions of one session for one beneficiary are one step."""
    steps: dict[tuple[int, str, str, str], list[Eviction]] = {}
    for eviction in evictions_of(gang)[0]:
        key = (
            eviction.session_number,
            eviction.action,
            eviction.beneficiary,
            eviction.beneficiary_queue,
        )
        steps.setdefault(key, []).append(eviction)
    return [_loss_entry(evictions) for evictions in steps.values()]


def _loss_entry(evictions: Sequence[Eviction]) -> TimelineEntry:
    first = evictions[0]
    number = len(evictions)
    return TimelineEntry(
        min(eviction.created_at for eviction in evictions),
        f"{number} {_pod_or_pods(number)} evicted",
        why_evicted(first.action),
        "eviction",
        -number,
        first.beneficiary,
        first.beneficiary_queue,
        first.action,
        first.grounds,
    )


def _restart_events(gang: PodGroup) -> list[TimelineEntry]:
    entries = []
    for event in _events_about(gang, "Job", "Restarting")[:50]:
        entries.append(TimelineEntry(event.last_at, event.reason, event.message, "warning"))
    return entries


def _events_about(gang: PodGroup, kind: str, reason: str) -> QuerySet[Event]:
    """Of this one, not of an earlier one of the same name."""
    return Event.objects.filter(
        kind=kind,
        namespace=gang.namespace,
        name=gang.name,
        reason=reason,
        last_at__gte=gang.created_at,
    )


# The time between


def _span_between(
    gang: PodGroup,
    steps: Sequence[TimelineEntry],
    number: int,
    reasons: Sequence[Event],
) -> Span:
    """Before the start it waited.

    And after evictions until new places, if it lost more than it can do without.
    """
    begin = steps[number - 1].at
    end = steps[number].at
    seconds = seconds_between(begin, end)
    if gang.started_at is None or end <= gang.started_at or _had_too_few(gang, steps, number):
        code = ""
        if seconds >= 1:
            code = _waited_for(begin, end, reasons)
        return Span(seconds, True, code)
    return Span(seconds)


def _had_too_few(gang: PodGroup, steps: Sequence[TimelineEntry], number: int) -> bool:
    """Only where a later step brings new places: what ended was not waiting."""
    if not any(step.pods > 0 for step in steps[number:]):
        return False
    lost = 0
    for step in steps[:number]:
        lost = max(0, lost - step.pods)
    return lost > max(0, _member_count(gang) - gang.min_member)


def _member_count(gang: PodGroup) -> int:
    if gang.job:
        return sum(int(task["replicas"]) for task in gang.job.tasks)
    return gang.min_member


def _reason_events(gang: PodGroup) -> Iterable[Event]:
    return _events_about(gang, "PodGroup", "Unschedulable")[:_MOST_RECORDS]


def _waited_for(begin: datetime, end: datetime, reasons: Sequence[Event]) -> str:
    """The code of the reason that was given most often between the two."""
    counts: dict[str, int] = {}
    for event in reasons:
        if event.code and event.first_at <= end and event.last_at >= begin:
            counts[event.code] = counts.get(event.code, 0) + event.count
    return max(counts, key=lambda code: counts[code], default="")


def _current_span(gang: PodGroup, last: TimelineEntry) -> Span | None:
    if gang.finished_at or (gang.job and gang.job.finished_at):
        return None
    is_waiting = gang.phase in WAITING
    if is_waiting:
        code = gang.reason_code or "AwaitingEvaluation"
    else:
        code = ""
    return Span(seconds_between(last.at, timezone.now()), is_waiting, code)
