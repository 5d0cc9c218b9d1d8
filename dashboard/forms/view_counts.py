"""How many jobs a saved view finds for its reader, and how long the first of them waits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import parse_qs

from django.db.models import Min

from dashboard.forms.job_choice import read_query
from scheduler.domain.access import Access
from scheduler.domain.plans import counted
from scheduler.models import SavedView
from scheduler.selectors.jobs.listing import (
    COUNTED_AT_MOST,
    WAITING,
    count_up_to,
    jobs_matching,
)


@dataclass(frozen=True, slots=True)
class ViewCount:
    """`jobs` is one more than is counted at most where there are more."""

    jobs: int
    oldest: datetime | None = None

    @property
    def words(self) -> str:
        if self.jobs > COUNTED_AT_MOST:
            return f"more than {COUNTED_AT_MOST} jobs"
        return counted(self.jobs, "job")


def count_of_view(view: SavedView, username: str, access: Access) -> ViewCount:
    """With the rights of who looks, who is `user:me` too. 0 where a word is unknown now."""
    text = parse_qs(view.query).get("q", [""])[0]
    query = read_query(text, username)
    if query.problems:
        return ViewCount(0)
    found = jobs_matching(query.conditions, access.readable)
    waiting = found.filter(phase__in=WAITING).order_by()
    return ViewCount(count_up_to(found), waiting.aggregate(oldest=Min("created_at"))["oldest"])
