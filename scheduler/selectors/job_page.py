"""One job's page: its gang, its pods, what happened to it and for whom it had to make room."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from statistics import quantiles
from typing import Any

from django.db.models import Q, QuerySet

from scheduler.models import Command, Event, Eviction, Pod, PodGroup
from scheduler.selectors.jobs import WAITING

MOST_PODS = 500
_MOST_RECORDS = 200
_STARTS_FOR_AN_ESTIMATE, _FEWEST_STARTS = 50, 5


def gang_named(namespace: str, name: str) -> PodGroup | None:
    return PodGroup.objects.select_related("queue", "queue__parent", "job").filter(namespace=namespace, name=name).first()


def pods_of(gang: PodGroup) -> list[Pod]:
    """The first `MOST_PODS` of them, by task and number."""
    return list(gang.pods.select_related("node", "pod_class", "reserved_node").order_by("task", "index", "pk")[:MOST_PODS])


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a waiting gang stands in its queue, and how long others waited. The waits are None while there were too few starts."""

    position: int
    waiting: int
    ahead: tuple[str, ...]
    usual: tuple[float, float] | None
    starts: int


def standing_of(gang: PodGroup) -> Standing:
    """By priority, then by age, as the queue orders them unless a policy has other rules."""
    waiting = PodGroup.objects.filter(queue=gang.queue_id, phase__in=WAITING)
    before = Q(priority__gt=gang.priority) | Q(priority=gang.priority, created_at__lt=gang.created_at)
    ahead = waiting.filter(before).exclude(pk=gang.pk)
    names = [f"{namespace}/{name}" for namespace, name in ahead.order_by("-priority", "created_at").values_list("namespace", "name")[:5]]
    started = PodGroup.objects.filter(queue=gang.queue_id, started_at__isnull=False).order_by("-pk")
    waits = [(at - since).total_seconds() for since, at in started.values_list("created_at", "started_at")[:_STARTS_FOR_AN_ESTIMATE] if at]
    usual = None
    if len(waits) >= _FEWEST_STARTS:
        first, _, third = quantiles(waits, n=4)
        usual = (max(0.0, first), third)
    return Standing(ahead.count() + 1, waiting.count(), tuple(names), usual, len(waits))


def events_of(gang: PodGroup) -> QuerySet[Event]:
    """Of the job, of its gang and of its pods, newest first."""
    own = Q(kind__in=("Job", "PodGroup"), name=gang.name)
    pods = Q(kind="Pod", name__startswith=f"{gang.name}-")
    return Event.objects.filter(own | pods, namespace=gang.namespace)[:_MOST_RECORDS]


def evictions_of(gang: PodGroup) -> tuple[list[Eviction], list[Eviction]]:
    """Those that it suffered, and those that others suffered for it."""
    key = f"{gang.namespace}/{gang.name}"
    suffered = Eviction.objects.filter(podgroup_name=key)[:_MOST_RECORDS]
    return list(suffered), list(Eviction.objects.filter(beneficiary=key)[:_MOST_RECORDS])


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened, for the timeline. `waiting` says that the time since the step before was spent waiting."""

    at: datetime
    title: str
    detail: str = ""
    kind: str = "life"  # life, command, eviction, warning
    waiting: bool = False


def timeline_of(gang: PodGroup) -> list[Step]:
    """Oldest first: submitted, let in, started, evictions, commands, the end."""
    job = gang.job
    life = [
        Step(gang.created_at, "Submitted", f"by {gang.owner}" if gang.owner else ""),
        *_if_at(gang.enqueued_at, "Let into the queue's line", "", waiting=True),
        *_if_at(gang.started_at, "Started", f"with at least {gang.min_member} pods", waiting=True),
        *_if_at(
            job.finished_at if job else gang.finished_at,
            _ENDS.get(job.phase, job.phase) if job else "Completed",
            job.message if job else "",
        ),
    ]
    return sorted(chain(life, _commands(gang), _losses(gang), _restarts(gang)), key=lambda step: step.at)


def _if_at(at: datetime | None, title: str, detail: str, *, waiting: bool = False) -> list[Step]:
    return [Step(at, title, detail, waiting=waiting)] if at else []


_ASKED = {"AbortJob": "Suspend", "ResumeJob": "Resume", "RestartJob": "Restart", "TerminateJob": "Cancel", "CompleteJob": "Complete"}
_ENDS = {"Aborted": "Suspended", "Terminated": "Cancelled"}


def _commands(gang: PodGroup) -> list[Step]:
    given = Command.objects.filter(target_kind="Job", target_namespace=gang.namespace, target_name=gang.name)[:_MOST_RECORDS]
    return [
        Step(
            command.executed_at or command.created_at,
            f"{_ASKED.get(command.action, command.action)}, asked for by {command.actor}",
            _why(command),
            "command",
        )
        for command in given
    ]


def _why(command: Command) -> str:
    return f"{command.message} Reason: {command.reason}" if command.reason else command.message


def _losses(gang: PodGroup) -> list[Step]:
    """Evictions of one session for one beneficiary are one step."""
    steps: dict[tuple[int, str], list[Eviction]] = {}
    for eviction in evictions_of(gang)[0]:
        steps.setdefault((eviction.session_number, eviction.beneficiary), []).append(eviction)
    return [_loss(evictions) for evictions in steps.values()]


def _loss(evictions: list[Eviction]) -> Step:
    first, number = evictions[0], len(evictions)
    whom = f" for {first.beneficiary}" if first.beneficiary else ""
    return Step(first.created_at, f"{number} {'pod' if number == 1 else 'pods'} evicted{whom}", first.reason, "eviction")


def _restarts(gang: PodGroup) -> list[Step]:
    said = Event.objects.filter(kind="Job", namespace=gang.namespace, name=gang.name, reason__in=("Restarting", "Failed"))[:50]
    return [Step(event.last_at, event.reason, event.message, "warning") for event in said if event.reason == "Restarting"]


def waited_for(gang: PodGroup) -> str:
    """What it waits for, or what was last said of it while it waited."""
    if gang.phase in WAITING:
        return gang.reason_code or "AwaitingEvaluation"
    said = Event.objects.filter(kind="PodGroup", namespace=gang.namespace, name=gang.name, reason="Unschedulable")
    message = said.filter(last_at__lte=gang.started_at).values_list("message", flat=True).first() if gang.started_at else None
    return message.partition(". ")[0].partition(";")[0][:120] if message else ""


def evaluation_of(gang: PodGroup) -> dict[str, Any]:
    """In which session the reason was found, and which was the last to look: while nothing changed it is still true."""
    from scheduler.models import ClusterState

    state = ClusterState.objects.only("last_session", "last_session_at").get(pk=1)
    return {"found_in": gang.reason_session, "session": state.last_session, "at": state.last_session_at}
