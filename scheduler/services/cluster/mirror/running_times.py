"""When the runs of mirrored jobs began: the cluster tells of the last phase alone."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.domain.jobs.running_time import Stage, run_begun
from scheduler.models import Job
from scheduler.services.cluster.mirror.table import Row, Table


def note_runs(jobs: Table, rows: Mapping[str, Row]) -> None:
    """Of those whose phase is about to change. To be called before the rows are written."""
    moving = [uid for uid, row in rows.items() if uid in jobs and _moves(jobs.row(uid), row)]
    if not moving:
        return
    found = list(Job.objects.filter(uid__in=moving))
    for job in found:
        row = rows[job.uid.hex]
        before = Stage(job.phase, job.phase_since, job.run_begun_at, job.run_paused_at)
        job.run_begun_at = run_begun(before, row["phase"], row["phase_since"])
        job.run_paused_at = None
    Job.objects.bulk_update(found, ["run_begun_at", "run_paused_at"], batch_size=500)


def _moves(known: Row, row: Row) -> bool:
    return any(known[name] != row[name] for name in ("phase", "phase_since"))
