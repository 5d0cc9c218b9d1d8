"""How long jobs run: learnt from those that have ended and kept in a small table, or declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Max

from scheduler.domain.gang_sizes import NO_SIZE, size_of
from scheduler.domain.resources import Resources
from scheduler.domain.run_times import Learnt, RunTime, RunTimes
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.tables import Floats
from scheduler.models import LearntRunTime, PodGroup
from scheduler.models.workload import LIVE_PHASES
from scheduler.simulation.start_times import run_seconds

LOOKED_AT = 20_000
"""Of the newest gangs, those that have ended: how long jobs ran months ago says little."""


def learn_run_times() -> RunTimes:
    """Writes the table anew."""
    learnt = RunTimes.learn(_ended_gangs())
    rows = []
    for (user, queue, size), found in learnt.circles.items():
        rows.append(
            LearntRunTime(
                user=user,
                queue=queue,
                size=size,
                count=found.count,
                quantiles=[round(seconds, 3) for seconds in found.quantiles],
            )
        )
    with transaction.atomic():
        LearntRunTime.objects.all().delete()
        LearntRunTime.objects.bulk_create(rows, batch_size=500)
    return learnt


def read_run_times() -> RunTimes:
    found = {}
    columns = ("user", "queue", "size", "count", "quantiles")
    for user, queue, size, count, quantiles in LearntRunTime.objects.values_list(*columns):
        found[user, queue, size] = Learnt(count, quantiles)
    return RunTimes(found)


def _ended_gangs() -> Iterable[RunTime]:
    """Without those that were evicted on the way: part of their time they waited."""
    newest = PodGroup.objects.aggregate(newest=Max("pk"))["newest"] or 0
    ended = PodGroup.objects.filter(
        pk__gt=newest - LOOKED_AT,
        phase="Completed",
        started_at__isnull=False,
        finished_at__isnull=False,
        evictions=0,
    )
    columns = ("owner", "queue__name", "min_resources", "started_at", "finished_at")
    for user, queue, amounts, started, finished in ended.order_by().values_list(*columns):
        seconds = (finished - started).total_seconds()
        if seconds >= 0:
            yield RunTime(user, queue, size_of_request(amounts), seconds)


def size_of_request(amounts: Resources | dict[str, Any] | None) -> str:
    if amounts is None:
        return NO_SIZE
    return size_of(Resources(amounts).items())


@dataclass(frozen=True, slots=True)
class KnownRunTimes:
    """What was learnt, and whose each live gang is."""

    learnt: RunTimes
    owners: Mapping[str, str]

    def seconds(self, snapshot: Snapshot) -> dict[float, Floats]:
        """By level and row of podgroup; NaN where nobody knows."""
        users = [self.owners.get(key, "") for key in snapshot.groups.key]
        return run_seconds(snapshot, users, self.learnt)

    def with_owner(self, keys: Iterable[str], owner: str) -> KnownRunTimes:
        return KnownRunTimes(self.learnt, {**self.owners, **dict.fromkeys(keys, owner)})


def known_run_times() -> KnownRunTimes:
    live = PodGroup.objects.filter(phase__in=LIVE_PHASES).order_by()
    owners = {}
    for namespace, name, owner in live.values_list("namespace", "name", "owner"):
        owners[f"{namespace}/{name}"] = owner
    return KnownRunTimes(read_run_times(), owners)


def sources_of(snapshot: Snapshot, seconds: Floats) -> dict[str, int]:
    """How many gangs declare how long they run, of how many it was learnt, of how many nobody
    knows.
    """
    groups = snapshot.groups
    declared = groups.alive & ~np.isnan(groups.expected_seconds)
    unknown = groups.alive & np.isnan(seconds)
    learnt = groups.alive & ~declared & ~unknown
    return {
        "declared": int(declared.sum()),
        "learnt": int(learnt.sum()),
        "unknown": int(unknown.sum()),
    }
