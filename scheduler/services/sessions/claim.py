"""The beginning and the end of a session in the database: the lease, and a row of its own.

At most one row is Running.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, QuerySet
from django.utils import timezone

from scheduler.conf import conf
from scheduler.models import Lease, PolicyVersion, SchedulingSession
from scheduler.models.bulk import fetch_as_planned
from scheduler.models.clock import clock_in_sql, database_now
from scheduler.models.prepared import PreparedInsert, PreparedUpdate, slot
from scheduler.services.sessions import lease


@dataclass(frozen=True, slots=True)
class Claimed:
    """A session that may run, and how the cluster was set when it began."""

    held: lease.Held
    session: SchedulingSession
    paused: bool
    policy_text: str | None  # None: the built-in policy
    keep: bool  # somebody asked for this session to be kept


_BEGUN = PreparedInsert(SchedulingSession)


def _end_of_mine() -> tuple[QuerySet[SchedulingSession], dict[str, Any]]:
    lease_of_mine = Lease.objects.filter(
        name=lease.SCHEDULER, holder=slot("holder"), token=slot("token")
    )
    mine = SchedulingSession.objects.filter(
        Exists(lease_of_mine), pk=slot("session"), state=SchedulingSession.RUNNING
    )
    written = {name: slot(name) for name in ("finished_at", "durations", "counts")}
    return mine.order_by(), {"state": SchedulingSession.DONE, **written}


_DONE = PreparedUpdate(_end_of_mine)


def _stored(name: str, value: Any) -> Any:
    """In the form in which the model's field keeps it."""
    field: Any = SchedulingSession._meta.get_field(name)
    return field.get_db_prep_save(value, connection)


class Claims:
    """Of one worker, for one session after the other."""

    def __init__(self, holder: str) -> None:
        self.holder = holder
        self._held: lease.Held | None = None
        # its last session was closed, so that nobody's can have been left behind while it held the
        # lease
        self._is_in_order = False

    def begin(self, trigger: str) -> Claimed | None:
        """None while another worker holds the lease."""
        last = self._held
        is_in_order = self._is_in_order
        self._is_in_order = False
        if last is not None and is_in_order and connection.vendor == "postgresql":
            claimed = _begin_at_once(last, trigger)
            if claimed is not None:
                return claimed
        with transaction.atomic():
            held = lease.acquire(self.holder, conf().lease_seconds, renewed=last)
            if held is None:
                return None
            if held.taken_over or not is_in_order:
                _close_orphans()
            self._held = held
            claimed = _claimed(held, _count_on(), trigger)
            _BEGUN.insert([claimed.session])
        return claimed

    def end(
        self,
        claimed: Claimed,
        durations: Mapping[str, Any],
        counts: Mapping[str, Any],
        now: datetime,
    ) -> None:
        """Close its row, together with whatever else it writes or alone. Raises `LeaseLost`."""
        held = claimed.held
        if not _DONE.run(
            session=claimed.session.pk,
            holder=held.holder,
            token=held.token,
            finished_at=_stored("finished_at", now),
            durations=_stored("durations", dict(durations)),
            counts=_stored("counts", dict(counts)),
        ):
            raise lease.LeaseLost(f"session {claimed.session.number} was taken over")

    def is_in_order(self) -> None:
        """To be called when the end of the session is committed."""
        self._is_in_order = True


_SETTINGS = (
    "last_session, last_session_at, paused, policy_id, (SELECT v.text FROM scheduler_policyversion "
    "v WHERE v.id = scheduler_clusterstate.policy_id), keep_sessions"
)


def _counting(clock: str, condition: str = "") -> str:
    """Counts on, and gives the number and time of this session, and the settings that it goes by:
    one statement, so that nobody comes in between.
    """
    return (
        "UPDATE scheduler_clusterstate SET last_session = last_session + 1, "
        f"last_session_at = {clock}, "
        # A request from before the clock was put back is served by this session, not by every one
        # until that time comes again.
        f"session_wanted_at = CASE WHEN session_wanted_at > {clock} THEN NULL "
        f"ELSE session_wanted_at END WHERE id = 1 {condition} RETURNING {_SETTINGS}"
    )


def _count_on() -> tuple[Any, ...]:
    clock, now = clock_in_sql()
    number, at, *settings = fetch_as_planned(_counting(clock), [*now, *now])[0]
    if now:
        at = now[0]  # SQLite would give it as text
    return number, at, *settings


_AT_ONCE = (
    "WITH held AS (UPDATE scheduler_lease SET expires_at = statement_timestamp() + %s "
    "WHERE name = %s AND holder = %s AND token = %s RETURNING token), "
    "counted (number, at, paused, policy, text, keep) AS ("
    f"{_counting('statement_timestamp()', 'AND EXISTS (SELECT FROM held)')}), "
    "begun AS (INSERT INTO scheduler_schedulingsession (number, state, worker, fencing_token, "
    "policy_id, started_at, durations, counts, message, trigger) SELECT number, 'Running', %s, %s, "
    "policy, at, '{}'::jsonb, '{}'::jsonb, '', %s FROM counted RETURNING id) "
    "SELECT counted.*, begun.id FROM counted, begun"
)
"""The lease renewed, the session counted and its row begun: nothing of it, if the lease is gone."""


def _begin_at_once(held: lease.Held, trigger: str) -> Claimed | None:
    """On PostgreSQL, for whoever had the lease last: one statement instead of a transaction.

    None if the lease is gone.
    """
    duration = timedelta(seconds=conf().lease_seconds)
    mine = [held.holder, held.token]
    found = fetch_as_planned(_AT_ONCE, [duration, lease.SCHEDULER, *mine, *mine, trigger])
    if not found:
        return None
    *counted, key = found[0]
    still_held = lease.Held(held.holder, held.token, taken_over=False)
    claimed = _claimed(still_held, counted, trigger)
    claimed.session.pk = key
    claimed.session._state.adding = False
    claimed.session._state.db = connection.alias
    return claimed


def _claimed(held: lease.Held, counted: Sequence[Any], trigger: str) -> Claimed:
    number, now, paused, policy, text, keep = counted
    if policy is not None and text is None:
        # Replaced while that statement waited: it sees which policy it is, but no newer rows.
        text = PolicyVersion.objects.values_list("text", flat=True).get(pk=policy)
    session = SchedulingSession(
        number=number,
        worker=held.holder,
        fencing_token=held.token,
        started_at=now,
        policy_id=policy,
        trigger=trigger,
    )
    return Claimed(held, session, bool(paused), text, keep > 0)


def _close_orphans() -> None:
    """Whoever holds the lease is alone: a row that still runs is one that somebody left behind."""
    orphans = SchedulingSession.objects.filter(state=SchedulingSession.RUNNING)
    orphans.update(
        state=SchedulingSession.TAKEN_OVER,
        finished_at=database_now(),
        message="its worker died or lost the lease",
    )


def fail(claimed: Claimed, error: Exception) -> None:
    rows = SchedulingSession.objects.filter(pk=claimed.session.pk, state=SchedulingSession.RUNNING)
    rows.update(
        state=SchedulingSession.FAILED,
        finished_at=timezone.now(),
        message=f"{type(error).__name__}: {error}"[:2000],
    )
