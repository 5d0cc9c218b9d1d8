"""Clusters as large as any: 100,000 nodes, 1,000,000 running and 100,000 pending pods, 10,000
queues; the engine alone, and whole sessions on PostgreSQL. How both grow is told by exponents: 1.0
is in step with the cluster, 0 is not at all.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from scheduler.domain.snapshot import Snapshot
from scheduler.domain.workloads import Phase, PodGroup, PodStatus
from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome
from scheduler.engine.presets import VOLCANO
from scheduler.garbage import set_aside, undisturbed
from scheduler.scenarios.world import advance
from tests import postgres
from tests.bench.clusters import Size, roomy
from tests.bench.database import Bench, a_database, fill, server_seconds
from tests.bench.measuring import Timing

Row = dict[str, object]

LARGEST = Size(nodes=100_000, running=1_000_000, pending=100_000, queues=10_000)
STEPS = (0.1, 0.32, 1.0)
DATABASE_STEPS = (0.1, 1.0)
CHANGED = 1_000
GANG = 10
MOST_REPETITIONS = 3


def sized(scale: float) -> Size:
    return LARGEST.times(nodes=scale, running=scale, pending=scale, queues=scale)


def large(scale: float, repetitions: int) -> list[Row]:
    """The engine in this process, with as many changes at each size."""
    rows: list[Row] = []
    for step in STEPS:
        rows += _engine_rows(sized(scale * step), min(repetitions, MOST_REPETITIONS))
    return [*rows, *exponents(rows, STEPS)]


def _engine_rows(size: Size, repetitions: int) -> list[Row]:
    title = f"{size.nodes:,} nodes, {size.running:,} running, {size.queues:,} queues"
    snapshot = roomy(size).snapshot()
    summing = _seconds(lambda: snapshot.aggregates)
    set_aside()
    outcomes: list[Outcome] = []
    placing = _repeated(
        repetitions, lambda: None, lambda: outcomes.append(run_session(snapshot, VOLCANO))
    )
    world = World(advance(snapshot, outcomes[-1]))
    changing = _repeated(repetitions + 1, world.change, world.session)
    placed_anew = world.binds
    world.settle()
    quiet = _repeated(repetitions, lambda: None, world.session)
    return [
        _row("all pending placed", title, placing, binds=len(outcomes[-1].binds)),
        _row(f"{CHANGED:,} pods changed", title, changing, binds=placed_anew),
        _row("nothing changed", title, quiet),
        {"what": f"the sums of a cold start, {title}", "cpuMs": round(summing * 1000, 1)},
    ]


class World:
    """A resident snapshot in which pods end and come, so many at a time."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.binds = 0
        self._turn = 0
        self._outcome: Outcome | None = None

    def change(self) -> None:
        """Nothing of this is measured: one half of the pods end with their gangs, and as many come
        in gangs.
        """
        self.settle()
        self._turn += 1
        half = CHANGED // 2
        self._end_gangs(half)
        self._add_gangs(half // GANG)

    def settle(self) -> None:
        """What the last session decided is done."""
        if self._outcome is not None:
            self._start(self._outcome)

    def _end_gangs(self, pods: int) -> None:
        groups = self.snapshot.groups
        running = np.flatnonzero(groups.alive & (groups.phase == Phase.RUNNING))
        sizes = self.snapshot.aggregates.group_counts[running, PodStatus.RUNNING]
        spread = np.arange(len(running)) * 7919 + self._turn * 997
        order = np.argsort(spread % max(1, len(running)), kind="stable")
        ended = running[order][: int(np.searchsorted(np.cumsum(sizes[order]), pods))]
        members = np.flatnonzero(np.isin(self.snapshot.pods.group, ended))
        self.snapshot.remove_pods(members)
        self.snapshot.remove_groups(ended)

    def session(self) -> None:
        self._outcome = run_session(self.snapshot, VOLCANO)
        self.binds = len(self._outcome.binds)

    def _start(self, outcome: Outcome) -> None:
        if not outcome.binds:
            return
        names = self.snapshot.nodes.rows
        self.snapshot.change_pods(
            np.array([bind.row for bind in outcome.binds], dtype=np.intp),
            node=np.array([names[bind.node] for bind in outcome.binds], dtype=np.int32),
            status=int(PodStatus.RUNNING),
        )
        rows = np.array([change.row for change in outcome.phase_changes], dtype=np.intp)
        phases = np.array([change.new for change in outcome.phase_changes], dtype=np.int8)
        self.snapshot.change_groups(rows, phase=phases)

    def _add_gangs(self, count: int) -> None:
        leaves = [queue.name for queue in self.snapshot.queues if queue.name.startswith("team")]
        groups = [
            PodGroup(
                f"more-{self._turn}-{number}",
                leaves[number * 7919 % len(leaves)],
                "bench",
                GANG,
                created=3e6 + number,
                phase=Phase.PENDING,
            )
            for number in range(count)
        ]
        rows = np.repeat(self.snapshot.add_groups(groups), GANG)
        pods = len(rows)
        self.snapshot.add_pods(
            key=[f"bench/more-{self._turn}-{number}" for number in range(pods)],
            group=rows,
            pod_class=np.repeat(np.arange(count) % len(self.snapshot.classes.values), GANG),
            status=np.full(pods, int(PodStatus.PENDING)),
            node=np.full(pods, -1),
            created=np.full(pods, 3e6),
        )


# On PostgreSQL


def large_database(scale: float, repetitions: int) -> list[Row]:
    """From the rows in the database, for a tenth of everything and for the whole: a cold start,
    everybody placed, and 1,000 changes; with the memory of the process that did it.
    """
    rows: list[Row] = []
    with a_database():
        for step in DATABASE_STEPS:
            rows += _database_rows(sized(scale * step), min(repetitions, MOST_REPETITIONS))
    return [*rows, *exponents(rows, DATABASE_STEPS)]


def _database_rows(size: Size, repetitions: int) -> list[Row]:
    title = f"{size.nodes:,} nodes, {size.running:,} running, {size.queues:,} queues"
    _enter_new_database(f"fumarole_large_{size.nodes}")
    _fill_elsewhere(size)
    _forget_peak_memory()
    bench = Bench()
    rows = [_database_row("all read and all pending placed", title, bench)]
    bench.session()  # reads what was placed
    for name, before in (
        (f"{CHANGED:,} pods changed", lambda: bench.change(CHANGED)),
        ("nothing changed", lambda: None),
    ):
        bench.session()
        found = []
        for _ in range(repetitions):
            before()
            found.append(_database_row(name, title, bench))
        rows.append(sorted(found, key=lambda row: float(str(row["cpuMs"])))[len(found) // 2])
    rows.append({"what": f"memory of the scheduler, {title}", "peakMB": _peak_memory()})
    del bench.runner
    rows.append(_row("cold start", title, _repeated(1, lambda: None, bench.cold)))
    return rows


def _enter_new_database(name: str) -> None:
    from django.core.management import call_command
    from django.db import connection

    postgres.new_database(name)
    connection.close()
    connection.settings_dict["NAME"] = name
    call_command("migrate", verbosity=0)


def _fill_elsewhere(size: Size) -> None:
    """In a child, so that the values that rows are made of are not counted as our memory."""
    from django.db import connection

    connection.close()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            fill(roomy(size))
            status = 0
        finally:
            os._exit(status)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise RuntimeError("the database could not be filled")
    connection.ensure_connection()


def _database_row(what: str, title: str, bench: Bench) -> Row:
    """With how long each part of the session took by the clock."""
    server = server_seconds()
    results: list[Any] = []
    timing = _repeated(1, lambda: None, lambda: results.append(bench.session()))
    parts = {f"{part}Ms": milliseconds for part, milliseconds in results[0].durations.items()}
    return {
        **_row(what, title, timing),
        **parts,
        "serverCpuMs": round((server_seconds() - server) * 1000, 1),
        "binds": len(results[0].written.bound),
    }


def _forget_peak_memory() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak_memory() -> float:
    """Of this process since its peak was forgotten. That of a forked child does not count."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0


# What both say


def _seconds(work: Callable[[], object]) -> float:
    begin = process_time()
    work()
    return process_time() - begin


def _repeated(repetitions: int, before: Callable[[], object], work: Callable[[], object]) -> Timing:
    """Without a first one that warms up: at this size it would cost as much as all others."""
    found = []
    for _ in range(repetitions):
        before()
        with undisturbed():
            wall = perf_counter()
            own = _seconds(work)
            found.append((perf_counter() - wall, own))
    return Timing(*zip(*found, strict=True))


def _row(what: str, title: str, timing: Timing, **more: object) -> Row:
    return {"what": f"{what}, {title}", **timing.as_json(), **more}


def exponents(rows: list[Row], steps: tuple[float, ...]) -> list[Row]:
    """By what power of the size each of the rows grows, from the smallest to the largest."""
    found: dict[str, list[float]] = {}
    for row in rows:
        cost = float(str(row.get("cpuMs", row.get("peakMB"))))
        found.setdefault(str(row["what"]).partition(", ")[0], []).append(cost)
    span = math.log(steps[-1] / steps[0])
    return [
        {"what": f"growth of {name}", "exponent": round(math.log(costs[-1] / costs[0]) / span, 2)}
        for name, costs in found.items()
    ]
