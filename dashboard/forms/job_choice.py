"""Which jobs a bulk action is for, by a filter or by name, and why some of them cannot take it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet

from dashboard.forms.query import Query, Vocabulary, parse
from dashboard.present.amounts import short_name
from dashboard.present.jobs import Verb, may_command, obstacle
from scheduler.domain.access import Access
from scheduler.models import PodGroup
from scheduler.selectors.jobs.listing import REASON_CODES, JobRow, job_rows, jobs_matching
from scheduler.selectors.queues.listing import cluster_total
from scheduler.services.jobs.bulk import MOST_JOBS

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Choice:
    """One job. `obstacle` says why the action cannot be done to it, "" where it can.

    `is_forbidden` says that a permission is missing.
    """

    row: JobRow
    obstacle: str = ""
    is_forbidden: bool = False


def vocabulary(username: str) -> Vocabulary:
    resources = {"cpu": "cpu", "memory": "memory"}
    for name in cluster_total():
        if name != "pods":
            resources[short_name(name).lower().replace(" ", "-")] = name
    return Vocabulary(REASON_CODES, resources, username)


def read_query(text: str, username: str) -> Query:
    return parse(text, vocabulary(username))


def jobs_of_query(query: Query, access: Access) -> tuple[JobRow, ...]:
    """Those that match and may be seen; at most one more than a run may have."""
    return _job_rows_of(jobs_matching(query.conditions, access.readable))


def jobs_named(keys: Iterable[Key], access: Access) -> tuple[JobRow, ...]:
    """Those that are there and may be seen."""
    pairs = set(list(keys)[: MOST_JOBS + 1])
    namespaces = {namespace for namespace, _ in pairs}
    names = {name for _, name in pairs}
    candidates = jobs_matching((), access.readable).filter(namespace__in=namespaces, name__in=names)
    ids = []
    for group in candidates.only("pk", "namespace", "name"):
        if (group.namespace, group.name) in pairs:
            ids.append(group.pk)
    return _job_rows_of(PodGroup.objects.filter(pk__in=ids))


def _job_rows_of(found: QuerySet[PodGroup]) -> tuple[JobRow, ...]:
    groups = found.exclude(job=None).select_related("queue", "job").order_by("-pk")
    return job_rows(list(groups[: MOST_JOBS + 1]))


def choices(rows: Iterable[JobRow], verb: Verb, access: Access, username: str) -> list[Choice]:
    offered: list[Choice] = []
    for row in rows:
        offered.append(_choice(row, verb, access, username))
    return offered


def _choice(row: JobRow, verb: Verb, access: Access, username: str) -> Choice:
    if not may_command(access, username, row.place, row.owner):
        words = f"it is not yours, and you need the permission “operate” on {row.queue}"
        return Choice(row, words, is_forbidden=True)
    return Choice(row, obstacle(row.phase, verb))
