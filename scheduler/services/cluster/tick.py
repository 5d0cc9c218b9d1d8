"""What is looked after at each tick beside sessions: each part for itself, so that one that fails
keeps no other from its turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from django.db import connection
from django.utils import timezone

from scheduler import notify
from scheduler.conf import is_kubernetes, schedules_cluster
from scheduler.models import ClusterState
from scheduler.services.cluster.dispatch import dispatch
from scheduler.services.cluster.half_bound import settle_half_bound_gangs
from scheduler.services.cluster.observe import observe
from scheduler.services.jobs.run_limits import end_overrunning_jobs
from scheduler.services.queues.planned_deletion import carry_out_deletions
from scheduler.services.records.events import EventNote, record_events

logger = logging.getLogger(__name__)

Parts = Mapping[str, Callable[[], object]]

PARTS: Parts = {
    "carrying out decisions": dispatch,
    "observing the cluster": observe,
    "carrying out planned deletions": carry_out_deletions,
    "ending jobs that run for too long": end_overrunning_jobs,
}


SCHEDULING_PARTS: Parts = {
    "carrying out decisions": dispatch,
    "completing gangs": settle_half_bound_gangs,
    "carrying out planned deletions": carry_out_deletions,
    "ending jobs that run for too long": end_overrunning_jobs,
}
"""Of a real cluster whose pods are placed here."""


def _parts() -> Parts:
    """A cluster that is mirrored is followed by its watcher."""
    if schedules_cluster():
        return SCHEDULING_PARTS
    if is_kubernetes():
        name = "carrying out planned deletions"
        return {name: PARTS[name]}
    return PARTS


def watch(also: Parts | None = None) -> None:
    """What happened on the cluster, and whatever somebody who died left undone.

    What fails is told once, and tried at each tick.
    """
    before: dict[str, Any] = ClusterState.objects.values_list("failing", flat=True).first() or {}
    failed = {
        name: problem
        for name, part in {**_parts(), **(also or {})}.items()
        if (problem := _problem_of(part))
    }
    _log_changes(before, failed)
    kinds = {name: type(problem).__name__ for name, problem in failed.items()}
    if kinds != {name: entry["problem"] for name, entry in before.items()}:
        _write_outages(before, kinds)


def _problem_of(part: Callable[[], object]) -> Exception | None:
    try:
        part()
    except Exception as problem:
        if not connection.in_atomic_block:
            # the next part gets another, where the database had gone away
            connection.close_if_unusable_or_obsolete()
        return problem
    return None


def _log_changes(before: Mapping[str, Any], failed: Mapping[str, Exception]) -> None:
    for name, problem in failed.items():
        if before.get(name, {}).get("problem") != type(problem).__name__:
            logger.error("%s failed; it is tried again at each tick", name, exc_info=problem)
    for name in before.keys() - failed.keys():
        logger.warning("%s works again", name)


def _write_outages(before: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
    now = timezone.now()
    failing = {
        name: {"problem": kind, "since": before.get(name, {}).get("since", now.isoformat())}
        for name, kind in kinds.items()
    }
    ClusterState.objects.filter(pk=1).update(failing=failing)
    notes = [
        EventNote("Cluster", "scheduler", "PartFailed", f"{name} failed ({kind})", warning=True)
        for name, kind in kinds.items()
        if name not in before
    ]
    notes += [
        EventNote("Cluster", "scheduler", "PartWorksAgain", f"{name} works again")
        for name in before.keys() - kinds.keys()
    ]
    record_events(notes, now)
    notify.cluster_changed()
