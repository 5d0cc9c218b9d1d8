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
from scheduler.engine.report.figures import differing
from scheduler.garbage import undisturbed
from scheduler.models import ClusterState
from scheduler.selectors.sessions.snapshots import Refreshed, ResidentSnapshot, SumsDiffer
from scheduler.services.jobs.lifecycle import tell_jobs_of_unknown
from scheduler.services.locks import alone_with_pods
from scheduler.services.queues.states import refresh_states
from scheduler.services.records import samples
from scheduler.services.records.change_log import ensure_own_change_log
from scheduler.services.records.events import EventNote, record_events
from scheduler.services.sessions import lease
from scheduler.services.sessions.claim import Claimed, Claims, fail
from scheduler.services.sessions.policies import policy_of
from scheduler.services.sessions.replay import keep_session
from scheduler.services.sessions.write_outcome import Written, write_figures, write_outcome

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Stopwatch:
    """Milliseconds by part, in the order of their happening."""

    parts: dict[str, float] = field(default_factory=dict)
    actions: dict[str, float] = field(default_factory=dict)  # of the part "think"
    _since: float = field(default_factory=time.perf_counter)
    _action_since: float = 0.0

    def lap(self, part: str) -> None:
        now = time.perf_counter()
        self.parts[part] = round((now - self._since) * 1000, 3)
        self._since = self._action_since = now

    def lap_action(self, action: str) -> None:
        """An action that a policy names twice has the sum of both."""
        now = time.perf_counter()
        self.actions[action] = round(
            self.actions.get(action, 0.0) + (now - self._action_since) * 1000, 3
        )
        self._action_since = now

    @property
    def durations(self) -> dict[str, Any]:
        """As they are stored: milliseconds by part, and below `actions` by action."""
        if self.actions:
            return {**self.parts, "actions": dict(self.actions)}
        return dict(self.parts)

    @property
    def total(self) -> float:
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True)
class SessionResult:
    number: int
    written: Written
    refreshed: Refreshed
    durations: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Standing:
    """An outcome that nothing follows from and that no clock had a part in: it stands until
    something changes.
    """

    outcome: Outcome
    policy_text: str | None
    paused: bool


def is_due(state: ClusterState, now: datetime) -> bool:
    """The stored period has passed, or somebody asked for a session since the last one began."""
    if (
        state.last_session_at is None or state.last_session_at > now
    ):  # the clock was put back: what it said before counts no more
        return True
    if state.session_wanted_at is not None and state.session_wanted_at > state.last_session_at:
        return True
    # Ticks come at a fixed base and never quite on time: half a tick early is on time.
    return now - state.last_session_at >= timedelta(
        seconds=state.period_seconds - conf().tick_seconds / 2
    )


def pause_before(state: ClusterState, now: datetime) -> float:
    """Seconds to wait first, so that a storm of requests makes a few sessions and not hundreds:
    whoever asks meanwhile is served too.
    """
    if state.last_session_at is None:
        return 0.0
    return min(
        conf().gap_seconds,
        max(0.0, (state.last_session_at - now).total_seconds() + conf().gap_seconds),
    )


