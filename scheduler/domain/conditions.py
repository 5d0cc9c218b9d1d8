"""The conditions of a queue, as Kubernetes writes them.

Each has type, status, reason, message and lastTransitionTime.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler.domain.lifecycle import DerivedState
from scheduler.domain.plans import counted
from scheduler.domain.queues import QueueState

Stored = Mapping[str, Any]


def condition(
    kind: str,
    reason: str,
    message: str,
    since: str,
    *,
    holds: bool = True,
) -> dict[str, Any]:
    if holds:
        status = "True"
    else:
        status = "False"
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


def queue_conditions(
    name: str,
    standing: DerivedState,
    stored: Iterable[Stored],
    live: int,
    since: str,
) -> list[dict[str, Any]]:
    """Only those that are true.

    `live` counts what is not Completed in the queue and below it; `since` is when its state began.
    """
    found = []
    for one in stored:
        if one.get("type") == "Draining":
            found.append(_draining_condition(one, live))
        else:
            found.append(_as_stored(one))
    if standing.held_by:
        found.append(
            condition("Suspended", "QueueSuspended", _suspension_message(name, standing), since)
        )
    return sorted(found, key=lambda one: str(one["type"]))


def _as_stored(stored: Stored) -> dict[str, Any]:
    return condition(
        stored["type"],
        stored.get("reason", ""),
        stored.get("message", ""),
        stored.get("since", ""),
    )


def _draining_condition(stored: Stored, live: int) -> dict[str, Any]:
    """What is stored is how much there was when the drain began.

    The rest is counted when it is read.
    """
    most = max(live, int(stored.get("total", live)))
    message = f"Draining: {live} of {counted(most, 'podgroup')} left."
    return {
        **condition("Draining", "QueueClosing", message, stored.get("since", "")),
        "left": live,
        "total": most,
    }


def _suspension_message(name: str, standing: DerivedState) -> str:
    if standing.held_by == name:
        whose = "by its own request"
    else:
        whose = f"because {standing.held_by} is suspended"
    if standing.state is QueueState.SUSPENDED:
        running = ""
    else:
        running = f"; it is {standing.state}"
    return f"Nothing is started here {whose}{running}."
