"""One scheduling session for real: claim, read, think, write, tell."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from scheduler import notify
from scheduler.conf import conf, is_kubernetes, is_shadow
from scheduler.domain.queues import ROOT
from scheduler.domain.resources import NOTHING
from scheduler.domain.snapshot import Queue
from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome, QueueFigures
from scheduler.engine.report.figures import differing
from scheduler.garbage import undisturbed
from scheduler.logs import SESSIONS, known_as
from scheduler.models import ClusterState
from scheduler.models.clock import database_now
from scheduler.scenarios.policies import policy_of
from scheduler.selectors.cluster.mirror import may_decide
from scheduler.selectors.sessions.snapshot_sums import SumsDiffer
from scheduler.selectors.sessions.snapshots import Refreshed, ResidentSnapshot
from scheduler.services.jobs.lifecycle import tell_jobs_of_unknown
from scheduler.services.locks import alone_with_pods
from scheduler.services.queues.states import refresh_states
from scheduler.services.records import samples
from scheduler.services.records.change_log import ensure_own_change_log
from scheduler.services.records.events import EventNote, record_events
from scheduler.services.sessions import lease
from scheduler.services.sessions.claim import Claimed, Claims, fail
from scheduler.services.sessions.comparison import ShadowComparison
from scheduler.services.sessions.replay import keep_session
from scheduler.services.sessions.shadow import without_decisions
from scheduler.services.sessions.stopwatch import Stopwatch
from scheduler.services.sessions.write_figures import write_figures
from scheduler.services.sessions.write_outcome import write_outcome
from scheduler.services.sessions.written import Written

logger = logging.getLogger(__name__)
session_logger = logging.getLogger(SESSIONS)


@dataclass(frozen=True, slots=True)
class SessionResult:
    number: int
    written: Written
    refreshed: Refreshed
    durations: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ReusableOutcome:
    """An outcome that changed nothing and that no clock had a part in.

    The next session would come to the same, as long as nothing changes.
    """

    outcome: Outcome
    policy_text: str | None
    paused: bool


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the last session found and wrote: the next one writes only what differs from it.

    The empty value remembers nothing, and so everything is written again.
    """

    figures: Mapping[str, QueueFigures] = field(default_factory=dict)
    queues: tuple[Queue, ...] = ()
    totals: Mapping[str, Any] = field(default_factory=dict)
    reusable: ReusableOutcome | None = None


def is_due(state: ClusterState, now: datetime) -> bool:
    """The stored period has passed, or somebody asked for a session since the last one began."""
    last = state.last_session_at
    if last is None or last > now:  # the clock was put back: what it said before counts no more
        return True
    if state.session_wanted_at is not None and state.session_wanted_at > last:
        return True
    # Ticks come at a fixed base and never quite on time: half a tick early is on time.
    early = conf().tick_seconds / 2
    return now - last >= timedelta(seconds=state.period_seconds - early)


def pause_before(state: ClusterState, now: datetime) -> float:
    """Seconds to wait first, so that a storm of requests makes a few sessions and not hundreds.

    Whoever asks in the meantime is served by the same session.
    """
    if state.last_session_at is None:
        return 0.0
    gap = conf().gap_seconds
    left = (state.last_session_at - now).total_seconds() + gap
    return min(gap, max(0.0, left))


