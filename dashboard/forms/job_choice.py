"""Which jobs an action on many is meant for, and what stands against each: by a filter as in the query box, or by name."""

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
    """One job, with why it cannot be done to it; "" where it can. `is_forbidden` says that it is for want of a permission."""

    row: JobRow
    obstacle: str = ""
    is_forbidden: bool = False


def vocabulary(username: str) -> Vocabulary:
    resources = {
        short_name(name).lower().replace(" ", "-"): name
        for name in cluster_total()
        if name != "pods"
    }
    return Vocabulary(REASON_CODES, {"cpu": "cpu", "memory": "memory", **resources}, username)


def read_query(text: str, username: str) -> Query:
    return parse(text, vocabulary(username))


def jobs_of_query(query: Query, access: Access) -> tuple[JobRow, ...]:
    """Those that match and may be seen, one more than a run may have at most."""
    return _rows(jobs_matching(query.conditions, access.readable))


def jobs_named(keys: Iterable[Key], access: Access) -> tuple[JobRow, ...]:
    """Those that are there and may be seen."""
    pairs = set(list(keys)[: MOST_JOBS + 1])
    found = jobs_matching((), access.readable).filter(
        namespace__in={namespace for namespace, _ in pairs}, name__in={name for _, name in pairs}
    )
    ids = [
        group.pk
        for group in found.only("pk", "namespace", "name")
        if (group.namespace, group.name) in pairs
    ]
    return _rows(PodGroup.objects.filter(pk__in=ids))


def _rows(found: QuerySet[PodGroup]) -> tuple[JobRow, ...]:
    return job_rows(
        list(
            found.exclude(job=None).select_related("queue", "job").order_by("-pk")[: MOST_JOBS + 1]
        )
    )


def choices(rows: Iterable[JobRow], verb: Verb, access: Access, username: str) -> list[Choice]:
    return [_choice(row, verb, access, username) for row in rows]


def _choice(row: JobRow, verb: Verb, access: Access, username: str) -> Choice:
    if not may_command(access, username, row.place, row.owner):
        return Choice(
            row,
            f"it is not yours, and you need the permission “operate” on {row.queue}",
            is_forbidden=True,
        )
    return Choice(row, obstacle(row.phase, verb))
