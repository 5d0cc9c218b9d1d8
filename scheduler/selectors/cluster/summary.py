"""The cluster as a whole: its name, its sessions, whether it is paused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from scheduler.models import ClusterState, Queue, SchedulingSession


@dataclass(frozen=True, slots=True)
class SessionClock:
    """When the last session was that did its work, and how often one should be.

    `last_at` is None before the first.
    """

    last_at: datetime | None
    period_seconds: float
    paused: bool
    failing: bool = False


def failing_parts() -> dict[str, datetime]:
    """What of the work beside sessions fails at every tick, and since when."""
    failing = ClusterState.objects.values_list("failing", flat=True).first() or {}
    parts: dict[str, datetime] = {}
    for name, entry in sorted(failing.items()):
        parts[name] = datetime.fromisoformat(entry["since"])
    return parts


def cluster_name() -> str:
    return ClusterState.objects.values_list("name", flat=True).first() or "unnamed"


def session_clock() -> SessionClock | None:
    """None when the database has not been prepared yet."""
    row = ClusterState.objects.values_list("last_session_at", "period_seconds", "paused").first()
    if row is None:
        return None
    ended = SchedulingSession.objects.exclude(state=SchedulingSession.RUNNING).order_by("-number")
    if ended.values_list("state", flat=True).first() != SchedulingSession.FAILED:
        return SessionClock(*row)
    last_good = (
        ended.filter(state=SchedulingSession.DONE).values_list("finished_at", flat=True).first()
    )
    return SessionClock(last_good, *row[1:], failing=True)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a page says about the cluster as a whole.

    `invalid` names the queues whose place in the tree breaks a rule, and which.
    """

    name: str = "unnamed"
    paused: bool = False
    paused_by: str = ""
    pause_reason: str = ""
    last_session: int = 0
    last_session_at: datetime | None = None
    period_seconds: float = 1.0
    warnings: tuple[str, ...] = ()
    invalid: tuple[tuple[str, str], ...] = ()
    failing: tuple[str, ...] = ()


def cluster_facts() -> ClusterFacts:
    state = ClusterState.objects.first()
    if state is None:
        return ClusterFacts()
    return ClusterFacts(
        name=state.name,
        paused=state.paused,
        paused_by=state.paused_by,
        pause_reason=state.pause_reason,
        last_session=state.last_session,
        last_session_at=state.last_session_at,
        period_seconds=state.period_seconds,
        warnings=tuple(str(warning) for warning in state.warnings),
        invalid=tuple(_invalid_queues()),
        failing=tuple(sorted(state.failing)),
    )


def _invalid_queues() -> list[tuple[str, str]]:
    queues = Queue.objects.exclude(conditions=[]).order_by("name").values_list("name", "conditions")
    found: list[tuple[str, str]] = []
    for name, conditions in queues:
        for condition in conditions:
            if condition["type"] == "HierarchyInvalid":
                found.append((name, condition["message"]))
    return found
