"""Live rows of jobs and nodes. Pages take them as news and ask again for what they show; programs read them as they are."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from scheduler.models import PodGroup
from scheduler.models.workload import LIVE_PHASES
from scheduler.selectors.cluster.nodes import node_rows
from scheduler.selectors.jobs.gangs import PhaseCounts, pods_by_phase
from scheduler.selectors.jobs.pulses import Pulses

_MOST_JOBS = 1000
_pulses = Pulses()  # topics are read by one thread of the process

Presented = dict[str, dict[str, Any]]


def present_live_jobs() -> Presented:
    """The newest jobs that have not ended; and for each queue a row that changes with whatever else does: nobody misses an end."""
    groups = PodGroup.objects.filter(phase__in=LIVE_PHASES).order_by("-pk")
    columns = (
        "namespace",
        "name",
        "queue__name",
        "owner",
        "phase",
        "job__phase",
        "reason_code",
        "reason_message",
    )
    rows = {
        f"{row[0]}/{row[1]}": _live_job(row) for row in groups.values_list(*columns)[:_MOST_JOBS]
    }
    pulses = {
        f"*/{queue}": {"key": f"*/{queue}", "queue": queue, "changes": number}
        for queue, number in _pulses.read().items()
    }
    return {**rows, **pulses}


def _live_job(row: Any) -> dict[str, Any]:
    namespace, name, queue, owner, phase, job, reason, words = row
    return {
        "key": f"{namespace}/{name}",
        "queue": queue,
        "owner": owner,
        "phase": phase,
        "job": job,
        "reason": reason,
        "message": words,
    }


def present_jobs(keys: Collection[str]) -> Presented:
    """Those of these that there are, in two queries however many pages are open."""
    pairs = {(namespace, name) for namespace, _, name in (key.partition("/") for key in keys)}
    named = PodGroup.objects.select_related("queue", "job").filter(
        namespace__in={pair[0] for pair in pairs}, name__in={pair[1] for pair in pairs}
    )
    groups = [group for group in named if (group.namespace, group.name) in pairs]
    members = pods_by_phase([group.pk for group in groups])
    return {
        f"{group.namespace}/{group.name}": _one_job(group, members.get(group.pk, {}))
        for group in groups
    }


def _one_job(group: PodGroup, members: PhaseCounts) -> dict[str, Any]:
    key = f"{group.namespace}/{group.name}"
    job = {"phase": group.job.phase, "message": group.job.message} if group.job else None
    reason = {
        "code": group.reason_code,
        "message": group.reason_message,
        "session": group.reason_session,
    }
    return {
        "key": key,
        "queue": group.queue.place,
        "phase": group.phase,
        "job": job,
        "members": dict(members),
        "reason": reason,
    }


def present_live_nodes() -> Presented:
    return {
        node.name: {
            "key": node.name,
            "state": node.state,
            "pods": node.pods,
            "allocatable": node.allocatable.to_quantities(),
            "used": node.used.to_quantities(),
        }
        for node in node_rows()
    }
