"""Rows of new jobs: the jobs, their podgroups, their pods and the entries of the audit log.

PostgreSQL takes all of them in one statement, whether it is one job or a hundred.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from django.db import IntegrityError, connection
from django.utils import timezone

from scheduler.models import AuditEntry, Job, PodClass, PodGroup, UnmadePods
from scheduler.models.bulk import as_parameter, fetch_as_planned, values_table
from scheduler.models.new_rows import NewRows
from scheduler.models.prepared import PreparedInsert, note_saved
from scheduler.services.jobs import pod_creation
from scheduler.services.jobs.pod_creation import (
    Task,
    class_of,
    first_tasks,
    note_unmade,
    podgroup_of,
    pods_of,
)
from scheduler.services.jobs.pods import Priorities, insert_pods, template_of
from scheduler.services.records import audit

_NEW_JOB = PreparedInsert(Job, keep_plan=True)
_NEW_PODGROUP = PreparedInsert(PodGroup, keep_plan=True)

_JOBS = NewRows(Job)
_GANGS = NewRows(PodGroup, left_out=("job_id",))
_ENTRIES = NewRows(AuditEntry)
_TASKS = {
    "place": "integer",
    "namespace": "text",
    "job": "text",
    "digest": "text",
    "task": "text",
    "replicas": "integer",
    "job_version": "integer",
    "run_seconds": "double precision",
    "planned_exit_code": "integer",
}


def insert_jobs(
    jobs: Sequence[Job], entries: Sequence[AuditEntry], priorities: Priorities
) -> list[int]:
    """How many pods each has. Those of a job with many are made in steps (`pod_steps`).

    Raises `IntegrityError` where a name is taken.
    """
    tasks = [first_tasks(job) for job in jobs]
    counts = [sum(task["replicas"] for task in chosen) for chosen in tasks]
    now: list[tuple[Job, Task]] = []
    later: list[tuple[Job, Task]] = []
    for job, chosen, pods in zip(jobs, tasks, counts, strict=True):
        podgroup_of(job, priorities)  # it is `job.podgroup` from now on
        (now if pods <= pod_creation.AT_ONCE else later).extend((job, task) for task in chosen)
    if connection.vendor == "postgresql":
        _insert_at_once(jobs, now, entries, priorities)
    else:
        _insert_by_tables(jobs, now, entries, priorities)
    unmade = []
    for job, task in later:
        end = task["replicas"]
        unmade.append(UnmadePods(podgroup=job.podgroup, task=task["name"], end_index=end))
    note_unmade(unmade)
    return counts


def is_about_a_job(error: IntegrityError) -> bool:
    """Whether the name that is taken is a job's, and not that of a podgroup or a pod."""
    text = str(error)
    return "job_name_is_unique" in text or "scheduler_job.name" in text


def _insert_by_tables(
    jobs: Sequence[Job],
    tasks: Sequence[tuple[Job, Task]],
    entries: Sequence[AuditEntry],
    priorities: Priorities,
) -> None:
    _NEW_JOB.insert(jobs)
    for job in jobs:
        job.podgroup.job_id = job.pk
    _NEW_PODGROUP.insert([job.podgroup for job in jobs])
    _insert_pods(tasks, priorities)
    audit.write(entries)


def _insert_pods(tasks: Sequence[tuple[Job, Task]], priorities: Priorities) -> None:
    """With their classes, where these were not there."""
    if tasks:
        each = [range(task["replicas"]) for _, task in tasks]
        insert_pods(pods_of(tasks, each, priorities))


def _insert_at_once(
    jobs: Sequence[Job],
    tasks: Sequence[tuple[Job, Task]],
    entries: Sequence[AuditEntry],
    priorities: Priorities,
) -> None:
    classes = [class_of(job, task, priorities) for job, task in tasks]
    found = fetch_as_planned(
        _statement(),
        [
            as_parameter(_task_rows(tasks, classes)),
            _JOBS.parameter(jobs),
            _GANGS.parameter(job.podgroup for job in jobs),
            timezone.now(),
            _ENTRIES.parameter(entries),
        ],
    )
    known = {digest for _, _, digest in found}
    numbers = [(number, group) for number, group, digest in found if not digest]
    for job, (number, group) in zip(jobs, sorted(numbers), strict=True):
        note_saved(job, number)
        note_saved(job.podgroup, group)
        job.podgroup.job_id = number
    new = []
    for job_and_task, pod_class in zip(tasks, classes, strict=True):
        if pod_class.digest not in known:
            new.append(job_and_task)
    _insert_pods(new, priorities)


def _task_rows(
    tasks: Sequence[tuple[Job, Task]], classes: Sequence[PodClass]
) -> list[dict[str, Any]]:
    rows = []
    for place, ((job, task), pod_class) in enumerate(zip(tasks, classes, strict=True)):
        template = template_of(task["template"])
        values = (
            place,
            job.namespace,
            job.name,
            pod_class.digest,
            task["name"],
            task["replicas"],
            job.version,
            template.run_seconds,
            template.exit_code,
        )
        rows.append(dict(zip(_TASKS, values, strict=True)))
    return rows


@cache
def _statement() -> str:
    """A row for each job, and one for each class of pods that there is.

    Pods of other classes are not made. Nobody can prune a class while the transaction lasts.
    """
    return f"""
WITH task AS (
  SELECT * FROM {values_table("t", _TASKS)}
), class AS (
  SELECT c.id, c.digest FROM scheduler_podclass c
  WHERE c.digest IN (SELECT digest FROM task) FOR KEY SHARE OF c
), new_job AS (
  INSERT INTO scheduler_job ({_JOBS.columns})
  SELECT {_JOBS.columns} FROM {_JOBS.table("j")} ORDER BY place
  RETURNING id, namespace, name
), gang AS (
  INSERT INTO scheduler_podgroup (job_id, {_GANGS.columns})
  SELECT (SELECT id FROM new_job WHERE new_job.namespace = g.namespace AND new_job.name = g.name),
    {_GANGS.columns}
  FROM {_GANGS.table("g")} ORDER BY place
  RETURNING id, job_id, namespace, name
), pods AS (
  INSERT INTO scheduler_pod (
    uid, namespace, name, podgroup_id, pod_class_id, task, "index", job_version, run_seconds,
    planned_exit_code, phase, borrowed, message, unwanted, created_at
  )
  SELECT gen_random_uuid(), t.namespace, t.job || '-' || t.task || '-' || number, gang.id,
    class.id, t.task, number, t.job_version, t.run_seconds, t.planned_exit_code,
    'Pending', false, '', false, %s
  FROM task t
  JOIN class ON class.digest = t.digest
  JOIN gang ON gang.namespace = t.namespace AND gang.name = t.job
  CROSS JOIN generate_series(0, t.replicas - 1) AS number
  ORDER BY t.place, number
), entries AS (
  INSERT INTO scheduler_auditentry ({_ENTRIES.columns})
  SELECT {_ENTRIES.columns} FROM {_ENTRIES.table("e")} ORDER BY place
)
SELECT job_id, id, '' FROM gang
UNION ALL
SELECT 0, 0, digest FROM class
"""
