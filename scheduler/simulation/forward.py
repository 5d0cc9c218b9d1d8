"""The cluster as it is, run forward in simulated time: when each waiting gang would start, and whom
it would evict, if nobody submits anything more.

The first session is what the engine would decide now. How long pods run is given by the caller.
What nobody can know is left out: new jobs, failures, people.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

import numpy as np

from scheduler.domain.codes import StatusCode
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.tables import IS_SCHEDULED, NO_NODE, Floats, Rows
from scheduler.domain.workloads import Phase, PodStatus
from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome
from scheduler.engine.policy import Policy
from scheduler.simulation.world import GRACE, START_DELAY

COARSENESS: Final = 0.02
"""Sessions are at least this part of the way ahead apart: what lies an hour ahead is looked at
about once a minute. So a look at a whole day costs hundreds of sessions, not thousands.
"""


class Halt(StrEnum):
    """Why a run ahead ended."""

    ALL_STARTED = "allStarted"
    HORIZON = "horizon"
    STANDSTILL = "standstill"
    """Nothing will happen any more."""
    SESSIONS = "sessions"
    STOPPED = "stopped"
    """The caller said so."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a run ahead goes: simulated seconds, and sessions.

    `period` is the time between sessions.
    """

    seconds: float = 86_400.0
    sessions: int = 1000
    period: float = 1.0
    coarseness: float = COARSENESS
    until_all_started: bool = True
    """Ends when every gang that waited at the beginning has started. Else goes on to the end."""


@dataclass(frozen=True, slots=True)
class Progress:
    """`seconds` of simulated time lie behind, so many gangs have started and so many wait."""

    sessions: int
    seconds: float
    started: int
    waiting: int


KeepGoing = Callable[[Progress], bool]
"""Asked after each session; False ends the run."""


@dataclass(frozen=True, slots=True)
class ExpectedBind:
    at: float
    pod: str
    podgroup: str
    node: str


@dataclass(frozen=True, slots=True)
class ExpectedEviction:
    at: float
    pod: str
    podgroup: str
    queue: str
    beneficiary: str
    action: str


@dataclass(frozen=True, slots=True)
class Ahead:
    """What a run ahead saw. Moments are seconds as in `Snapshot.taken_at`.

    `starts` has the gangs that waited at the beginning, by key, with the moment of the session
    that places enough of their pods. `waiting` are those that did not start before `until`.
    `ends` are the pods that ended, by key. A pod can be bound and evicted more than once.
    """

    first: Outcome
    began: float
    until: float
    sessions: int
    halt: Halt
    starts: dict[str, float] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    binds: tuple[ExpectedBind, ...] = ()
    evictions: tuple[ExpectedEviction, ...] = ()
    ends: dict[str, float] = field(default_factory=dict)


def run_forward(
    snapshot: Snapshot,
    policy: Policy,
    run_seconds: Floats,
    limits: Limits | None = None,
    *,
    keep_going: KeepGoing | None = None,
    reporting: bool = False,
) -> Ahead:
    """Runs until every gang that waits has started, nothing is to come, or a limit is reached.

    The snapshot is not changed. `run_seconds` says for each row of its podgroups how long a pod
    runs from its start; NaN where nobody knows: such pods never end. A pod that has run for longer
    ends at once. With `reporting` the first outcome has reasons and figures. The same input gives
    the same answer.
    """
    run = _ForwardRun(snapshot.copy(), policy, run_seconds, limits or Limits())
    return run.run(keep_going, reporting)


def run_to(
    snapshot: Snapshot,
    policy: Policy,
    run_seconds: Floats,
    limits: Limits,
    keep_going: KeepGoing | None = None,
) -> Snapshot:
    """The cluster as it is expected to be at the end of the limits.

    Its `taken_at` is earlier where the run was cut. The snapshot given is not changed.
    """
    run = _ForwardRun(snapshot.copy(), policy, run_seconds, limits)
    ahead = run.run(keep_going, reporting=False)
    if ahead.halt is Halt.STANDSTILL:
        run.pass_until(run.began + limits.seconds)
    return run.snapshot


def waiting_gangs(snapshot: Snapshot) -> Rows:
    """Rows of the podgroups that have pods, and too few of them placed to have started."""
    groups = snapshot.groups
    counts = snapshot.aggregates.group_counts
    scheduled = counts[:, IS_SCHEDULED].sum(axis=1) + counts[:, StatusCode.BINDING]
    waits = groups.alive & (counts[:, StatusCode.PENDING] > 0)
    return np.flatnonzero(waits & (scheduled < np.maximum(groups.min_member, 1)))


def _may_go_on(outcome: Outcome) -> bool:
    """Whether a session that finds nothing new may still decide otherwise than this one."""
    if outcome.binds or outcome.evictions or outcome.reservations or outcome.starving:
        return True
    # A gang that was admitted has been tried in the same session.
    return any(change.new is not Phase.INQUEUE for change in outcome.phase_changes)


class _ForwardRun:
    """Events are (when, number, row of the pod). A pod that is evicted leaves its end void."""

    def __init__(
        self, snapshot: Snapshot, policy: Policy, run_seconds: Floats, limits: Limits
    ) -> None:
        self.snapshot = snapshot
        self.policy = policy
        self.limits = limits
        self.began = self.now = snapshot.taken_at
        self.sessions = 0
        self.starts: dict[str, float] = {}
        self.binds: list[ExpectedBind] = []
        self.evictions: list[ExpectedEviction] = []
        self.ends: dict[str, float] = {}
        self._seconds = run_seconds
        self._events: list[tuple[float, int, int]] = []
        self._due: dict[int, int] = {}  # pod -> the number of its event
        self._number = 0
        self._idle = 0  # sessions in a row that decided nothing
        self._waiting = set(waiting_gangs(snapshot).tolist())
        self._expect_what_is_under_way()

    def run(self, keep_going: KeepGoing | None, reporting: bool) -> Ahead:
        first = outcome = self._run_session(reporting=reporting)
        if reporting:  # phases are read from the snapshot, which does not stay as it is
            first = replace(first, phases=dict(first.phases))
        halt = None
        while halt is None:
            self._carry_out(outcome)
            if keep_going is not None and not keep_going(self._progress()):
                halt = Halt.STOPPED
                break
            moment = self._next_session(outcome)
            halt = self._halt_before(moment)
            if halt is None:
                self.pass_until(moment)
                outcome = self._run_session()
        if halt is Halt.HORIZON:
            self.pass_until(self.began + self.limits.seconds)
        return self._seen(first, halt)

    def _seen(self, first: Outcome, halt: Halt) -> Ahead:
        keys = self.snapshot.groups.key
        return Ahead(
            first=first,
            began=self.began,
            until=self.now,
            sessions=self.sessions,
            halt=halt,
            starts=self.starts,
            waiting=tuple(keys[row] for row in sorted(self._waiting)),
            binds=tuple(self.binds),
            evictions=tuple(self.evictions),
            ends=self.ends,
        )

    def _progress(self) -> Progress:
        passed = self.now - self.began
        return Progress(self.sessions, passed, len(self.starts), len(self._waiting))

    def _run_session(self, *, reporting: bool = False) -> Outcome:
        if self.sessions:
            self.snapshot.session += 1
        self.sessions += 1
        return run_session(self.snapshot, self.policy, reporting=reporting)

    # Time

    def _halt_before(self, moment: float) -> Halt | None:
        if self.limits.until_all_started and not self._waiting:
            return Halt.ALL_STARTED
        if math.isinf(moment):
            return Halt.STANDSTILL
        if moment > self.began + self.limits.seconds:
            return Halt.HORIZON
        if self.sessions >= self.limits.sessions:
            return Halt.SESSIONS
        return None

    def _next_session(self, outcome: Outcome) -> float:
        """With the last event of the step that follows now, so that far ahead many events share a
        session, and a gang that follows another one does not fall behind by a step each time.

        A step without events ends in a session only if the next may decide otherwise by itself.
        While such sessions decide nothing, each waits twice as long as the one before.
        """
        due = self._next_event()
        following = self.now + self.limits.period
        step = max(self.limits.period, (self.now - self.began) * self.limits.coarseness)
        self._count_idle(outcome)
        if due <= self.now + step:
            return max(following, self._last_event_by(self.now + step))
        if _may_go_on(outcome):
            return min(due, self.now + step * 2.0**self._idle)
        return due

    def _count_idle(self, outcome: Outcome) -> None:
        if outcome.binds or outcome.evictions:
            self._idle = 0
        else:
            self._idle = min(self._idle + 1, 20)

    def _last_event_by(self, moment: float) -> float:
        looked_at = []
        while self._next_event() <= moment:
            looked_at.append(heapq.heappop(self._events))
        for event in looked_at:
            heapq.heappush(self._events, event)
        return looked_at[-1][0]

    def _next_event(self) -> float:
        while self._events:
            at, number, pod = self._events[0]
            if self._due.get(pod) == number:
                return at
            heapq.heappop(self._events)
        return math.inf

    def _expect(self, at: float, pod: int) -> None:
        if math.isnan(at):
            return
        self._number += 1
        self._due[pod] = self._number
        heapq.heappush(self._events, (at, self._number, pod))

    def _expect_what_is_under_way(self) -> None:
        pods = self.snapshot.pods
        on_their_way = (pods.status == StatusCode.BINDING) | (pods.status == StatusCode.BOUND)
        running = np.flatnonzero((pods.status == StatusCode.RUNNING) | on_their_way)
        started = np.where(np.isnan(pods.started), self.now, pods.started)
        ends = np.maximum(started[running] + self._seconds[pods.group[running]], self.now)
        for pod, at in zip(running.tolist(), ends.tolist(), strict=True):
            self._expect(at, pod)
        for pod in np.flatnonzero(pods.status == StatusCode.RELEASING).tolist():
            self._expect(self.now + GRACE, pod)

    def pass_until(self, moment: float) -> None:
        """Everything that is due by then happens. No pod has two things to come, so those that end
        and those that come back are taken together.
        """
        ended: list[int] = []
        back: list[int] = []
        while (at := self._next_event()) <= moment:
            pod = heapq.heappop(self._events)[2]
            del self._due[pod]
            if self.snapshot.pods.status[pod] == StatusCode.RELEASING:
                back.append(pod)
            else:
                ended.append(pod)
                self.ends[self.snapshot.pods.key[pod]] = at
        self.now = self.snapshot.taken_at = moment
        self._end_pods(np.array(ended, dtype=np.intp))
        self._bring_back(np.array(back, dtype=np.intp))

    # Pods

    def _end_pods(self, rows: Rows) -> None:
        if not len(rows):
            return
        self.snapshot.change_pods(rows, status=int(PodStatus.SUCCEEDED))
        groups = np.unique(self.snapshot.pods.group[rows])
        counts = self.snapshot.aggregates.group_counts[groups]
        over = counts[:, StatusCode.SUCCEEDED] + counts[:, StatusCode.FAILED] == counts.sum(axis=1)
        self._remove_gangs(groups[over])

    def _remove_gangs(self, groups: Rows) -> None:
        """All their pods have ended."""
        if not len(groups):
            return
        members = np.isin(self.snapshot.pods.group, groups)
        self.snapshot.remove_pods(
            np.flatnonzero(members & (self.snapshot.pods.status != StatusCode.GONE))
        )
        self.snapshot.remove_groups(groups)

    def _bring_back(self, rows: Rows) -> None:
        """Evicted pods wait again, with all their work to do."""
        if not len(rows):
            return
        self.snapshot.change_pods(
            rows,
            status=int(PodStatus.PENDING),
            created=self.now,
            node=NO_NODE,
            borrowed=False,
            reserved_node=NO_NODE,
            reserved_until=-1,
        )

    # What a session decided

    def _carry_out(self, outcome: Outcome) -> None:
        self._evict(outcome)
        self._bind(outcome)
        self._keep_reservations(outcome)
        groups = self.snapshot.groups
        for change in outcome.phase_changes:
            groups.phase[change.row] = change.new
        for row, since in outcome.starving.items():
            groups.starving_since[row] = since

    def _evict(self, outcome: Outcome) -> None:
        if not outcome.evictions:
            return
        pods = self.snapshot.pods
        rows = np.array([eviction.row for eviction in outcome.evictions], dtype=np.intp)
        self.snapshot.change_pods(rows, status=int(PodStatus.RELEASING))
        pods.started[rows] = np.nan
        self.snapshot.groups.evictions[np.unique(pods.group[rows])] += 1
        for eviction in outcome.evictions:
            self._expect(self.now + GRACE, eviction.row)
            self.evictions.append(
                ExpectedEviction(
                    self.now,
                    eviction.pod,
                    eviction.podgroup,
                    eviction.queue,
                    eviction.beneficiary,
                    eviction.action,
                )
            )

    def _bind(self, outcome: Outcome) -> None:
        if not outcome.binds:
            return
        nodes = self.snapshot.nodes.rows
        rows = np.array([bind.row for bind in outcome.binds], dtype=np.intp)
        self.snapshot.change_pods(
            rows,
            node=np.array([nodes[bind.node] for bind in outcome.binds], dtype=np.int32),
            status=int(PodStatus.RUNNING),
            borrowed=np.array([bind.borrowed for bind in outcome.binds], dtype=np.bool_),
            started=self.now + START_DELAY,
        )
        for bind in outcome.binds:
            self.binds.append(ExpectedBind(self.now, bind.pod, bind.podgroup, bind.node))
        groups = self.snapshot.pods.group[rows]
        ends = self.now + START_DELAY + self._seconds[groups]
        for pod, at in zip(rows.tolist(), ends.tolist(), strict=True):
            self._expect(at, pod)
        self._note_starts(np.unique(groups))

    def _note_starts(self, groups: Rows) -> None:
        table = self.snapshot.groups
        counts = self.snapshot.aggregates.group_counts
        for row in groups.tolist():
            needed = max(1, int(table.min_member[row]))
            if row in self._waiting and counts[row, IS_SCHEDULED].sum() >= needed:
                self._waiting.discard(row)
                self.starts[table.key[row]] = self.now

    def _keep_reservations(self, outcome: Outcome) -> None:
        pods = self.snapshot.pods
        held = np.flatnonzero(pods.reserved_node >= 0)
        pods.reserved_node[held] = NO_NODE
        pods.reserved_until[held] = -1
        for reservation in outcome.reservations:
            pods.reserved_node[reservation.row] = self.snapshot.nodes.rows[reservation.node]
            pods.reserved_until[reservation.row] = reservation.expires
