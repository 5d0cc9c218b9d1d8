"""Jobs that have run for as long as their queue allows are ended, and it is told why."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import AuditEntry, Event, Job, Node, Pod
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.cluster.tick import watch
from scheduler.services.jobs.run_limits import end_overrunning_jobs
from scheduler.services.jobs.submit import command_job
from scheduler.services.queues.commands import command_queue
from tests.dashboard.api.conftest import Caller
from tests.worlds import job, node, pass_time, queue, run_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def running() -> Job:
    """A job that has run for ten minutes, two levels below the queue that limits it."""
    queue("team", max_run_seconds=600)
    queue("train", "team", max_run_seconds=3600)
    node("n1", cpu="4")
    begun = job("long", "train", seconds=600)
    _start()
    begun.refresh_from_db()
    assert begun.phase == "Running"
    return begun


def _start() -> None:
    for _ in range(2):
        run_session()
        pass_time(10)


def _let_run(job: Job, seconds: float) -> None:
    since = timezone.now() - timedelta(seconds=seconds)
    Job.objects.filter(pk=job.pk).update(phase_since=since, run_begun_at=since)


def test_a_job_runs_until_the_limit_and_not_longer(running: Job):
    _let_run(running, 590)
    assert end_overrunning_jobs() == 0
    _let_run(running, 601)

    watch()

    running.refresh_from_db()
    assert running.phase in ("Terminating", "Terminated")
    assert running.shown_message == "it ran for longer than the 600 s that team allows"
    assert end_overrunning_jobs() == 0


def test_it_is_told_in_the_api_on_the_page_in_events_and_in_the_audit_log(
    running: Job, admin: Caller, client: Client
):
    found = admin.get("jobs/default/long/")["status"]["runLimit"]
    assert (found["seconds"], found["queue"]) == (600, "team")
    assert found["endsAt"]
    client.force_login(admin.user)
    assert "more: team allows 10 min" in client.get("/jobs/default/long/").content.decode()
    _let_run(running, 601)

    end_overrunning_jobs()
    run_session()
    pass_time(60)

    state = admin.get("jobs/default/long/")["status"]["state"]
    assert (state["phase"], state["reason"]) == ("Terminated", "RunTimeExceeded")
    words = "it ran for longer than the 600 s that team allows"
    assert state["message"] == words
    assert f"{words}." in client.get("/jobs/default/long/").content.decode()
    event = Event.objects.get(reason="RunTimeExceeded")
    assert (event.name, event.queue_name, event.type) == ("long", "train", "Warning")
    entry = AuditEntry.objects.get(action="TerminateJob")
    assert (entry.actor, entry.reason) == ("system", words)


def test_a_job_that_had_ended_has_all_its_time_again(running: Job):
    _let_run(running, 601)
    end_overrunning_jobs()
    run_session()
    pass_time(60)
    command_job("default", "long", "RestartJob")
    pass_time(60)
    _start()

    assert end_overrunning_jobs() == 0

    running.refresh_from_db()
    assert running.phase == "Running"
    assert running.overran_at is None
    command_job("default", "long", "TerminateJob")
    running.refresh_from_db()
    assert running.shown_message != running.overran


@pytest.mark.parametrize("commands", [["RestartJob"], ["AbortJob", "ResumeJob"]])
def test_a_restart_or_a_suspension_gives_no_more_time(running: Job, commands: list[str]):
    _let_run(running, 400)
    for command in commands:
        command_job("default", "long", command)
        pass_time(60)
    _start()
    running.refresh_from_db()
    assert running.phase == "Running"

    assert end_overrunning_jobs() == 0
    Job.objects.filter(pk=running.pk).update(
        run_begun_at=running.run_begun_at - timedelta(seconds=201)
    )
    assert end_overrunning_jobs() == 1


def test_a_job_whose_pods_were_all_evicted_is_not_ended_while_it_waits(running: Job):
    _let_run(running, 590)
    Pod.objects.filter(podgroup__job=running).update(phase="Pending", node=None)
    assert end_overrunning_jobs() == 0
    an_hour_ago = timezone.now() - timedelta(hours=1)
    Job.objects.filter(pk=running.pk).update(
        run_paused_at=an_hour_ago, run_begun_at=an_hour_ago - timedelta(seconds=590)
    )
    assert end_overrunning_jobs() == 0

    Pod.objects.filter(podgroup__job=running).update(phase="Bound", node=Node.objects.get())

    assert end_overrunning_jobs() == 0
    running.refresh_from_db()
    ran = timezone.now() - (running.run_begun_at or timezone.now())
    assert timedelta(seconds=590) <= ran < timedelta(seconds=600)


def test_it_is_ended_in_a_queue_that_is_suspended_too(running: Job):
    command_queue("team", QueueCommand.SUSPEND, by=SYSTEM)
    _let_run(running, 601)

    assert end_overrunning_jobs() == 1


def test_an_ended_job_is_asked_again_when_it_is_restarted(running: Job, admin: Caller):
    command_job("default", "long", "TerminateJob")
    run_session()
    pass_time(60)
    running.refresh_from_db()
    assert running.phase == "Terminated"
    admin.patch("queues/team/", {"spec": {"maxRunSeconds": 60}})

    refused = admin.post("jobs/default/long/restart/", {}, 409)

    assert [flaw["ruleId"] for flaw in refused["violations"]] == ["run_time_too_long"]


def test_who_lowers_the_limit_is_told_first_whom_it_ends(running: Job, admin: Caller):
    _let_run(running, 300)

    asked = {"spec": {"maxRunSeconds": 120}}
    told = admin.patch("queues/team/?dry_run=true", asked)["warnings"]

    assert [warning["code"] for warning in told] == ["jobs_would_end"]
    assert told[0]["message"] == (
        "1 job in team has run for longer than would be allowed, and would be ended at once."
    )
    assert (
        admin.patch("queues/train/?dry_run=true", {"spec": {"maxRunSeconds": 900}}).get(
            "warnings", []
        )
        == []
    )
    assert end_overrunning_jobs() == 0
    admin.patch("queues/team/", asked)
    assert end_overrunning_jobs() == 1
