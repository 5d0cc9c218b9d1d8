"""Running a cluster forward under a policy: sessions at a fixed period, but only when something has
happened.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from scheduler.domain.workloads import Phase
from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome
from scheduler.engine.policy import Policy
from scheduler.engine.presets import without_times
from scheduler.scenarios.clusters import Cluster
from scheduler.simulation.loads import LoadJob
from scheduler.simulation.measures import Measures
from scheduler.simulation.world import World

PERIOD = 1.0
REST_PERIOD = 3600.0
CLOSING: Final = "closing a session"
CARRYING_OUT: Final = "carrying out"
BETWEEN_SESSIONS: Final = "between sessions"
"""Parts of a run besides the actions. The first action has the opening of a session in it."""
Progress = Callable[[float, Measures], None]
"""Told the simulated seconds that have passed, and what was measured so far."""


def run_load(
    cluster: Cluster,
    policy: Policy,
    jobs: Sequence[LoadJob],
    seconds: float,
    *,
    period: float = PERIOD,
    progress: Progress | None = None,
) -> Measures:
    """The cluster under this load for so many simulated seconds.

    The same input gives the same run.
    """
    return LoadRun(cluster, policy, jobs, seconds, period, progress).run()


class LoadRun:
    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        jobs: Sequence[LoadJob],
        seconds: float,
        period: float,
        progress: Progress | None,
    ) -> None:
        self.world = World(cluster, jobs)
        self.policy = policy
        self.period = period
        self.progress = progress
        self.measures = Measures(self.world, seconds)
        self.began = self.world.now
        self.end = self.world.now + seconds
        self._jobs = sorted(
            (replace(job, at=job.at + self.began) for job in jobs), key=lambda job: job.at
        )
        self._next_job = 0
        self._last_part = 0.0
        self._parts: defaultdict[str, float] = defaultdict(float)  # seconds by the clock

    def run(self) -> Measures:
        moment = self.began
        processor_before = time.process_time()
        self._last_part = time.perf_counter()
        while moment <= self.end:
            self._advance_to(moment)
            self._note_part(BETWEEN_SESSIONS)
            outcome = self._run_session()
            self.measures.decided(outcome, self.world.carry_out(outcome))
            moment = self._next_session(moment, outcome)
            self._note_part(CARRYING_OUT)
            if self.progress is not None:
                self.progress(min(moment, self.end) - self.began, self.measures)
        self._advance_to(self.end)
        self._note_part(BETWEEN_SESSIONS)
        self._share_out(time.process_time() - processor_before)
        return self.measures

    def _advance_to(self, moment: float) -> None:
        """Everything that happens up to this moment happens, each at its time."""
        while True:
            arrival = self._next_arrival()
            due = min(self._next_event(), arrival)
            if due > moment:
                break
            self.measures.until(due)
            if arrival <= due:
                self._take_arrivals(due)
            else:
                self._let_happen(due)
        self.measures.until(moment)
        self._let_happen(moment)

    def _next_arrival(self) -> float:
        if self._next_job < len(self._jobs):
            return self._jobs[self._next_job].at
        return math.inf

    def _take_arrivals(self, moment: float) -> None:
        self._let_happen(moment)
        self.measures.arrived(self.world.arrive(self._jobs[self._next_job]))
        self._next_job += 1

    def _let_happen(self, moment: float) -> None:
        for change in self.world.pass_until(moment):
            self.measures.changed(change)
            if change.what == "ended":
                self.world.tidy(change.pod)

    def _run_session(self) -> Outcome:
        self.world.snapshot.session += 1
        outcome = run_session(
            self.world.snapshot, self.policy, ended=self._note_part, reporting=False
        )
        self._note_part(CLOSING)
        return outcome

    def _note_part(self, part: str) -> None:
        """The time since the last part goes to this one. By the clock: it is read ten times a
        session, and the clock of the processor is slow to read.
        """
        now = time.perf_counter()
        self._parts[part] += now - self._last_part
        self._last_part = now

    def _share_out(self, processor_seconds: float) -> None:
        """Each part has its share of what the processor did in the whole run."""
        by_clock = sum(self._parts.values())
        for part, seconds in self._parts.items():
            self.measures.parts[part] = processor_seconds * seconds / by_clock

    def _next_session(self, moment: float, outcome: Outcome) -> float:
        """At the next tick if this one changed anything or the next may decide otherwise by itself.

        Else when something has happened. While no pod waits, only an arrival can matter.
        """
        following = moment + self.period
        if not self.world.has_waiting_pods():
            return self._session_of_next_arrival(moment, outcome)
        if outcome.binds or outcome.evictions:
            return following
        if outcome.reservations or outcome.starving or _has_other_changes(outcome):
            return following
        return self._tick_at(moment, min(self._next_arrival(), self._next_event()))

    def _session_of_next_arrival(self, moment: float, outcome: Outcome) -> float:
        """Nobody waits: until then a session could only note that the pods just bound are running,
        which is done without it.
        """
        tick = self._tick_at(moment, self._next_arrival())
        following = moment + self.period
        if outcome.starving and outcome.binds:
            return following
        if tick > following:
            self.world.note_running(outcome)
        return tick

    def _tick_at(self, moment: float, due: float) -> float:
        """The first session after this moment that is not before `due`."""
        if math.isinf(due):
            return math.inf
        ticks = max(1, math.ceil((due - moment) / self.period))
        return moment + ticks * self.period

    def _next_event(self) -> float:
        event = self.world.next_event
        if event is None:
            return math.inf
        return event


def _has_other_changes(outcome: Outcome) -> bool:
    """Phases other than those of gangs that were admitted: these were tried in the same session."""
    return any(change.new is not Phase.INQUEUE for change in outcome.phase_changes)


@dataclass(frozen=True, slots=True)
class Rest:
    """`after` is the number of sessions until nobody is evicted or bound any more.

    None if that did not come to pass.
    """

    after: int | None
    evictions: tuple[int, ...]

    def document(self) -> dict[str, Any]:
        return {"after": self.after, "evictions": list(self.evictions)}


def run_to_rest(cluster: Cluster, policy: Policy, sessions: int) -> Rest:
    """Evicted pods come back as waiting ones; nothing else changes.

    Nobody ends, and nobody counts on it. The policy's times are left out and the sessions are an
    hour apart, so that no time of protection hides what would happen once it is over.
    """
    policy = without_times(policy)
    world = World(cluster, (), endless=True)
    world.snapshot.groups.expected_seconds[:] = math.nan
    evictions: list[int] = []
    busy: list[bool] = []
    for outcome in _frozen_sessions(world, policy, sessions, REST_PERIOD):
        evictions.append(len(outcome.evictions))
        busy.append(bool(outcome.evictions or outcome.binds))
    last = max((number for number, was in enumerate(busy, start=1) if was), default=0)
    return Rest(last if last < sessions else None, tuple(evictions))


def _frozen_sessions(
    world: World, policy: Policy, sessions: int, period: float
) -> Iterator[Outcome]:
    for _ in range(sessions):
        world.snapshot.session += 1
        outcome = run_session(world.snapshot, policy, reporting=False)
        world.carry_out(outcome)
        yield outcome
        list(world.pass_until(world.now + period))
