"""What the cluster reports, brought into the database: only this makes a pod Running, Succeeded or
Failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from scheduler import notify
from scheduler.clusters.base import PodReport, Reported
from scheduler.domain.jobs.policies import JobEvent
from scheduler.domain.jobs.reactions import PolicyEvent, PolicyEvents
from scheduler.models import Pod, PodGroup
from scheduler.models.bulk import as_parameter, fetch, values_table
from scheduler.services.cluster.connection import cluster_in_use, cluster_transaction
from scheduler.services.jobs.lifecycle import sync_jobs
from scheduler.services.jobs.podgroups import DELETED_MARK
from scheduler.services.jobs.pods import OWN_DOING, fresh_start
from scheduler.services.locks import alone_with_pods
from scheduler.services.queues.states import refresh_states
from scheduler.services.sessions.requests import want_session

# From which phases a report moves a pod, and what it then becomes.
_MOVES = {
    Reported.RUNNING: (("Binding", "Bound"), "Running", "started_at"),
    Reported.SUCCEEDED: (
        ("Binding", "Bound", "Running", "Releasing", "Unknown"),
        "Succeeded",
        "finished_at",
    ),
    Reported.FAILED: (
        ("Binding", "Bound", "Running", "Releasing", "Unknown"),
        "Failed",
        "finished_at",
    ),
}


def observe() -> int:
    """Ask the cluster what happened and write it down, in one transaction with the cluster's own
    state.

    How many reports came.
    """
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
        moved |= _move_pods(
            [report for report in reports if report.phase is kind], sources, phase, stamp, now
        )
    parting = _part_with(
        {report.pod_id for report in reports if report.phase is Reported.GONE}, moved, now
    )
    _tell_jobs(
        [
            report
            for report in reports
            if report.pod_id in moved or report.pod_id in parting.evicted
        ],
        parting,
        moved,
    )
    if _remove_empty_podgroups(parting.gangs):
        refresh_states()
    notify.nodes_changed()


def _move_pods(
    reports: list[PodReport], sources: tuple[str, ...], phase: str, stamp: str, now: datetime
) -> set[int]:
    if not reports:
        return set()
    rows = []
    for report in reports:
        rows.append({"id": report.pod_id, "exit_code": report.exit_code, "message": report.message})
    table = values_table("d", {"id": "bigint", "exit_code": "integer", "message": "text"})
    marks = ", ".join(f"'{source}'" for source in sources)
    sql = (
        f"UPDATE scheduler_pod SET phase = '{phase}', {stamp} = %s, exit_code = d.exit_code, "
        f"message = d.message FROM {table} "
        f"WHERE scheduler_pod.id = d.id AND scheduler_pod.phase IN ({marks}) RETURNING "
        "scheduler_pod.id"
    )
    return {pk for (pk,) in fetch(sql, [now, as_parameter(rows)])}


_ENDED = ("Succeeded", "Failed")
_ENDING = (
    "Restarting",
    "Aborting",
    "Completing",
    "Terminating",
    "Aborted",
    "Completed",
    "Terminated",
    "Failed",
)


@dataclass(frozen=True, slots=True)
class Parting:
    """Pods that left their nodes: those that came back as new ones, of these the ones that their
    own job had not sent away, and the jobs and gangs from outside that lost pods for good.
    """

    back: set[int] = field(default_factory=set)
    evicted: set[int] = field(default_factory=set)
    jobs: set[int] = field(default_factory=set)
    gangs: set[int] = field(default_factory=set)


def _part_with(gone: set[int], moved: set[int], now: datetime) -> Parting:
    """Stopped pods: those of a job that is ending or that nobody wants are removed, also where they
    ended by themselves first; the others come back as new ones, as a controller would make them.
    """
    pods = Pod.objects.filter(pk__in=gone).exclude(phase__in=("Pending", *_ENDED))
    leaving = pods.filter(Q(podgroup__job__phase__in=_ENDING) | Q(unwanted=True))
    leaving.update(finished_at=now)  # until then they held their nodes
    removed = [*_pods_removed(leaving)]
    removed += _pods_removed(Pod.objects.filter(pk__in=moved, phase__in=_ENDED, unwanted=True))
    back = dict(pods.values_list("pk", "message"))
    fresh_start(Pod.objects.filter(pk__in=back), now)
    return Parting(
        back=set(back),
        evicted={pk for pk, message in back.items() if message not in OWN_DOING},
        jobs={job for _, job in removed if job is not None},
        gangs={group for group, job in removed if job is None},
    )


def _pods_removed(pods: QuerySet[Pod]) -> list[tuple[int, int | None]]:
    """The podgroup and the job of each pod that was removed."""
    owners: list[tuple[int, int | None]] = [*pods.values_list("podgroup_id", "podgroup__job_id")]
    if owners:
        pods.delete()
    return owners


def _remove_empty_podgroups(ids: set[int]) -> bool:
    """Gangs from outside that were deleted while pods of theirs were still on nodes.

    Whether there were any.
    """
    if not ids:
        return False
    removed, _ = PodGroup.objects.filter(
        pk__in=ids, job=None, pods=None, annotations__has_key=DELETED_MARK
    ).delete()
    return removed > 0


_EVENTS = {Reported.FAILED: JobEvent.POD_FAILED, Reported.GONE: JobEvent.POD_EVICTED}


def _tell_jobs(reports: Iterable[PodReport], parting: Parting, moved: set[int]) -> None:
    pod_ids = moved | parting.back
    pods = Pod.objects.filter(pk__in=pod_ids).values_list("pk", "podgroup__job_id", "task")
    owners = {pk: (job_id, task) for pk, job_id, task in pods}
    of_jobs: dict[int, list[tuple[str, PodReport]]] = {}
    for report in reports:
        job_id, task = owners.get(report.pod_id, (None, ""))
        if job_id is not None:
            of_jobs.setdefault(job_id, []).append((task, report))
    jobs = {*of_jobs, *parting.jobs}
    jobs.update(job_id for job_id, _ in owners.values() if job_id is not None)
    if jobs:
        sync_jobs(jobs, {job_id: _policy_events(of_job) for job_id, of_job in of_jobs.items()})
    if pod_ids:
        want_session()
        notify.jobs_changed(_podgroup_keys(pod_ids))


def _policy_events(reports: Sequence[tuple[str, PodReport]]) -> PolicyEvents:
    """Of one job: its tasks, each with what was reported of a pod of it."""
    events: list[PolicyEvent] = []
    for task, report in reports:
        exit_code = None
        if report.phase is Reported.FAILED:
            exit_code = report.exit_code
        if report.phase in _EVENTS:
            events.append((_EVENTS[report.phase], task, exit_code))
    return PolicyEvents(events, frozenset(task for task, _ in reports))


def _podgroup_keys(pod_ids: set[int]) -> list[str]:
    rows: Any = (
        PodGroup.objects.filter(pods__in=pod_ids).distinct().values_list("namespace", "name")
    )
    return [f"{namespace}/{name}" for namespace, name in rows]