class SessionRunner:
    """Lives as long as its worker, and keeps the snapshot between sessions.

    Not for two threads at once.
    """

    def __init__(self, holder: str | None = None) -> None:
        self.holder = holder or lease.name_of_this_process()
        self.process = os.getpid()
        self.resident = ResidentSnapshot()
        self._claims = Claims(self.holder)
        self._remembered = Remembered()
        self._comparison = ShadowComparison()
        self._sessions = 0  # how many began here: the sums are checked every so many

    def forget(self) -> None:
        """The next session reads and writes everything again."""
        self.resident.forget()
        self._remembered = Remembered()
        self._comparison.forget()

    def run_if_due(self, trigger: str = "tick") -> SessionResult | None:
        """A session, unless it is too early or another worker has the lease."""
        # By the clock of the database: each worker may have another time of day.
        state = ClusterState.objects.annotate(asked_at=Now()).get(pk=1)
        now = state.asked_at
        if not is_due(state, now) or not may_decide():
            return None
        time.sleep(pause_before(state, now))
        return self.run(trigger)

    def run(self, trigger: str = "asked") -> SessionResult | None:
        """A session now; None while another worker has the lease."""
        watch = Stopwatch()

        # 1. Claim: the lease, and a row for this session
        claimed = self._claims.begin(trigger)
        if claimed is None:
            return None
        watch.lap("claim")
        if claimed.held.taken_over:
            self.forget()  # another worker may have written what this one does not know of

        with known_as(session=claimed.session.number):
            return self._run_and_log(claimed, watch)

    def _run_and_log(self, claimed: Claimed, watch: Stopwatch) -> SessionResult | None:
        try:
            with undisturbed(), lease.Keeper(claimed.held, conf().lease_seconds) as keeper:
                result = self._run_claimed(claimed, watch, keeper)
        except lease.LeaseLost:
            logger.warning("session %s lost its lease and wrote nothing", claimed.session.number)
            return None
        except Exception as error:
            self.forget()
            logger.exception("session %s failed", claimed.session.number)
            fail(claimed, error)
            raise
        _log_decided(result)
        return result

    def _run_claimed(
        self,
        claimed: Claimed,
        watch: Stopwatch,
        keeper: lease.Keeper,
    ) -> SessionResult:
        # 2. Read: what changed since the last session
        refreshed = self._read(claimed)
        watch.lap("read")
        keeper.check()

        # 3. Think: the engine, unless it would only repeat the last outcome
        reusable = self._reusable(claimed, refreshed)
        if reusable:
            outcome = reusable.outcome
        else:
            outcome = self._think(claimed, watch)
        watch.lap("think")
        keeper.check()

        # 4. Write: decisions, reasons and figures, and the end of the session, in one transaction
        # 5. Tell: open pages, as soon as that transaction is committed
        if reusable:
            written = self._end_unchanged(claimed, refreshed, watch)
        else:
            written = self._write_and_tell(claimed, outcome, refreshed, watch)

        # 6. Remember: what the next session compares with
        self._keep_for_replay(claimed, outcome)
        if not reusable:
            self._remember(claimed, outcome, written)
        self._claims.is_in_order()
        return SessionResult(claimed.session.number, written, refreshed, watch.parts)

    # Read

    def _read(self, claimed: Claimed) -> Refreshed:
        """Brings the resident snapshot up to the database, and up to this session's time."""
        refreshed = self._refresh()
        snapshot = self.resident.snapshot
        snapshot.session = claimed.session.number
        snapshot.paused = claimed.paused
        snapshot.is_watched = is_shadow()
        snapshot.taken_at = round(claimed.session.started_at.timestamp(), 3)
        return refreshed

    def _refresh(self) -> Refreshed:
        self._sessions += 1
        if self.resident.position is None:
            ensure_own_change_log()
        try:
            return self.resident.refresh(check_sums=self._sessions % conf().check_sums_every == 0)
        except SumsDiffer as difference:
            logger.error("%s; reading everything again", difference)
            _record_difference(difference)
            self.forget()
            return self.resident.refresh()

    # Think

    def _reusable(self, claimed: Claimed, refreshed: Refreshed) -> ReusableOutcome | None:
        """The last outcome, if this session would come to the same.

        That is so if it would read the same, and the last one did not ask for the time.
        """
        last = self._remembered.reusable
        if last is None or refreshed.changed or refreshed.reloaded:
            return None
        if last.policy_text != claimed.policy_text or last.paused != claimed.paused:
            return None
        return last

    def _think(self, claimed: Claimed, watch: Stopwatch) -> Outcome:
        snapshot = self.resident.snapshot
        policy = policy_of(claimed.policy_text)
        snapshot.clock_was_read = False
        outcome = run_session(snapshot, policy, ended=watch.lap_action)
        if (outcome.binds or outcome.evictions) and _is_paused_now():
            # Somebody paused since this session began: what it decided is not done, and
            # everybody is told why.
            snapshot.paused = True
            outcome = run_session(snapshot, policy)
        if is_shadow():
            self._comparison.look(self.resident, outcome, claimed.session)
            return without_decisions(outcome)
        return outcome

    # Write and tell

    def _end_unchanged(self, claimed: Claimed, refreshed: Refreshed, watch: Stopwatch) -> Written:
        """What was found is in the database already."""
        written = Written()
        self._comparison.nothing_changed(claimed.session)
        watch.lap("write")
        self._end(claimed, watch, _counts(written, refreshed))  # one statement
        notify.cluster_changed()
        return written

    def _write_and_tell(
        self,
        claimed: Claimed,
        outcome: Outcome,
        refreshed: Refreshed,
        watch: Stopwatch,
    ) -> Written:
        with transaction.atomic():
            lease.assert_held(claimed.held)
            alone_with_pods()
            written = self._write(claimed, outcome)
            watch.lap("write")
            self._end(claimed, watch, _counts(written, refreshed, outcome.preemption_attempts))
            bound = {bind.podgroup for bind in written.bound}
            notify.session_finished(queues=written.queues, jobs=written.podgroups | bound)
        return written

    def _write(self, claimed: Claimed, outcome: Outcome) -> Written:
        now = database_now()
        session = claimed.session
        self._comparison.write()
        written = write_outcome(
            self.resident,
            outcome,
            session_id=session.pk,
            number=session.number,
            now=now,
        )
        changed = self._changed_figures(outcome)
        queue_ids = {}
        for pk, queue in self.resident.queues.items():
            queue_ids[queue.name] = pk
        write_figures(changed, queue_ids, session.number)
        samples.sample(self.resident, changed, now)
        if written.unknown and not is_kubernetes():  # there another controller has the jobs
            tell_jobs_of_unknown(written.unknown)
        if written.completed:
            refresh_states()
        written.queues = set(changed)
        self._write_totals(_totals_of(outcome))
        return written

    def _changed_figures(self, outcome: Outcome) -> dict[str, QueueFigures]:
        """Of each queue whose figures, settings or state are not what the last session saw."""
        names = {*differing(outcome.queues, self._remembered.figures), *self._changed_queues()}
        figures: dict[str, QueueFigures] = {}
        for name in sorted(names):
            if name in outcome.queues:
                figures[name] = outcome.queues[name]
        return figures

    def _changed_queues(self) -> set[str]:
        now = self.resident.snapshot.queues
        if now is self._remembered.queues:
            return set()
        before = {queue.name: queue for queue in self._remembered.queues}
        changed: set[str] = set()
        for queue in now:
            if before.get(queue.name) != queue:
                changed.add(queue.name)
        return changed

    def _write_totals(self, totals: Mapping[str, Any]) -> None:
        if totals != self._remembered.totals:  # nothing is written that did not change
            ClusterState.objects.filter(pk=1).update(**totals)

    def _end(self, claimed: Claimed, watch: Stopwatch, counts: Mapping[str, Any]) -> None:
        self._claims.end(claimed, watch.durations, counts, timezone.now())

    # Remember

    def _keep_for_replay(self, claimed: Claimed, outcome: Outcome) -> None:
        keep_session(
            self.resident,
            policy_of(claimed.policy_text),
            claimed.session.number,
            claimed.session.started_at,
            outcome,
            wanted=claimed.keep,
        )

    def _remember(self, claimed: Claimed, outcome: Outcome, written: Written) -> None:
        """Only after the commit: the next session compares with what was said and written."""
        snapshot = self.resident.snapshot
        for said in outcome.said:
            if said.podgroup not in written.broken:
                snapshot.groups.said[said.row] = said.fingerprint
        self._remembered = Remembered(
            figures=outcome.queues,
            queues=snapshot.queues,
            totals=_totals_of(outcome),
            reusable=self._reusable_later(claimed, outcome),
        )

    def _reusable_later(self, claimed: Claimed, outcome: Outcome) -> ReusableOutcome | None:
        snapshot = self.resident.snapshot
        was_paused_meanwhile = snapshot.paused != claimed.paused
        if not outcome.is_quiet or was_paused_meanwhile or snapshot.clock_was_read:
            return None
        return ReusableOutcome(outcome, claimed.policy_text, claimed.paused)


