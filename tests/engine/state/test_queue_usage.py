"""What queues use at the beginning of a session, against a plain count of all podgroups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.domain.queues import QueueState
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.tables import IS_ALLOCATED
from scheduler.domain.workloads import Phase
from scheduler.engine import open_session
from scheduler.engine.presets import VOLCANO
from tests.bench.clusters import Size, busy

SIZE = Size(nodes=20, pending=60, running=200, queues=12)


def _snapshot(kind: str, *, suspended: bool) -> Snapshot:
    cluster = busy(SIZE, kind)
    queues = [
        replace(queue, state=QueueState.SUSPENDED, held_by=queue.name)
        if suspended and queue.name.endswith(("2", "5"))
        else queue
        for queue in cluster.queues
    ]
    return replace(cluster, queues=tuple(queues)).snapshot()


def _counted(snapshot: Snapshot) -> dict[str, dict[str, list[int]]]:
    """Podgroup by podgroup, added to its queue and to each above it."""
    nothing = [0] * len(snapshot.resources)
    found: dict[str, dict[str, list[int]]] = {}
    specs = {queue.name: queue for queue in snapshot.queues}
    for row in range(len(snapshot.groups)):
        name = snapshot.queues[snapshot.groups.queue[row]].name
        amounts = _amounts_of(snapshot, row, is_held=specs[name].is_held)
        while name:
            for what, amount in amounts.items():
                kept = found.setdefault(what, {}).setdefault(name, nothing)
                pairs = zip(kept, amount, strict=True)
                found[what][name] = [one + other for one, other in pairs]
            name = specs[name].spec.parent
    return found


def _amounts_of(snapshot: Snapshot, row: int, *, is_held: bool) -> dict[str, list[int]]:
    groups = snapshot.groups
    sums = snapshot.aggregates
    allocated = sums.group_allocated[row]
    pending = sums.group_pending[row]
    placed = sums.group_counts[row][IS_ALLOCATED].sum()
    phase = Phase(int(groups.phase[row]))
    is_admitted = phase is Phase.INQUEUE or (
        phase is Phase.RUNNING and placed >= groups.min_member[row]
    )
    may_still_take = (groups.min_resources[row] - allocated).clip(min=0)
    counts = is_admitted and groups.has_min_resources[row]
    return {
        "allocated": allocated.tolist(),
        "request": (allocated + (0 if is_held else 1) * pending).tolist(),
        "held": ((1 if is_held else 0) * pending).tolist(),
        "inqueue": (may_still_take * (1 if counts else 0)).tolist(),
        "elastic": (allocated - groups.min_resources[row]).clip(min=0).tolist(),
    }


@pytest.mark.parametrize("suspended", [False, True])
@pytest.mark.parametrize("kind", ["admitted", "preempt", "starving", "everybody"])
def test_queues_use_what_their_podgroups_do(kind: str, suspended: bool):
    snapshot = _snapshot(kind, suspended=suspended)

    session = open_session(snapshot, VOLCANO)

    rows = session.queue_tree.rows
    for what, by_queue in _counted(snapshot).items():
        figures = getattr(session.queue_usage, what)
        assert {name: figures[rows[name]].tolist() for name in by_queue} == by_queue, what
