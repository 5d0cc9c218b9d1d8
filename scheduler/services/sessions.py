"""One scheduling session for real: claim, read, think, write, tell."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from scheduler import notify
from scheduler.conf import conf
from scheduler.domain.queues import ROOT
from scheduler.domain.resources import NOTHING
from scheduler.domain.snapshot import Queue
from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome, QueueFigures
from scheduler.models import ClusterState, SchedulingSession
from scheduler.selectors.snapshots import Refreshed, ResidentSnapshot, SumsDiffer
from scheduler.services import history, lease
from scheduler.services.events import EventNote, record_events
from scheduler.services.job_life import tell_jobs_of_unknown
from scheduler.services.locks import alone_with_pods
from scheduler.services.policies import policy_in_force
from scheduler.services.replays import keep_session
from scheduler.services.states import refresh_states
from scheduler.services.writeback import Written, write_figures, write_outcome

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Stopwatch:
    """Milliseconds by part, in the order of their happening."""

    parts: dict[str, float] = field(default_factory=dict)
    _since: float = field(default_factory=time.perf_counter)

    def lap(self, part: str) -> None:
        now = time.perf_counter()
        self.parts[part] = round((now - self._since) * 1000, 3)
        self._since = now

    @property
    def total(self) -> float:
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True)
class SessionResult:
    number: int
    written: Written
    refreshed: Refreshed
    durations: Mapping[str, float]


def is_due(state: ClusterState, now: datetime) -> bool:
    """The stored period has passed, or somebody asked for a session since the last one began."""
    if state.last_session_at is None:
        return True
    if state.session_wanted_at is not None and state.session_wanted_at > state.last_session_at:
        return True
    # Ticks come at a fixed base and never quite on time: half a tick early is on time.
    return now - state.last_session_at >= timedelta(seconds=state.period_seconds - conf().tick_seconds / 2)


def pause_before(state: ClusterState, now: datetime) -> float:
    """Seconds to wait first, so that a storm of requests makes a few sessions and not hundreds: whoever asks meanwhile is served too."""
    if state.last_session_at is None:
        return 0.0
    return max(0.0, (state.last_session_at - now).total_seconds() + conf().gap_seconds)


class SessionRunner:
    """Lives as long as its worker, and keeps the snapshot between sessions. Not for two threads at once."""

    def __init__(self, holder: str | None = None) -> None:
        self.holder = holder or lease.name_of_this_process()
        self.process = os.getpid()
        self.resident = ResidentSnapshot()
        self._figures: dict[str, tuple[Queue, QueueFigures]] = {}
        self._seen: dict[str, Any] = {}
        self._sessions = 0

    def run_if_due(self, trigger: str = "tick") -> SessionResult | None:
        """A session, unless it is too early, another is running, or another worker has the lease."""
        state, now = ClusterState.objects.get(pk=1), timezone.now()
        if not is_due(state, now):
            return None
        time.sleep(pause_before(state, now))
        return self.run(trigger)

    def run(self, trigger: str = "asked") -> SessionResult | None:
        claimed = self._claim(trigger)
        if claimed is None:
            return None
        held, session = claimed
        try:
            return self._run(held, session)
        except lease.LeaseLost:
            logger.warning("session %s lost its lease and wrote nothing", session.number)
            self.forget()
            return None
        except Exception as error:
            self._fail(session, error)
            raise

    def forget(self) -> None:
        """The next session reads everything anew."""
        self.resident.position = None
        self._figures, self._seen = {}, {}

    def _claim(self, trigger: str) -> tuple[lease.Held, SchedulingSession] | None:
        """The lease, and a row of its own. Whoever holds the lease is alone: a row that still runs is one that somebody left behind."""
        with transaction.atomic():
            held = lease.acquire(self.holder, conf().lease_seconds)
            if held is None:
                return None
            now = timezone.now()
            self._close_orphans(now)
            state = ClusterState.objects.select_for_update().get(pk=1)
            state.last_session += 1
            state.last_session_at = now
            state.save(update_fields=["last_session", "last_session_at"])
            session = SchedulingSession.objects.create(
                number=state.last_session,
                worker=held.holder,
                fencing_token=held.token,
                started_at=now,
                policy_id=state.policy_id,
                trigger=trigger,
            )
        return held, session

    def _close_orphans(self, now: datetime) -> None:
        orphans = SchedulingSession.objects.filter(state=SchedulingSession.RUNNING)
        orphans.update(state=SchedulingSession.TAKEN_OVER, finished_at=now, message="its worker died or lost the lease")

    def _run(self, held: lease.Held, session: SchedulingSession) -> SessionResult:
        watch = Stopwatch()
        refreshed = self._refresh()
        watch.lap("read")
        snapshot = self.resident.snapshot
        state = ClusterState.objects.select_related("policy").get(pk=1)
        snapshot.session, snapshot.paused, snapshot.taken_at = session.number, state.paused, round(session.started_at.timestamp(), 3)
        policy = policy_in_force(state)
        watch.lap("policy")
        self._stay_alone(held, watch)
        outcome = run_session(snapshot, policy)
        watch.lap("think")
        self._stay_alone(held, watch)
        written = self._write(held, session, outcome, refreshed, watch)
        keep_session(self.resident, policy, session.number, session.started_at, outcome, wanted=state.keep_sessions > 0)
        self._remember(outcome, written)
        return SessionResult(session.number, written, refreshed, watch.parts)

    def _stay_alone(self, held: lease.Held, watch: Stopwatch) -> None:
        """A session that takes long renews its lease on the way; one that was stopped for too long finds that it can not."""
        if watch.total > conf().lease_seconds * 1000 / 4:
            lease.renew(held, conf().lease_seconds)

    def _refresh(self) -> Refreshed:
        self._sessions += 1
        check = self._sessions % conf().check_sums_every == 0
        try:
            return self.resident.refresh(check_sums=check)
        except SumsDiffer as difference:
            logger.error("%s; reading everything anew", difference)
            note = EventNote("Cluster", "scheduler", "ResidentSnapshotDiffered", str(difference), warning=True)
            record_events([note], timezone.now())
            self._figures = {}
            return self.resident.reload()

    def _write(self, held: lease.Held, session: SchedulingSession, outcome: Outcome, refreshed: Refreshed, watch: Stopwatch) -> Written:
        now = timezone.now()
        with transaction.atomic():
            lease.assert_held(held)
            alone_with_pods()
            written = write_outcome(self.resident, outcome, session_id=session.pk, number=session.number, now=now)
            changed = self._changed_figures(outcome)
            queue_ids = {queue.name: pk for pk, queue in self.resident.queues.items()}
            write_figures(changed, queue_ids, session.number)
            history.sample(self.resident, changed, now)
            if written.unknown:
                tell_jobs_of_unknown(written.unknown)
            if written.completed:
                refresh_states()
            written.queues = set(changed)
            watch.lap("write")
            self._close(session, outcome, refreshed, written, watch, now)
            notify.session_finished(queues=written.queues, jobs=written.podgroups | {bind.podgroup for bind in written.bound})
        return written

    def _changed_figures(self, outcome: Outcome) -> dict[str, QueueFigures]:
        """Of each queue whose figures, settings or state are not what the last session saw."""
        queues = self.resident.snapshot.queues
        return {queue.name: figures for queue in queues if (figures := outcome.queues.get(queue.name)) and self._is_news(queue, figures)}

    def _is_news(self, queue: Queue, figures: QueueFigures) -> bool:
        return self._figures.get(queue.name) != (queue, figures)

    def _remember(self, outcome: Outcome, written: Written) -> None:
        """Only after the commit: what was said and written is what the next session compares with."""
        self._figures = {
            queue.name: (queue, outcome.queues[queue.name]) for queue in self.resident.snapshot.queues if queue.name in outcome.queues
        }
        for said in outcome.said:
            if said.podgroup not in written.broken:
                self.resident.snapshot.groups.said[said.row] = said.fingerprint

    def _close(
        self, session: SchedulingSession, outcome: Outcome, refreshed: Refreshed, written: Written, watch: Stopwatch, now: datetime
    ) -> None:
        counts: dict[str, Any] = {
            "binds": len(written.bound),
            "evictions": len(written.evicted),
            "lost": written.lost,
            "podgroups": len(written.podgroups),
            "queues": len(written.queues),
            "changedRows": refreshed.changed,
            "reloaded": refreshed.reloaded,
        }
        open_still = SchedulingSession.objects.filter(pk=session.pk, state=SchedulingSession.RUNNING)
        open_still.update(state=SchedulingSession.DONE, finished_at=now, durations=watch.parts, counts=counts)
        root = outcome.queues.get(ROOT)
        seen = {"total": outcome.total, "warnings": list(outcome.warnings), "allocated": root.allocated if root else NOTHING}
        if seen != self._seen:  # nothing is written that did not change
            ClusterState.objects.filter(pk=1).update(**seen)
            transaction.on_commit(partial(setattr, self, "_seen", seen))

    def _fail(self, session: SchedulingSession, error: Exception) -> None:
        self.forget()
        logger.exception("session %s failed", session.number)
        rows = SchedulingSession.objects.filter(pk=session.pk, state=SchedulingSession.RUNNING)
        rows.update(state=SchedulingSession.FAILED, finished_at=timezone.now(), message=f"{type(error).__name__}: {error}"[:2000])


_runner: SessionRunner | None = None


def run_scheduling_session(trigger: str = "tick") -> SessionResult | None:
    """What the scheduler worker calls on every tick; keeps its runner, and with it the snapshot, in the process."""
    global _runner
    if _runner is None or _runner.process != os.getpid():  # a process that was forked from this one is another worker
        _runner = SessionRunner()
    return _runner.run_if_due(trigger)
