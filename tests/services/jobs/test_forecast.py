from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from scheduler.domain.access import Forbidden
from scheduler.models import Job, Pod, Queue
from scheduler.services.jobs.forecast import Prospect, forecast_job
from scheduler.services.records.change_log import ensure_own_change_log
from scheduler.services.sessions.requests import pause_scheduling
from tests.dashboard.work import person, small_cluster
from tests.worlds import job, manifest, run_session

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def test_what_fits_starts_now_and_on_which_nodes():
    verdict = forecast_job(manifest("new", "vision", replicas=2), by=person("sam"))

    assert verdict.prospect is Prospect.STARTS
    assert verdict.message == "2 pods would start at once, on 1 node."
    assert sum(verdict.nodes.values()) == 2


def test_what_does_not_fit_now_waits_with_the_reason_of_a_session():
    job("filler", "batch", replicas=8, least=1)
    run_session()

    verdict = forecast_job(manifest("new", "language", replicas=6), by=person("admin"))

    assert verdict.prospect is Prospect.WAITS
    assert verdict.code
    assert verdict.message


def test_what_is_above_the_limit_of_its_queue_can_never_run():
    verdict = forecast_job(manifest("new", "vision", replicas=13), by=person("sam"))

    assert (verdict.prospect, verdict.code) == (Prospect.NEVER, "ExceedsCapability")


def test_a_resource_that_the_cluster_does_not_have_can_never_be_had():
    asked = manifest("new", "vision")
    asked["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]["requests"] = {
        "example.com/laser": "1"
    }

    verdict = forecast_job(asked, by=person("sam"))

    assert (verdict.prospect, verdict.message) == (
        Prospect.NEVER,
        "The cluster has no example.com/laser at all.",
    )


def test_a_pause_is_said():
    pause_scheduling(by=person("admin"))

    verdict = forecast_job(manifest("new", "vision"), by=person("sam"))

    assert (verdict.prospect, verdict.code) == (Prospect.WAITS, "SchedulingPaused")


def test_every_broken_rule_is_told():
    Queue.objects.filter(name="vision").update(state="Closed", wish="Closed")

    verdict = forecast_job(manifest("new", "vision", replicas=2, minAvailable=9), by=person("sam"))

    assert verdict.prospect is Prospect.REFUSED
    assert {"queue_not_open", "min_available_exceeds_replicas"} <= {
        item.rule_id for item in verdict.violations
    }


def test_a_name_that_is_taken_is_told():
    verdict = forecast_job(manifest("train-1", "vision"), by=person("sam"))

    assert [item.rule_id for item in verdict.violations] == ["already_exists"]


def test_who_may_not_submit_is_told_so():
    with pytest.raises(Forbidden, match="“submit” on the queue vision"):
        forecast_job(manifest("new", "vision"), by=person("vera"))


def test_nothing_is_left_behind():
    before = Job.objects.count(), Pod.objects.count()

    forecast_job(manifest("new", "vision", replicas=2), by=person("sam"))

    assert (Job.objects.count(), Pod.objects.count()) == before


def _pods_read(queries: CaptureQueriesContext) -> list[str]:
    """The statements that read pods one by one; every 60th forecast also checks sums over them."""
    statements = [query["sql"] for query in queries]
    return [sql for sql in statements if "FROM scheduler_pod p JOIN" in sql and "count(" not in sql]


def test_only_the_first_forecast_reads_every_pod():
    ensure_own_change_log()  # as every session does; an emptied database has a log without a name
    forecast_job(manifest("new", "vision"), by=person("sam"))

    with CaptureQueriesContext(connection) as queries:
        forecast_job(manifest("new", "vision"), by=person("sam"))

    assert _pods_read(queries) == []


def test_what_was_tried_out_leaves_no_trace_for_the_next():
    first = forecast_job(manifest("new", "vision", replicas=8), by=person("sam"))

    assert [
        forecast_job(manifest("new", "vision", replicas=8), by=person("sam")) for _ in range(3)
    ] == [first] * 3


def test_a_forecast_knows_what_happened_since_the_last():
    asked = manifest("new", "language", replicas=6)
    before = forecast_job(asked, by=person("admin"))
    job("filler", "batch", replicas=8, least=1)
    run_session()

    after = forecast_job(asked, by=person("admin"))

    assert (before.prospect, after.prospect) == (Prospect.STARTS, Prospect.WAITS)


def test_a_database_that_was_put_back_is_read_anew():
    asked = manifest("new", "language", replicas=6)
    sid = transaction.savepoint()
    job("filler", "batch", replicas=8, least=1)
    run_session()
    full = forecast_job(asked, by=person("admin"))

    transaction.savepoint_rollback(sid)

    assert (full.prospect, forecast_job(asked, by=person("admin")).prospect) == (
        Prospect.WAITS,
        Prospect.STARTS,
    )
