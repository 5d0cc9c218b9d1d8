from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from scheduler.admission.violations import Rejected
from scheduler.domain.jobs.policies import JobAction
from scheduler.models import BulkRun, Job
from scheduler.services.jobs import bulk
from scheduler.services.jobs.bulk import (
    carry_out_bulk_runs,
    has_waiting_runs,
    retry_bulk_run,
    start_bulk_run,
)
from scheduler.services.jobs.submit import command_job
from tests.dashboard.work import person, small_cluster

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def results(run: BulkRun) -> dict[str, str]:
    return dict(run.items.values_list("name", "result"))


def test_each_job_has_its_own_result():
    keys = [("default", name) for name in ("train-1", "nightly", "no-such-job")]
    run = start_bulk_run(JobAction.TERMINATE, keys, by=person("ruth"), reason="tidying")
    assert has_waiting_runs()

    carry_out_bulk_runs()

    run.refresh_from_db()
    assert run.state == BulkRun.DONE
    assert results(run) == {"train-1": "Done", "nightly": "Refused", "no-such-job": "Refused"}
    assert Job.objects.get(name="train-1").phase in ("Terminating", "Terminated")
    assert Job.objects.get(name="nightly").phase == "Running"
    assert run.items.get(name="no-such-job").message == "There is no such job any more."
    assert not has_waiting_runs()


def test_what_is_so_already_is_no_change():
    first = start_bulk_run(JobAction.ABORT, [("default", "train-2")], by=person("sam"))
    carry_out_bulk_runs()
    second = start_bulk_run(JobAction.ABORT, [("default", "train-2")], by=person("sam"))

    carry_out_bulk_runs()

    assert (results(first), results(second)) == ({"train-2": "Done"}, {"train-2": "NoOp"})


def test_a_long_run_is_carried_out_in_slices(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bulk, "SLICE", 1)
    run = start_bulk_run(
        JobAction.ABORT,
        [("default", "train-1"), ("default", "train-2")],
        by=person("sam"),
    )

    carry_out_bulk_runs()
    run.refresh_from_db()
    assert (run.state, results(run)) == (BulkRun.RUNNING, {"train-1": "Done", "train-2": ""})

    carry_out_bulk_runs()
    run.refresh_from_db()
    assert (run.state, results(run)) == (BulkRun.DONE, {"train-1": "Done", "train-2": "Done"})


def test_a_run_that_a_worker_holds_is_left_alone():
    run = start_bulk_run(JobAction.ABORT, [("default", "train-1")], by=person("sam"))
    assert bulk._claim_run() == run

    carry_out_bulk_runs()

    assert results(run) == {"train-1": ""}


def test_only_the_refused_are_tried_again():
    run = start_bulk_run(
        JobAction.RESUME,
        [("default", "train-1"), ("default", "nightly")],
        by=person("ruth"),
    )
    carry_out_bulk_runs()

    again = retry_bulk_run(run, by=person("admin"))

    assert results(again) == {"nightly": ""}


def test_nothing_chosen_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bulk, "MOST_JOBS", 1)

    with pytest.raises(Rejected, match="There is no job"):
        start_bulk_run(JobAction.ABORT, [], by=person("sam"))
    with pytest.raises(Rejected, match="2 jobs are too many for one run; 1 are the most"):
        start_bulk_run(JobAction.ABORT, [("default", "a"), ("default", "b")], by=person("sam"))


def test_a_run_that_was_claimed_before_the_clock_was_put_back_is_taken_over():
    run = start_bulk_run(JobAction.ABORT, [("default", "train-1")], by=person("sam"))
    BulkRun.objects.filter(pk=run.pk).update(claimed_at=timezone.now() + timedelta(hours=5))

    assert has_waiting_runs()


def test_a_run_whose_worker_is_slow_is_not_taken_over(monkeypatch: pytest.MonkeyPatch):
    run = start_bulk_run(
        JobAction.ABORT,
        [("default", "train-1"), ("default", "train-2")],
        by=person("sam"),
    )
    taken_over = []

    def slowly(*args: Any, **more: Any) -> Any:
        taken_over.append(has_waiting_runs())
        BulkRun.objects.filter(pk=run.pk).update(claimed_at=timezone.now() - timedelta(minutes=1))
        return command_job(*args, **more)

    monkeypatch.setattr(bulk, "command_job", slowly)

    carry_out_bulk_runs()

    assert taken_over == [False, False]
