"""Sessions, jobs and queues say what happened to them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from scheduler.domain.lifecycle import QueueCommand
from scheduler.domain.notices import NoticeKind
from scheduler.domain.queues import ROOT
from scheduler.models import Job, Node, Notice
from scheduler.services.jobs.run_limits import end_overrunning_jobs
from scheduler.services.notices.fan_out import write_notices
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import update_queue
from scheduler.services.queues.warnings import refresh_warnings
from tests.services.notices.people import person, rule
from tests.worlds import job, let_age, let_wait, node, pass_time, queue, run_session

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def watcher():
    """Somebody who wants to know everything of every queue."""
    user = person("ada", admin=True)
    for kind in NoticeKind:
        rule(user, kind, ROOT)
    return user


def titles() -> list[str]:
    write_notices()
    return list(Notice.objects.order_by("pk").values_list("title", flat=True))


def test_a_job_that_starts_and_finishes(watcher):
    node("n1", cpu="4")
    job("train", seconds=30)

    run_session()
    pass_time(5)
    run_session()
    assert titles() == ["Job default/train has started"]

    pass_time(40)
    run_session()
    assert titles() == ["Job default/train has started", "Job default/train has finished"]


def test_a_job_that_is_ended_for_its_time_says_so(watcher):
    node("n1", cpu="4")
    queue("short", max_run_seconds=600)
    begun = job("train", queue="short", seconds=600)
    for _ in range(2):
        run_session()
        pass_time(10)
    long_ago = timezone.now() - timedelta(seconds=601)
    Job.objects.filter(pk=begun.pk).update(phase_since=long_ago, run_begun_at=long_ago)

    end_overrunning_jobs()
    for _ in range(2):
        run_session()
        pass_time(60)

    assert titles()[-1] == "Job default/train was ended"
    words = "It ran for longer than the 600 s that short allows."
    assert Notice.objects.order_by("pk").last().message == words


def test_a_job_that_fails(watcher):
    node("n1", cpu="4")
    job("train", seconds=30, exit_code=3, maxRetry=1)

    for _ in range(4):
        run_session()
        pass_time(40)

    assert titles()[-1] == "Job default/train has failed"


def test_a_job_that_is_evicted(watcher):
    node("n1", cpu="4")
    queue("rich", deserved={"cpu": "1"})
    queue("poor", deserved={"cpu": "3"})
    job("borrower", "rich", replicas=4, least=1)
    run_session()
    pass_time(3)
    let_age()
    run_session()
    job("owner", "poor", replicas=3)
    let_wait()
    run_session()

    assert "Job default/borrower lost pods" in titles()


def test_a_queue_that_is_closed(watcher):
    queue("team")

    command_queue("team", QueueCommand.CLOSE, reason="holidays")

    assert titles() == ["Queue team is Closed now"]


def test_a_quota_that_is_changed(watcher):
    queue("team", deserved={"cpu": "2"})

    update_queue("team", {"spec": {"deserved": {"cpu": "8"}}}, merge=True)

    assert titles() == ["The quota of queue team was changed"]
    assert "Deserved: 2 cpu, now 8 cpu" in Notice.objects.get().message


def test_a_description_is_no_quota(watcher):
    queue("team")

    update_queue("team", {"spec": {"description": "new words"}}, merge=True)

    assert titles() == []


def test_a_tree_that_breaks_a_rule(watcher):
    node("n1", cpu="8")
    queue("team", capability={"cpu": "4"})
    queue("part", "team", deserved={"cpu": "6"})
    refresh_warnings()
    first = titles()
    Node.objects.update(allocatable={"cpu": 16_000})
    refresh_warnings()

    assert first == ["Queue team breaks a rule of the tree"]
    assert titles() == first
