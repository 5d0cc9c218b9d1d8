"""Live rows of jobs and nodes.

Pages take them as a sign to ask again for what they show; programs read them as they are.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from scheduler.models import PodGroup
from scheduler.models.workload import LIVE_PHASES
from scheduler.selectors.cluster.nodes import node_rows
from scheduler.selectors.jobs.gangs import PhaseCounts, pods_by_phase
from scheduler.selectors.jobs.pulses import Pulses

_MOST_JOBS = 1000
_COLUMNS = (
    "namespace",
    "name",
    "queue__name",
    "owner",
    "phase",
    "job__phase",
    "reason_code",
    "reason_message",
)
_pulses = Pulses()  # topics are read by one thread of the process

Presented = dict[str, dict[str, Any]]


def present_live_jobs() -> Presented:
    """The newest jobs that have not ended, and a row for each queue.

    The queue's row changes with everything else in it, so that nobody misses the end of a job.
    """
    presented: Presented = {}
    groups = PodGroup.objects.filter(phase__in=LIVE_PHASES).order_by("-pk")
    for row in groups.values_list(*_COLUMNS)[:_MOST_JOBS]:
        job = _live_job(*row)
        presented[job["key"]] = job
    for queue, number in _pulses.read().items():
        key = f"*/{queue}"
        presented[key] = {"key": key, "queue": queue, "changes": number}
    return presented


def _live_job(
    namespace: str,
    name: str,
    queue: str,
    owner: str,
    phase: str,
    job_phase: str | None,
    reason: str,
    message: str,
) -> dict[str, Any]:
    return {
        "key": f"{namespace}/{name}",
        "queue": queue,
        "owner": owner,
        "phase": phase,
        "job": job_phase,
        "reason": reason,
        "message": message,
    }


def present_jobs(keys: Collection[str]) -> Presented:
    """Those of these jobs that exist, in two queries however many pages are open."""
    groups = _groups_named(set(keys))
    members = pods_by_phase([group.pk for group in groups.values()])
    presented: Presented = {}
    for key, group in groups.items():
        presented[key] = _single_job(key, group, members.get(group.pk, {}))
    return presented


def _groups_named(keys: set[str]) -> dict[str, PodGroup]:
    namespaces = {key.partition("/")[0] for key in keys}
    names = {key.partition("/")[2] for key in keys}
    candidates = PodGroup.objects.select_related("queue", "job").filter(
        namespace__in=namespaces, name__in=names
    )
    groups = {}
    for group in candidates:
        key = f"{group.namespace}/{group.name}"
        if key in keys:
            groups[key] = group
    return groups


def _single_job(key: str, group: PodGroup, members: PhaseCounts) -> dict[str, Any]:
    job = None
    if group.job:
        job = {"phase": group.job.phase, "message": group.job.message}
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
    presented: Presented = {}
    for node in node_rows():
        presented[node.name] = {
            "key": node.name,
            "state": node.state,
            "pods": node.pods,
            "allocatable": node.allocatable.to_quantities(),
            "used": node.used.to_quantities(),
        }
    return presented
