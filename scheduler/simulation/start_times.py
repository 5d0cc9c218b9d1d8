"""When each waiting gang starts, by three runs ahead: with short, usual and long run times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.domain.codes import StatusCode
from scheduler.domain.gang_sizes import size_of
from scheduler.domain.run_times import RunTimes
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.start_forecasts import HIGH, LOW, MEDIAN, Waits, Why
from scheduler.domain.tables import Floats, Rows
from scheduler.engine.policy import Policy
from scheduler.simulation.forward import (
    Ahead,
    Halt,
    KeepGoing,
    Limits,
    run_forward,
    waiting_gangs,
)


@dataclass(frozen=True, slots=True)
class Lookout:
    """Every waiting gang, by key: its waits, or why there are none."""

    waits: dict[str, Waits] = field(default_factory=dict)
    unknown: dict[str, Why] = field(default_factory=dict)
    sessions: int = 0


def look_ahead(
    snapshot: Snapshot,
    policy: Policy,
    users: Sequence[str],
    run_times: RunTimes,
    limits: Limits,
    keep_going: KeepGoing | None = None,
) -> Lookout:
    """`users` says for each row of the podgroups whose it is.

    Run times that are declared count as declared. The others are learnt.
    """
    waiting = waiting_gangs(snapshot)
    if not len(waiting):
        return Lookout()
    if snapshot.paused:
        return _none_known(snapshot, waiting, Why.PAUSED)
    lengths = run_seconds(snapshot, users, run_times)
    runs = []
    for level in (MEDIAN, LOW, HIGH):
        ahead = run_forward(snapshot, policy, lengths[level], limits, keep_going=keep_going)
        runs.append(ahead)
        if ahead.halt is Halt.STOPPED:
            break
    return _seen(runs, limits, has_gaps=bool(np.isnan(lengths[MEDIAN]).any()))


def _none_known(snapshot: Snapshot, rows: Rows, why: Why) -> Lookout:
    return Lookout(unknown={snapshot.groups.key[row]: why for row in rows.tolist()})


def run_seconds(
    snapshot: Snapshot, users: Sequence[str], run_times: RunTimes
) -> dict[float, Floats]:
    """By level and row of podgroup: how long its pods run from their start; NaN: nobody knows."""
    groups = snapshot.groups
    found = {level: groups.expected_seconds.copy() for level in (LOW, MEDIAN, HIGH)}
    run_for = _run_for(snapshot)
    queues = snapshot.queues
    sizes = gang_sizes(snapshot)
    for row in np.flatnonzero(groups.alive & np.isnan(groups.expected_seconds)).tolist():
        queue = queues[groups.queue[row]].name if groups.queue[row] >= 0 else ""
        circle = run_times.circle_for(users[row], queue, sizes[row])
        if circle is None:
            continue
        for level, seconds in found.items():
            seconds[row] = run_times.seconds(circle, level, float(run_for[row]))
    return found


def gang_sizes(snapshot: Snapshot) -> list[str]:
    """The class of size of each row of the podgroups."""
    known: dict[bytes, str] = {}
    sizes = []
    for amounts in snapshot.groups.min_resources:
        mark = amounts.tobytes()
        if mark not in known:
            known[mark] = size_of(zip(snapshot.resources, amounts.tolist(), strict=True))
        sizes.append(known[mark])
    return sizes


def _run_for(snapshot: Snapshot) -> Floats:
    """Seconds since the first pod of each podgroup began to run; 0 where none runs."""
    pods = snapshot.pods
    since = np.full(len(snapshot.groups), snapshot.taken_at)
    running = (pods.status == StatusCode.RUNNING) & ~np.isnan(pods.started)
    np.minimum.at(since, pods.group[running], pods.started[running])
    passed: Floats = snapshot.taken_at - since
    return passed


def _seen(runs: Sequence[Ahead], limits: Limits, *, has_gaps: bool) -> Lookout:
    usual = runs[0]
    waits: dict[str, Waits] = {}
    unknown: dict[str, Why] = {}
    for key in (*usual.starts, *usual.waiting):
        if key in usual.starts:
            waits[key] = _waits(key, runs, limits)
        else:
            unknown[key] = _why(usual, has_gaps=has_gaps)
    return Lookout(waits, unknown, sum(run.sessions for run in runs))


def _waits(key: str, runs: Sequence[Ahead], limits: Limits) -> Waits:
    """A gang that does not start in the run with long run times does so at its end at the earliest.

    Short run times can make a gang start later, when others pass it. So they are put in order.
    """
    found = []
    for run in runs:
        if key in run.starts:
            found.append(run.starts[key] - run.began)
        elif run.halt is Halt.STOPPED:
            continue
        else:
            found.append(limits.seconds)
    return Waits(min(found), found[0], max(found))


_WHY = {
    Halt.HORIZON: Why.TOO_FAR,
    Halt.SESSIONS: Why.CUT_SHORT,
    Halt.STOPPED: Why.CUT_SHORT,
    Halt.STANDSTILL: Why.STANDSTILL,
}


def _why(run: Ahead, *, has_gaps: bool) -> Why:
    if has_gaps:
        return Why.NO_RUN_TIMES
    return _WHY[run.halt]