class SessionRunner:
    """Lives as long as its worker, and keeps the snapshot between sessions.

    Not for two threads at once.
    """

    def __init__(self, holder: str | None = None) -> None:
        self.holder = holder or lease.name_of_this_process()
        self.process = os.getpid()
        self.resident = ResidentSnapshot()
        self._claims = Claims(self.holder)
        self._figures: Mapping[
            str, QueueFigures
        ] = {}  # what the last session found, and of which queues
        self._queues: tuple[Queue, ...] = ()
        self._seen: dict[str, Any] = {}
        self._standing: Standing | None = None
        self._sessions = 0

    def run_if_due(self, trigger: str = "tick") -> SessionResult | None:
        """A session, unless it is too early, another is running, or another worker has the lease."""
        state = ClusterState.objects.get(pk=1)
        now = timezone.now()
        if not is_due(state, now):
            return None
        time.sleep(pause_before(state, now))
        return self.run(trigger)

    def run(self, trigger: str = "asked") -> SessionResult | None:
        watch = Stopwatch()
        claimed = self._claims.begin(trigger)
        if claimed is None:
            return None
        watch.lap("claim")
        if claimed.held.taken_over:
            self.forget()  # somebody else may have written and said what this one does not know of
        try:
            with undisturbed(), lease.Keeper(claimed.held, conf().lease_seconds) as keeper:
                return self._run(claimed, watch, keeper)
        except lease.LeaseLost:
            logger.warning("session %s lost its lease and wrote nothing", claimed.session.number)
            return None
        except Exception as error:
            self.forget()
            logger.exception("session %s failed", claimed.session.number)
            fail(claimed, error)
            raise

    def forget(self) -> None:
        """The next session reads everything anew."""
        self.resident.position = None
        self._figures = {}
        self._seen = {}
        self._standing = None

    def _run(self, claimed: Claimed, watch: Stopwatch, keeper: lease.Keeper) -> SessionResult:
        refreshed = self._refresh()
        watch.lap("read")
        keeper.check()
        snapshot = self.resident.snapshot
        session = claimed.session
        snapshot.session = session.number
        snapshot.paused = claimed.paused
        snapshot.taken_at = round(session.started_at.timestamp(), 3)
        standing = self._standing if self._still_stands(claimed, refreshed) else None
        outcome = standing.outcome if standing else self._think(claimed, watch)
        watch.lap("think")
        keeper.check()
        written = (
            self._close_only(claimed, refreshed, watch)
            if standing
            else self._write(claimed, outcome, refreshed, watch)
        )
        keep_session(
            self.resident,
            policy_of(claimed.policy_text),
            session.number,
            session.started_at,
            outcome,
            wanted=claimed.keep,
        )
        if not standing:
            self._remember(claimed, outcome, written)
        self._claims.is_in_order()
        return SessionResult(session.number, written, refreshed, watch.parts)

    def _still_stands(self, claimed: Claimed, refreshed: Refreshed) -> bool:
        """Whether this session would come to the last one's outcome: it would read the same and did
        not ask for the time.
        """
        last = self._standing
        untouched = not refreshed.changed and not refreshed.reloaded
        return (
            untouched
            and last is not None
            and (last.policy_text, last.paused) == (claimed.policy_text, claimed.paused)
        )

    def _close_only(self, claimed: Claimed, refreshed: Refreshed, watch: Stopwatch) -> Written:
        """What was found is what stands in the database already."""
        with transaction.atomic():
            watch.lap("write")
            self._claims.end(
                claimed, watch.durations, _counts(Written(), refreshed, 0), timezone.now()
            )
            notify.cluster_changed()
        return Written()

    def _think(self, claimed: Claimed, watch: Stopwatch) -> Outcome:
        snapshot = self.resident.snapshot
        policy = policy_of(claimed.policy_text)
        snapshot.clock_was_read = False
        outcome = run_session(snapshot, policy, ended=watch.lap_action)
        if (outcome.binds or outcome.evictions) and ClusterState.objects.filter(
            pk=1, paused=True
        ).exists():
            snapshot.paused = True  # since this session began: what it decided is not done, and everybody is told why
            outcome = run_session(snapshot, policy)
        return outcome

    def _refresh(self) -> Refreshed:
        self._sessions += 1
        if self.resident.position is None:
            ensure_own_change_log()
        check = self._sessions % conf().check_sums_every == 0
        try:
            return self.resident.refresh(check_sums=check)
        except SumsDiffer as difference:
            logger.error("%s; reading everything anew", difference)
            note = EventNote(
                "Cluster", "scheduler", "ResidentSnapshotDiffered", str(difference), warning=True
            )
            record_events([note], timezone.now())
            self._figures = {}
            return self.resident.reload()

    def _write(
        self, claimed: Claimed, outcome: Outcome, refreshed: Refreshed, watch: Stopwatch
    ) -> Written:
        now = timezone.now()
        session = claimed.session
        with transaction.atomic():
            lease.assert_held(claimed.held)
            alone_with_pods()
            written = write_outcome(
                self.resident, outcome, session_id=session.pk, number=session.number, now=now
            )
            changed = self._changed_figures(outcome)
            queue_ids = {queue.name: pk for pk, queue in self.resident.queues.items()}
            write_figures(changed, queue_ids, session.number)
            samples.sample(self.resident, changed, now)
            if written.unknown:
                tell_jobs_of_unknown(written.unknown)
            if written.completed:
                refresh_states()
            written.queues = set(changed)
            self._note_totals(outcome)
            watch.lap("write")
            self._claims.end(
                claimed,
                watch.durations,
                _counts(written, refreshed, outcome.preemption_attempts),
                timezone.now(),
            )
            notify.session_finished(
                queues=written.queues,
                jobs=written.podgroups | {bind.podgroup for bind in written.bound},
            )
        return written

    def _changed_figures(self, outcome: Outcome) -> dict[str, QueueFigures]:
        """Of each queue whose figures, settings or state are not what the last session saw."""
        names = {*differing(outcome.queues, self._figures), *self._changed_queues()}
        return {name: outcome.queues[name] for name in sorted(names) if name in outcome.queues}

    def _changed_queues(self) -> set[str]:
        now = self.resident.snapshot.queues
        if now is self._queues:
            return set()
        before = {queue.name: queue for queue in self._queues}
        return {queue.name for queue in now if before.get(queue.name) != queue}

    def _note_totals(self, outcome: Outcome) -> None:
        root = outcome.queues.get(ROOT)
        seen = {
            "total": outcome.total,
            "warnings": list(outcome.warnings),
            "allocated": root.in_use if root else NOTHING,
            "promised": root.promised if root else NOTHING,
        }
        if seen != self._seen:  # nothing is written that did not change
            ClusterState.objects.filter(pk=1).update(**seen)
            transaction.on_commit(partial(setattr, self, "_seen", seen))

    def _remember(self, claimed: Claimed, outcome: Outcome, written: Written) -> None:
        """Only after the commit: what was said and written is what the next session compares with."""
        snapshot = self.resident.snapshot
        stands = (
            outcome.is_quiet and snapshot.paused == claimed.paused and not snapshot.clock_was_read
        )
        self._standing = Standing(outcome, claimed.policy_text, claimed.paused) if stands else None
        self._figures = outcome.queues
        self._queues = snapshot.queues
        for said in outcome.said:
            if said.podgroup not in written.broken:
                self.resident.snapshot.groups.said[said.row] = said.fingerprint


def _counts(written: Written, refreshed: Refreshed, preemption_attempts: int) -> dict[str, Any]:
    return {
        "binds": len(written.bound),
        "evictions": len(written.evicted),
        "preemptionAttempts": preemption_attempts,
        "lost": written.lost,
        "podgroups": len(written.podgroups),
        "queues": len(written.queues),
        "changedRows": refreshed.changed,
        "reloaded": refreshed.reloaded,
    }


_runner: SessionRunner | None = None


def run_scheduling_session(trigger: str = "tick") -> SessionResult | None:
    """What the scheduler worker calls on every tick; keeps its runner, and with it the snapshot, in
    the process.
    """
    global _runner
    if (
        _runner is None or _runner.process != os.getpid()
    ):  # a process that was forked from this one is another worker
        _runner = SessionRunner()
    return _runner.run_if_due(trigger)
