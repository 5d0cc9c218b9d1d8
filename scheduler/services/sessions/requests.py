"""When sessions run: brought forward, paused and resumed, faster or slower."""

from __future__ import annotations

import logging
import time

from celery import current_app
from django.db import InterfaceError, transaction
from django.db import OperationalError as DatabaseAway
from django.utils import timezone
from kombu.exceptions import OperationalError

from scheduler import notify
from scheduler.domain.access import Permission
from scheduler.models import ClusterState
from scheduler.models.bulk import execute
from scheduler.outages import Outage, in_a_line
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.locks import alone_with_pods
from scheduler.services.records import audit
from scheduler.services.records.events import EventNote, record_events

logger = logging.getLogger(__name__)

SHORTEST_PERIOD = 0.5
LONGEST_PERIOD = 3600.0
_LEAVE_ALONE_SECONDS = 5.0
_broker_away_until = 0.0
_broker_away = Outage(logger, "sessions can be asked for again")


def want_session() -> None:
    """Bring the next session forward: to be called by whatever gives it something to do.

    Many calls make one session.
    """
    # afterwards: many submissions at once must not wait for each other at the one row
    transaction.on_commit(_note_request, robust=True)


def _note_request() -> None:
    """What it follows from is committed: if the database went away since, the next tick will do."""
    try:
        is_first = _is_first_request()
    except (DatabaseAway, InterfaceError) as problem:
        logger.warning("a session was not asked for, the next tick will do: %s", in_a_line(problem))
        return
    if is_first:
        _ask_worker()


def _is_first_request() -> bool:
    """Asked after every submission, so it is written out."""
    served = "session_wanted_at IS NULL OR session_wanted_at <= last_session_at"
    changed = execute(
        f"UPDATE scheduler_clusterstate SET session_wanted_at = %s WHERE id = 1 AND ({served})",
        [timezone.now()],
    )
    return bool(changed)


def _ask_worker() -> None:
    """A broker that is away is no reason to fail or to wait: the next tick comes anyway."""
    global _broker_away_until
    if time.monotonic() < _broker_away_until:
        return
    try:  # by its name: tasks stand above services
        current_app.send_task(
            "scheduler.tasks.run_session",
            kwargs={"trigger": "asked"},
            expires=1,
            retry=False,
        )
    except OperationalError as error:
        _broker_away_until = time.monotonic() + _LEAVE_ALONE_SECONDS
        _broker_away.noticed("could not ask for a session, the next tick will do: %s", error)
    else:
        _broker_away.over()


@transaction.atomic
def pause_scheduling(*, by: Actor = SYSTEM, reason: str = "") -> bool:
    """No session decides anything until it is resumed. False if it was paused already."""
    access.require_cluster(by, Permission.OPERATE, "pause scheduling")
    alone_with_pods()
    now = timezone.now()
    running = ClusterState.objects.filter(pk=1, paused=False)
    if not running.update(paused=True, paused_by=by.name, paused_at=now, pause_reason=reason):
        return False
    message = f"{by.name} paused scheduling" + (f": {reason}" if reason else "")
    record_events(
        [EventNote("Cluster", "scheduler", "SchedulingPaused", message, warning=True)], now
    )
    audit.record(
        by,
        "PauseScheduling",
        "Cluster",
        "scheduler",
        before={"paused": False},
        after={"paused": True},
        reason=reason,
    )
    want_session()
    notify.cluster_changed()
    return True


@transaction.atomic
def resume_scheduling(*, by: Actor = SYSTEM, reason: str = "") -> bool:
    """False if it was not paused."""
    access.require_cluster(by, Permission.OPERATE, "resume scheduling")
    if not ClusterState.objects.filter(pk=1, paused=True).update(
        paused=False,
        paused_by="",
        paused_at=None,
        pause_reason="",
    ):
        return False
    message = f"{by.name} resumed scheduling" + (f": {reason}" if reason else "")
    record_events([EventNote("Cluster", "scheduler", "SchedulingResumed", message)], timezone.now())
    audit.record(
        by,
        "ResumeScheduling",
        "Cluster",
        "scheduler",
        before={"paused": True},
        after={"paused": False},
        reason=reason,
    )
    want_session()
    notify.cluster_changed()
    return True


@transaction.atomic
def set_period(seconds: float, *, by: Actor = SYSTEM) -> None:
    """How far apart sessions are; takes effect at the next tick.

    Raises `ValueError` outside the bounds.
    """
    access.require_cluster(by, doing="change the period of sessions")
    if not SHORTEST_PERIOD <= seconds <= LONGEST_PERIOD:
        raise ValueError(
            f"a period of {seconds:g} s is not possible; give {SHORTEST_PERIOD:g} to "
            f"{LONGEST_PERIOD:g} seconds"
        )
    before = ClusterState.objects.values_list("period_seconds", flat=True).get(pk=1)
    ClusterState.objects.filter(pk=1).update(period_seconds=seconds)
    audit.record(
        by,
        "UpdateCluster",
        "Cluster",
        "scheduler",
        before={"periodSeconds": before},
        after={"periodSeconds": seconds},
    )
    notify.cluster_changed()