def _log_decided(result: SessionResult) -> None:
    fields = {"bound": len(result.written.bound), "evicted": len(result.written.evicted)}
    if any(fields.values()):
        session_logger.info(
            "The session placed %(bound)s pods and evicted %(evicted)s",
            fields,
            extra={"fields": fields},
        )


def _is_paused_now() -> bool:
    return ClusterState.objects.filter(pk=1, paused=True).exists()


def _record_difference(difference: SumsDiffer) -> None:
    note = EventNote(
        "Cluster",
        "scheduler",
        "ResidentSnapshotDiffered",
        str(difference),
        warning=True,
    )
    record_events([note], timezone.now())


def _totals_of(outcome: Outcome) -> dict[str, Any]:
    """What the row of the cluster says of the last session."""
    root = outcome.queues.get(ROOT)
    return {
        "total": outcome.total,
        "warnings": list(outcome.warnings),
        "allocated": root.in_use if root else NOTHING,
        "promised": root.promised if root else NOTHING,
    }


def _counts(written: Written, refreshed: Refreshed, preemption_attempts: int = 0) -> dict[str, Any]:
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
    """What the scheduler worker calls on every tick.

    The process keeps its runner, and with it the snapshot.
    """
    global _runner
    is_forked = _runner is not None and _runner.process != os.getpid()
    if _runner is None or is_forked:  # a process that was forked from this one is another worker
        _runner = SessionRunner()
    return _runner.run_if_due(trigger)
