"""What the cluster reports, brought into the database: only this makes a pod Running, Succeeded or Failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from scheduler import notify
from scheduler.clusters.base import PodReport, Reported
from scheduler.domain.jobs import JobEvent
from scheduler.models import Pod, PodGroup
from scheduler.models.bulk import as_parameter, fetch, values_table
from scheduler.services.clusters import cluster_in_use, cluster_transaction
from scheduler.services.job_life import sync_jobs
from scheduler.services.locks import alone_with_pods
from scheduler.services.podgroups import DELETED_MARK
from scheduler.services.pods import fresh_start
from scheduler.services.scheduling import want_session
from scheduler.services.states import refresh_states

# From which phases a report moves a pod, and what it then becomes.
_MOVES = {
    Reported.RUNNING: (("Binding", "Bound"), "Running", "started_at"),
    Reported.SUCCEEDED: (("Binding", "Bound", "Running", "Releasing", "Unknown"), "Succeeded", "finished_at"),
    Reported.FAILED: (("Binding", "Bound", "Running", "Releasing", "Unknown"), "Failed", "finished_at"),
}


def observe() -> int:
    """Ask the cluster what happened and write it down, in one transaction with the cluster's own state. How many reports came."""
    with cluster_transaction(), cluster_in_use() as cluster:
        reports = cluster.observe()
        apply_reports(reports)
    return len(reports)


@transaction.atomic
def apply_reports(reports: Sequence[PodReport]) -> None:
    """Reports of any length, one statement a kind; what they mean for jobs follows."""
    if not reports:
        return
    alone_with_pods()
    now = timezone.now()
    moved: set[int] = set()
    for kind, (sources, phase, stamp) in _MOVES.items():
        moved |= _move([report for report in reports if report.phase is kind], sources, phase, stamp, now)
    gone = [report for report in reports if report.phase is Reported.GONE]
    came_back, ended, left = _take_gone(gone, now)
    _tell_jobs([report for report in reports if report.pod_id in moved or report.pod_id in came_back], moved | came_back, ended)
    if _remove_empty_podgroups(left):
        refresh_states()
    notify.nodes_changed()


def _move(reports: list[PodReport], sources: tuple[str, ...], phase: str, stamp: str, now: datetime) -> set[int]:
    if not reports:
        return set()
    rows = [{"id": report.pod_id, "exit_code": report.exit_code, "message": report.message} for report in reports]
    table = values_table("d", {"id": "bigint", "exit_code": "integer", "message": "text"})
    marks = ", ".join(f"'{source}'" for source in sources)
    sql = (
        f"UPDATE scheduler_pod SET phase = '{phase}', {stamp} = %s, exit_code = d.exit_code, message = d.message FROM {table} "
        f"WHERE scheduler_pod.id = d.id AND scheduler_pod.phase IN ({marks}) RETURNING scheduler_pod.id"
    )
    return {pk for (pk,) in fetch(sql, [now, as_parameter(rows)])}


_ENDING = ("Restarting", "Aborting", "Completing", "Terminating", "Aborted", "Completed", "Terminated", "Failed")


def _take_gone(reports: list[PodReport], now: datetime) -> tuple[set[int], set[int], set[int]]:
    """Stopped pods: those of a job that is ending or that nobody wants are removed, the others come back as new ones, as a controller
    would make them.

    Answers the ids of those that came back, and the ids of the jobs and of the gangs from outside that lost leaving pods.
    """
    if not reports:
        return set(), set(), set()
    ids = [report.pod_id for report in reports]
    pods = Pod.objects.filter(pk__in=ids).exclude(phase__in=("Pending", "Succeeded", "Failed"))
    leaving = pods.filter(Q(podgroup__job__phase__in=_ENDING) | Q(unwanted=True))
    owners = list(leaving.values_list("podgroup_id", "podgroup__job_id"))
    leaving.delete()
    back = set(pods.values_list("pk", flat=True))
    fresh_start(Pod.objects.filter(pk__in=back), now)
    return back, {job for _, job in owners if job is not None}, {group for group, job in owners if job is None}


def _remove_empty_podgroups(ids: set[int]) -> bool:
    """Gangs from outside that were deleted while pods of theirs were still on nodes. Whether there were any."""
    if not ids:
        return False
    removed, _ = PodGroup.objects.filter(pk__in=ids, job=None, pods=None, annotations__has_key=DELETED_MARK).delete()
    return removed > 0


def _tell_jobs(reports: Iterable[PodReport], pod_ids: set[int], ended: set[int]) -> None:
    owners = {pk: (job_id, task) for pk, job_id, task in Pod.objects.filter(pk__in=pod_ids).values_list("pk", "podgroup__job_id", "task")}
    happenings: dict[int, list[tuple[JobEvent, str, int | None]]] = {}
    for report in reports:
        job_id, task = owners.get(report.pod_id, (None, ""))
        if job_id is None:
            continue
        events = happenings.setdefault(job_id, [])
        if report.phase is Reported.FAILED:
            events.append((JobEvent.POD_FAILED, task, report.exit_code))
        elif report.phase is Reported.GONE:
            events.append((JobEvent.POD_EVICTED, task, None))
    jobs = {*happenings, *ended}
    if jobs:
        sync_jobs(jobs, happenings)
    if pod_ids:
        want_session()
        notify.jobs_changed(_podgroup_keys(pod_ids))


def _podgroup_keys(pod_ids: set[int]) -> list[str]:
    rows: Any = PodGroup.objects.filter(pods__in=pod_ids).distinct().values_list("namespace", "name")
    return [f"{namespace}/{name}" for namespace, name in rows]
