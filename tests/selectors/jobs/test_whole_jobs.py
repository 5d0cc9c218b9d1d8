"""Jobs read by a prepared query are those that Django's own query gives."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.models import Job, PodGroup
from scheduler.selectors.jobs.whole_jobs import jobs_by_ids
from tests.dashboard.api.conftest import Caller, job, queue

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def _values(row: Any) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def test_jobs_come_with_their_queue_and_podgroup_in_one_statement():
    admin = Caller("root", superuser=True)
    admin.post("queues/", queue("a"), expect=201)
    admin.post("jobs/", [job("one", "a", replicas=2), job("two", "a")])
    PodGroup.objects.filter(name="two").delete()

    with CaptureQueriesContext(connection) as asked:
        found = {row.name: row for row in jobs_by_ids(Job.objects.values_list("pk", flat=True))}
        has_podgroup = {name: hasattr(row, "podgroup") for name, row in found.items()}

    assert len(asked) == 2  # the numbers, and the jobs
    assert has_podgroup == {"one": True, "two": False}
    for row in Job.objects.select_related("queue", "podgroup"):
        assert _values(found[row.name]) == _values(row)
        assert _values(found[row.name].queue) == _values(row.queue)
    assert _values(found["one"].podgroup) == _values(PodGroup.objects.get(name="one"))
