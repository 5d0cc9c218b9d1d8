"""What a run is judged by: GPU time held, useful and lost, waits, evictions, and who had less than
their due for how long.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from scheduler.domain.codes import StatusCode
from scheduler.domain.mixes import GPU
from scheduler.domain.nodes import Amounts
from scheduler.domain.queues import ROOT
from scheduler.domain.resources import COMMON, units_per_one
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.tables import Rows, Times, sums_by
from scheduler.engine.decisions import Outcome
from scheduler.simulation.world import Change, Gang, World

SIZES: Final = (
    (0, "no GPU"),
    (1, "1 GPU"),
    (4, "2-4 GPU"),
    (8, "5-8 GPU"),
    (16, "9-16 GPU"),
    (32, "17-32 GPU"),
)
LARGEST: Final = "more than 32 GPU"
POINTS: Final = 600
"""A plot has so many points at the most."""


@dataclass
class Line:
    """One point of the plots, of all GPUs (or, without any, of the CPUs).

    `held` is the share at that moment, `useful` and `lost` what came together until then as a
    share of the whole run, `waiting` the amount that is waited for.
    """

    at: float
    held: float
    useful: float
    lost: float
    waiting: float


class Measures:
    """Watches a world from its first session to its last moment."""

    def __init__(self, world: World, seconds: float) -> None:
        self.world = world
        self.began = world.now
        self.seconds = seconds
        snapshot = world.snapshot
        self.capacity: Times = (
            snapshot.nodes.allocatable[snapshot.nodes.ready].sum(axis=0).astype(np.float64)
        )
        self.held: Times = np.zeros(len(snapshot.resources))
        self.useful: Times = np.zeros(len(snapshot.resources))
        self.lost: Times = np.zeros(len(snapshot.resources))
        self.jobs = self.binds = self.sessions = 0
        self.evicted_by: Counter[str] = Counter()
        self.evictions_of: Counter[str] = Counter()
        self.waits: list[tuple[str, int, float]] = []  # queue, GPUs of the gang, seconds
        self.lines: list[Line] = []
        # CPU seconds by part of the session
        self.parts: dict[str, float] = {}
        self._due = _Due(snapshot)
        self._short: Times = np.zeros(len(snapshot.queues))
        self._asked: Times = np.zeros(len(snapshot.queues))
        self._unmet_dues: Times = np.zeros(len(snapshot.queues))
        # how long the guarantee has been unmet until now
        self._unmet_guarantees: Times = np.zeros(len(snapshot.queues))
        self._longest: Times = np.zeros(len(snapshot.queues))
        self._seen_at = world.now
        if GPU in snapshot.resources:
            self._main = snapshot.resources.index(GPU)
        else:
            self._main = 0
        self._waiting_gangs: dict[int, Gang] = {}
        self._has_changed = True  # since queues were looked at

    # What happens

    def arrived(self, gang: Gang) -> None:
        self.jobs += 1
        self._waiting_gangs[gang.row] = gang
        self._has_changed = True

    def until(self, moment: float) -> None:
        """Time has passed with everything as it is now."""
        passed = min(moment, self.began + self.seconds) - self._seen_at
        if passed <= 0:
            return
        self._seen_at += passed
        snapshot = self.world.snapshot
        used = snapshot.aggregates.node_used.sum(axis=0)
        self.held += used * passed
        if self._has_changed:
            self._due.look(snapshot)
            self._has_changed = False
        self._asked += self._due.asks * passed
        self._short += self._due.is_short * passed
        self._unmet_dues += self._due.is_due_unmet * passed
        is_unmet = self._due.is_guarantee_unmet
        self._unmet_guarantees = np.where(is_unmet, self._unmet_guarantees + passed, 0.0)
        self._longest = np.maximum(self._longest, self._unmet_guarantees)
        self._draw_point(moment, used)

    def _draw_point(self, moment: float, used: Amounts) -> None:
        step = self.seconds / POINTS
        if self.lines and moment - self.began - self.lines[-1].at < step:
            return
        snapshot = self.world.snapshot
        dim = self._main
        whole = max(float(self.capacity[dim]), 1.0)
        pending = float(snapshot.aggregates.group_pending[snapshot.groups.alive, dim].sum())
        whole_run = max(1e-9, whole * self.seconds)
        self.lines.append(
            Line(
                at=round(moment - self.began, 1),
                held=float(used[dim]) / whole,
                useful=float(self.useful[dim]) / whole_run,
                lost=float(self.lost[dim]) / whole_run,
                waiting=pending / units_per_one(snapshot.resources[dim]),
            )
        )

    def changed(self, change: Change) -> None:
        self._has_changed = True
        pods = self.world.snapshot.pods
        spent = self.world.snapshot.classes.request[pods.pod_class[change.pod]] * change.seconds
        if change.what == "ended":
            self.useful += spent
        elif change.what == "evicted":
            self.lost += spent

    def decided(self, outcome: Outcome, changes: Iterable[Change]) -> None:
        self.sessions += 1
        self.binds += len(outcome.binds)
        self._has_changed |= bool(outcome.binds)
        for eviction in outcome.evictions:
            self.evicted_by[eviction.action] += 1
        # Each once, in the order of the outcome: of gangs that were hit as often one is named.
        self.evictions_of.update(dict.fromkeys(gang.podgroup for gang in outcome.evictions).keys())
        for change in changes:
            self.changed(change)
        for row in {int(self.world.snapshot.pods.group[bind.row]) for bind in outcome.binds}:
            self._note_start(row)

    def _note_start(self, row: int) -> None:
        gang = self._waiting_gangs.get(row)
        if gang is None or gang.started_at is None:
            return
        del self._waiting_gangs[row]
        gpus = gang.job.amount(GPU) // units_per_one(GPU)
        self.waits.append((gang.job.queue, gpus, gang.started_at - gang.job.at))

    # What came of it

    def document(self) -> dict[str, Any]:
        """Programs read these keys: they stay as they are."""
        evictions = sum(self.evicted_by.values())
        most = self.evictions_of.most_common(1)
        return {
            "jobs": self.jobs,
            "finished": self.world.finished,
            "binds": self.binds,
            "evictions": evictions,
            "evictionsPerBind": round(evictions / self.binds, 4) if self.binds else 0.0,
            "evictionsByAction": dict(sorted(self.evicted_by.items())),
            "mostEvicted": most[0][1] if most else 0,
            "mostEvictedGang": most[0][0] if most else "",
            "held": self._shares_by_resource(self.held),
            "useful": self._shares_by_resource(self.useful),
            "lost": self._shares_by_resource(self.lost),
            "waits": self._waits_by_size(),
            "shortfall": self._by_queue(
                self._short / np.maximum(self._asked, 1e-9), self._asked > 0
            ),
            "dueUnmet": self._by_queue(
                self._unmet_dues / np.maximum(self._asked, 1e-9), self._asked > 0
            ),
            "guaranteeUnmetSeconds": self._by_queue(self._longest, self._due.guarantees),
            "sessions": self.sessions,
            "cpuSeconds": round(sum(self.parts.values()), 3),
            "cpuSecondsByPart": {part: round(seconds, 3) for part, seconds in self.parts.items()},
        }

    def _shares_by_resource(self, amounts: Times) -> dict[str, float]:
        """Of the whole capacity over the whole time, by resource."""
        names = self.world.snapshot.resources
        whole = self.capacity * max(self.seconds, 1e-9)
        found: dict[str, float] = {}
        for dim, name in enumerate(names):
            if name != "pods" and whole[dim] > 0:
                found[name] = round(float(amounts[dim] / whole[dim]), 4)
        return found

    def _by_queue(self, values: Times, mask: Any) -> dict[str, float]:
        names = [queue.name for queue in self.world.snapshot.queues]
        return {name: round(float(values[row]), 4) for row, name in enumerate(names) if mask[row]}

    def _waits_by_size(self) -> dict[str, Any]:
        """Gangs that have not started count with the time that they have waited so far."""
        waits = [
            *self.waits,
            *(
                (
                    gang.job.queue,
                    gang.job.amount(GPU) // units_per_one(GPU),
                    self._seen_at - gang.job.at,
                )
                for gang in self._waiting_gangs.values()
            ),
        ]
        by_size: defaultdict[str, list[float]] = defaultdict(list)
        by_queue: defaultdict[str, list[float]] = defaultdict(list)
        for queue, gpus, seconds in waits:
            by_size[size_name(gpus)].append(seconds)
            by_queue[queue].append(seconds)
        names = [name for _, name in SIZES] + [LARGEST]
        if waits:
            largest = sorted(waits, key=lambda wait: -wait[1])[: max(1, len(waits) // 10)]
        else:
            largest = []
        return {
            "all": summary([seconds for _, _, seconds in waits]),
            "bySize": {name: summary(by_size[name]) for name in names if name in by_size},
            "byQueue": {queue: summary(by_queue[queue]) for queue in sorted(by_queue)},
            "largestTenth": summary([seconds for _, _, seconds in largest]),
            "notStarted": len(self._waiting_gangs),
        }


def size_name(gpus: int) -> str:
    return next((name for most, name in SIZES if gpus <= most), LARGEST)


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """How many, the median, the 95th percentile and the longest."""
    if not seconds:
        return {"count": 0, "p50": 0.0, "p95": 0.0, "max": 0.0}
    values = np.sort(np.array(seconds))
    p50, p95 = (
        float(values[min(len(values) - 1, int(part * len(values)))]) for part in (0.5, 0.95)
    )
    return {
        "count": len(values),
        "p50": round(p50, 1),
        "p95": round(p95, 1),
        "max": round(float(values[-1]), 1),
    }


class _Due:
    """What each queue asks for, has and is due, by its spec.

    The same yardstick for every policy.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        specs = [queue.spec for queue in snapshot.queues]
        parents = {spec.parent for spec in specs}
        leaves = np.array(
            [spec.name not in parents and spec.name != ROOT for spec in specs], dtype=np.bool_
        )
        amounts = [
            [
                max(spec.deserved.amount(name), spec.guarantee.amount(name))
                for name in snapshot.resources
            ]
            for spec in specs
        ]
        deserved = np.array(amounts, dtype=np.int64).reshape(len(specs), len(snapshot.resources))
        guarantee = np.array(
            [[spec.guarantee.amount(name) for name in snapshot.resources] for spec in specs],
            dtype=np.int64,
        )
        self.deserved: Amounts = np.where(leaves[:, None], deserved, 0)
        self.guarantee: Amounts = np.where(leaves[:, None], guarantee.reshape(deserved.shape), 0)
        self.guarantees = self.guarantee.any(axis=1)
        self._devices = np.array([name not in COMMON for name in snapshot.resources])
        nobody: Any = np.zeros(len(specs), dtype=np.bool_)
        self.asks = nobody
        self.is_short = nobody
        self.is_due_unmet = nobody
        self.is_guarantee_unmet = nobody

    def look(self, snapshot: Snapshot) -> None:
        groups = snapshot.groups
        sums = snapshot.aggregates
        alive = np.flatnonzero(groups.alive & (groups.queue >= 0))
        amounts = np.concatenate(
            [sums.group_allocated[alive], sums.group_pending[alive]],
            axis=1,
        )
        table = sums_by(groups.queue[alive], amounts, len(self.deserved))
        allocated, pending = np.split(table, 2, axis=1)
        asks = (self.deserved > 0) & (allocated + pending >= self.deserved)
        self.asks = np.any(asks, axis=1)
        self.is_short = self.asks & ~(asks & (allocated >= self.deserved)).any(axis=1)
        waiting = alive[sums.group_counts[alive, StatusCode.PENDING] >= groups.min_member[alive]]
        self.is_due_unmet = self.is_short & self._could_start(
            snapshot, waiting, allocated, self.deserved
        )
        if self.guarantees.any():
            self.is_guarantee_unmet = self._could_start(
                snapshot, waiting, allocated, self.guarantee
            )

    def _could_start(
        self, snapshot: Snapshot, waiting: Rows, allocated: Amounts, limit: Amounts
    ) -> Any:
        """Queues in which a gang waits that would be within this limit of all that it asks for and
        the limit names.
        """
        queue = snapshot.groups.queue[waiting]
        asked = snapshot.groups.min_resources[waiting]
        named = (limit[queue] > 0) & (asked > 0)
        covered = ~((asked > 0) & self._devices & ~named).any(axis=1) & named.any(axis=1)
        within = ((allocated[queue] + asked <= limit[queue]) | ~named).all(axis=1) & covered
        return np.bincount(queue[within], minlength=len(limit)) > 0
