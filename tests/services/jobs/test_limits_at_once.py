"""Many who submit at once do not pass a limit together."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from scheduler.admission.violations import Rejected
from scheduler.models import Job
from scheduler.services.jobs.submit import submit_job
from tests.worlds import manifest, queue

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]
AT_ONCE = 6


def test_submits_at_once_below_one_queue_stop_at_its_limit():
    queue("team", max_waiting_pods=6)
    queue("train", "team")
    queue("serve", "team", max_waiting_jobs=100)
    start = threading.Barrier(AT_ONCE)
    results: list[str] = []

    def submit(number: int) -> None:
        leaf = ("train", "serve")[number % 2]
        start.wait()
        try:
            submit_job(manifest(f"job-{number}", leaf, replicas=2))
            results.append("admitted")
        except Rejected as refusal:
            results.append(refusal.violations[0].rule_id)
        finally:
            connection.close()

    threads = [threading.Thread(target=submit, args=[number]) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(results) == ["admitted"] * 3 + ["too_many_waiting_pods_in_queue"] * 3
    assert Job.objects.count() == 3
