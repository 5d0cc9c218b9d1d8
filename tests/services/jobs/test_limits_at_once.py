"""Many who submit at once do not pass a limit together."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from scheduler.admission.violations import Rejected
from scheduler.conf import conf
from scheduler.models import Job
from scheduler.selectors.queues import submission
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.jobs import submit_many
from scheduler.services.jobs.submit import Submitted, submit_job
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


def test_lists_at_once_stop_at_a_limit_of_all_queues(monkeypatch: pytest.MonkeyPatch):
    lists, jobs, limit = 4, 14, 30
    queue("team")
    limits = {"jobs_per_queue": limit}
    monkeypatch.setattr(submission, "conf", lambda: replace(conf(), limits=limits))
    all_have_looked = threading.Barrier(lists)
    insert = submit_many.insert_jobs

    waited = threading.local()

    def insert_late(*rows: Any) -> list[int]:
        if not hasattr(waited, "once"):
            waited.once = True
            all_have_looked.wait(timeout=20)
        return insert(*rows)

    monkeypatch.setattr(submit_many, "insert_jobs", insert_late)
    admitted: list[Submitted] = []

    def submit(number: int) -> None:
        wanted = [manifest(f"job-{number}-{each}", "team") for each in range(jobs)]
        try:
            results = submit_many.submit_jobs(wanted, by=SYSTEM)
            admitted.extend(each for each in results if isinstance(each, Submitted))
        finally:
            connection.close()

    threads = [threading.Thread(target=submit, args=[number]) for number in range(lists)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(admitted) == Job.objects.count() == limit
