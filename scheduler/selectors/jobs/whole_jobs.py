"""Jobs with their queue and podgroup, by number: for lists that show what has just changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model, QuerySet

from scheduler.models import Job, PodGroup, Queue
from scheduler.models.prepared import Prepared, condition_with_slot
from scheduler.selectors.sessions.snapshot_rows import ids_parameter, one_of_ids


def jobs_by_ids(ids: Iterable[int]) -> list[Job]:
    """As `select_related("queue", "podgroup")` gives them, in no order."""
    return [_job(row) for row in _BY_IDS.rows(ids=ids_parameter(ids))]


def _job(row: tuple[Any, ...]) -> Job:
    own = len(_columns(Job))
    podgroup_begins = own + len(_columns(Queue))
    job = Job.from_db(DEFAULT_DB_ALIAS, _columns(Job), row[:own])
    job.queue = Queue.from_db(DEFAULT_DB_ALIAS, _columns(Queue), row[own:podgroup_begins])
    podgroup = None
    if row[podgroup_begins] is not None:
        podgroup = PodGroup.from_db(DEFAULT_DB_ALIAS, _columns(PodGroup), row[podgroup_begins:])
        podgroup.job = job
    related: Any = Job._meta.get_field("podgroup")
    related.set_cached_value(job, podgroup)
    return job


def _columns(model: type[Model]) -> list[str]:
    """The number of the row comes first."""
    return [field.attname for field in model._meta.concrete_fields]


def _jobs_by_ids() -> QuerySet[Any, Any]:
    chosen = condition_with_slot(one_of_ids("scheduler_job.id"), "ids")
    return (
        Job.objects.filter(chosen)
        .order_by()
        .values_list(
            *_columns(Job),
            *(f"queue__{name}" for name in _columns(Queue)),
            *(f"podgroup__{name}" for name in _columns(PodGroup)),
        )
    )


_BY_IDS = Prepared(_jobs_by_ids, keep_plan=True)
