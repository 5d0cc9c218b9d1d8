"""Jobs of very many pods: asking costs nobody anything, submitting is a few rows, and the pods come
in steps.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.db.models import Count
from django.test.utils import CaptureQueriesContext

from scheduler.admission.violations import Rejected
from scheduler.conf import conf
from scheduler.models import AuditEntry, Job, Namespace, Pod, PodGroup, UnmadePods
from scheduler.selectors.jobs.gangs import pods_by_phase
from scheduler.selectors.queues import submission
from scheduler.services.jobs import pod_creation
from scheduler.services.jobs import submit as job_submit
from scheduler.services.jobs.changes import delete_job, update_job
from scheduler.services.jobs.pod_steps import create_next_pods, stop_next_pods, take_pod_steps
from scheduler.services.jobs.submit import command_job, submit_job
from scheduler.services.sessions import runner as session_runner
from scheduler.services.sessions.runner import SessionRunner
from tests.worlds import job, manifest, node, pass_time, phases, run_session

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def ten_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_creation, "AT_ONCE", 10)


def steps(most: int = 100) -> int:
    """Take steps until all is made, or so many.

    The largest number of pods that one of them made.
    """
    largest = 0
    for _ in range(most):
        row = UnmadePods.objects.values_list("pk", flat=True).first()
        if row is None:
            break
        before = Pod.objects.count()
        create_next_pods(row)
        largest = max(largest, Pod.objects.count() - before)
    return largest


def test_a_dry_run_asks_the_database_and_neither_writes_nor_locks():
    with CaptureQueriesContext(connection) as asked:
        made = submit_job({**manifest("huge", replicas=99_999)}, dry_run=True)

    assert made.pods == 99_999
    statements = [query["sql"] for query in asked.captured_queries]
    assert {statement.split()[0] for statement in statements} <= {"SELECT", "WITH"}
    assert not re.search(r"\b(INSERT|UPDATE|DELETE|FOR)\b", " ".join(statements))
    assert not Job.objects.exists()


@pytest.mark.parametrize("field", ["job", "podgroup", "pod"])
def test_a_dry_run_finds_that_a_name_is_taken(field: str):
    there = job("there", replicas=1)
    names = {"job": Job.objects, "podgroup": PodGroup.objects, "pod": Pod.objects}
    names[field].update(name="train-worker-0" if field == "pod" else "train")

    with pytest.raises(Rejected) as refusal:
        submit_job(manifest("train"), dry_run=True)

    assert [violation.rule_id for violation in refusal.value.violations] == ["already_exists"]
    assert Job.objects.count() == 1
    assert there.podgroup.pods.count() == 1


def test_a_submit_of_a_hundred_thousand_pods_writes_a_few_rows():
    Namespace.objects.get_or_create(name="default")

    with CaptureQueriesContext(connection) as asked:
        made = submit_job(manifest("huge", replicas=100_000))

    assert made.pods == 100_000
    assert len(asked.captured_queries) < 20
    assert max(len(query["sql"]) for query in asked.captured_queries) < 20_000
    assert Pod.objects.count() == 0
    assert AuditEntry.objects.filter(action="SubmitJob").count() == 1
    assert pods_by_phase([made.job.podgroup.pk]) == {made.job.podgroup.pk: {"Pending": 100_000}}


@pytest.mark.usefixtures("ten_at_once")
def test_pods_are_made_in_bounded_steps_and_look_like_any_others():
    large = job("large", replicas=35)
    small = job("small", replicas=3)

    assert small.podgroup.pods.count() == 3
    assert steps() == 10
    assert sorted(large.podgroup.pods.values_list("index", flat=True)) == list(range(35))
    assert large.podgroup.pods.get(index=34).name == "large-worker-34"
    own = [
        field.name
        for field in Pod._meta.fields
        if field.name not in ("id", "uid", "name", "podgroup", "index", "created_at")
    ]
    assert len(set(Pod.objects.values_list(*own))) == 1
    assert len(set(Pod.objects.values_list("uid", flat=True))) == 38


def test_many_rows_in_one_statement_are_stored_like_a_few():
    few = job("few", replicas=3)
    many = job("many", replicas=40)
    own = [
        field.name
        for field in Pod._meta.fields
        if field.name not in ("id", "uid", "name", "podgroup", "index", "created_at")
    ]

    assert (
        len(set(Pod.objects.filter(podgroup__in=(few.podgroup, many.podgroup)).values_list(*own)))
        == 1
    )
    assert (
        many.podgroup.pods.latest("created_at").created_at
        >= few.podgroup.pods.latest("created_at").created_at
    )


@pytest.mark.usefixtures("ten_at_once")
def test_an_elastic_job_begins_before_all_its_pods_are_made_and_ends_only_with_the_last():
    node("n1", cpu="64")
    elastic = job("elastic", replicas=30, least=1, seconds=5)
    steps(1)

    run_session()
    pass_time(30)

    assert phases(elastic) == ["Succeeded"] * 10
    elastic.refresh_from_db()
    assert elastic.phase == "Running"
    steps()
    run_session()
    pass_time(30)
    elastic.refresh_from_db()
    assert (elastic.phase, phases(elastic)) == ("Completed", ["Succeeded"] * 30)


@pytest.mark.usefixtures("ten_at_once")
def test_a_gang_starts_when_its_last_pod_has_been_made():
    node("n1", cpu="64")
    gang = job("gang", replicas=25)
    steps(2)

    run_session()
    assert phases(gang) == ["Pending"] * 20
    steps()
    run_session()

    assert "Pending" not in phases(gang)


@pytest.mark.usefixtures("ten_at_once")
def test_a_job_that_is_cancelled_midway_gets_no_more_pods():
    large = job("large", replicas=35)
    steps(1)

    command_job("default", "large", "Cancel")

    large.refresh_from_db()
    assert (large.phase, Pod.objects.count(), UnmadePods.objects.count()) == ("Terminated", 0, 0)


def stop_steps(most: int = 100) -> int:
    """Stop pods until all are stopped, or so many times; the largest number of one step."""
    largest = 0
    for _ in range(most):
        group = PodGroup.objects.filter(stopping=True).first()
        if group is None:
            break
        before = Counter(phases(group.job))
        stop_next_pods(group.pk)
        largest = max(largest, (before - Counter(phases(group.job))).total())
    return largest


@pytest.mark.usefixtures("ten_at_once")
@pytest.mark.parametrize(
    ("command", "after"),
    [("Cancel", "Terminated"), ("Suspend", "Aborted"), ("Complete", "Completed")],
)
def test_a_large_job_is_stopped_in_bounded_steps(command: str, after: str):
    large = job("large", replicas=35)
    steps()

    with CaptureQueriesContext(connection) as asked:
        result = command_job("default", "large", command)

    assert result.job.phase in ("Terminating", "Aborting", "Completing")
    assert Pod.objects.count() == 35
    writes = ('UPDATE "scheduler_pod" ', 'DELETE FROM "scheduler_pod" ')
    assert not [query for query in asked.captured_queries if query["sql"].startswith(writes)]
    assert stop_steps() == 10
    large.refresh_from_db()
    assert (large.phase, Pod.objects.count()) == (after, 0)
    assert large.podgroup.phase == "Completed"
    assert not large.podgroup.stopping


@pytest.mark.usefixtures("ten_at_once")
def test_no_session_places_pods_of_a_job_that_is_being_stopped():
    runner = SessionRunner("test")
    large = job("large", replicas=35, least=1)
    steps()
    runner.run()
    command_job("default", "large", "Cancel")
    node("n1", cpu="64")

    for _ in range(3):
        runner.run()
        stop_steps(1)

    assert phases(large) == ["Pending"] * 5


@pytest.mark.usefixtures("ten_at_once")
def test_a_session_that_thought_while_a_large_job_was_cancelled_places_none_of_its_pods(
    monkeypatch: pytest.MonkeyPatch,
):
    node("n1", cpu="64")
    large = job("large", replicas=35, least=1)
    steps()
    think = session_runner.run_session

    def think_and_cancel(*given: Any, **named: Any) -> Any:
        outcome = think(*given, **named)
        assert outcome.binds
        command_job("default", "large", "Cancel")
        return outcome

    monkeypatch.setattr(session_runner, "run_session", think_and_cancel)
    run_session()

    assert set(phases(large)) == {"Pending"}
    assert stop_steps() == 10
    assert Pod.objects.count() == 0


@pytest.mark.usefixtures("ten_at_once")
def test_the_pods_of_a_large_job_that_are_on_nodes_are_stopped_first():
    node("n1", cpu="12")
    large = job("large", replicas=35, least=1, seconds=3600)
    steps()
    run_session()
    pass_time(5)
    assert Counter(phases(large)) == {"Running": 12, "Pending": 23}

    command_job("default", "large", "Cancel")
    stop_steps(2)

    assert Counter(phases(large)) == {"Releasing": 12, "Pending": 23}
    stop_steps()
    run_session()
    pass_time(60)
    large.refresh_from_db()
    assert (large.phase, phases(large)) == ("Terminated", [])


@pytest.mark.usefixtures("ten_at_once")
def test_a_large_job_that_ended_is_restarted_in_bounded_steps():
    node("n1", cpu="64")
    large = job("large", replicas=35, seconds=5)
    steps()
    run_session()
    pass_time(30)
    assert phases(large) == ["Succeeded"] * 35

    command_job("default", "large", "Restart")

    assert stop_steps() == 10
    large.refresh_from_db()
    assert (large.phase, Pod.objects.count()) == ("Pending", 0)
    assert steps() == 10
    assert phases(large) == ["Pending"] * 35


@pytest.mark.usefixtures("ten_at_once")
def test_asking_what_a_cancel_would_do_stops_nothing():
    large = job("large", replicas=35)
    steps()

    command_job("default", "large", "Cancel", dry_run=True)

    large.refresh_from_db()
    assert large.phase == "Pending"
    assert not large.podgroup.stopping


@pytest.mark.usefixtures("ten_at_once")
def test_a_worker_stops_the_pods_of_large_jobs_too(monkeypatch: pytest.MonkeyPatch):
    pauses: list[float] = []
    monkeypatch.setattr("scheduler.services.jobs.pod_steps.time.sleep", pauses.append)
    job("one", replicas=35)
    steps()
    command_job("default", "one", "Cancel")
    job("two", replicas=25)

    take_pod_steps()

    assert dict(Pod.objects.values_list("podgroup__name").annotate(Count("pk"))) == {"two": 25}
    assert Job.objects.get(name="one").phase == "Terminated"
    assert (
        len(pauses) == 5 + 3
    )  # four that stop pods and one that ends it, and three that make pods


@pytest.mark.usefixtures("ten_at_once")
def test_a_restart_of_a_large_job_makes_its_pods_in_steps_too():
    large = job("large", replicas=35)
    steps(2)

    command_job("default", "large", "Restart")

    assert stop_steps() == 10
    assert Pod.objects.count() == 0
    assert steps() == 10
    assert Pod.objects.filter(podgroup=large.podgroup).count() == 35


@pytest.mark.usefixtures("ten_at_once")
@pytest.mark.parametrize(("replicas", "after_a_step"), [(5, 5), (15, 15), (60, 20)])
def test_a_large_job_can_be_scaled_while_its_pods_are_made(replicas: int, after_a_step: int):
    large = job("large", replicas=35, least=1)
    steps(1)

    update_job(
        "default",
        "large",
        {"spec": {"tasks": [{**large.tasks[0], "replicas": replicas}]}},
        merge=True,
    )
    steps(1)
    assert Pod.objects.count() == after_a_step
    steps()

    assert sorted(Pod.objects.values_list("index", flat=True)) == list(range(replicas))
    assert PodGroup.objects.get().size == replicas


@pytest.mark.usefixtures("ten_at_once")
def test_a_small_job_that_grows_large_gets_the_rest_in_steps():
    small = job("small", replicas=2, least=1)

    update_job(
        "default",
        "small",
        {"spec": {"tasks": [{**small.tasks[0], "replicas": 40}]}},
        merge=True,
    )

    assert Pod.objects.count() == 12
    assert steps() == 10
    assert Pod.objects.count() == 40


@pytest.mark.usefixtures("ten_at_once")
def test_a_job_whose_names_were_taken_meanwhile_fails_and_says_so():
    large = job("large", replicas=35)
    other = job("other", replicas=1)
    Pod.objects.filter(podgroup=other.podgroup).update(name="large-worker-12")

    steps()

    large.refresh_from_db()
    assert large.phase == "Failed"
    assert "names" in large.message
    assert not UnmadePods.objects.exists()


@pytest.mark.usefixtures("ten_at_once")
def test_a_worker_makes_the_pods_of_all_jobs(monkeypatch: pytest.MonkeyPatch):
    asked: list[Any] = []
    monkeypatch.setattr("scheduler.services.jobs.pod_steps.time.sleep", asked.append)
    job("one", replicas=35)
    job("two", replicas=25)

    take_pod_steps()

    assert Pod.objects.count() == 60
    assert len(asked) == 7  # after every step there is a pause for the others


@pytest.mark.django_db(transaction=True)
def test_two_who_submit_at_once_do_not_pass_a_limit_together(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(submission, "conf", lambda: replace(conf(), limits={"pods_per_queue": 10}))
    made = job_submit._create_job

    def slowly(*given: Any) -> Any:
        time.sleep(0.3)  # whoever else has begun meanwhile has looked at what waits
        return made(*given)

    monkeypatch.setattr(job_submit, "_create_job", slowly)

    def submit(name: str) -> str:
        try:
            submit_job(manifest(name, replicas=6))
        except Rejected as refusal:
            return refusal.violations[0].rule_id
        finally:
            connection.close()
        return "made"

    with ThreadPoolExecutor(3) as threads:
        found = sorted(threads.map(submit, ["a", "b", "c"]))

    assert found == ["made", "too_many_waiting_pods_in_queue", "too_many_waiting_pods_in_queue"]


# Made smaller


@pytest.fixture
def large_and_running() -> Job:
    """12 of its 35 pods run, and the others wait."""
    node("n1", cpu="12")
    large = job("large", replicas=35, least=1, seconds=3600)
    steps()
    run_session()
    pass_time(5)
    return large


def make_smaller(replicas: int) -> None:
    update_job("default", "large", manifest("large", replicas=replicas, least=1, seconds=3600))


@pytest.mark.usefixtures("ten_at_once")
def test_the_pods_of_a_large_job_that_is_made_smaller_go_in_steps(large_and_running: Job):
    make_smaller(2)

    assert Counter(phases(large_and_running)) == {"Running": 12, "Pending": 23}
    stop_steps(1)
    assert Counter(phases(large_and_running)) == {"Running": 2, "Releasing": 10, "Pending": 23}
    assert stop_steps() == 10
    run_session()
    pass_time(60)
    assert Counter(phases(large_and_running)) == {"Running": 2}
    large_and_running.refresh_from_db()
    assert large_and_running.phase == "Running"


@pytest.mark.usefixtures("ten_at_once")
def test_what_is_left_of_a_smaller_job_is_placed_when_the_others_are_gone():
    runner = SessionRunner("test")
    large = job("large", replicas=35, least=1, seconds=3600)
    steps()
    runner.run()
    make_smaller(3)
    node("n1", cpu="12")

    runner.run()
    assert set(phases(large)) == {"Pending"}
    stop_steps()
    runner.run()

    assert Counter(phases(large)) == {"Binding": 3}


@pytest.mark.usefixtures("ten_at_once")
def test_a_job_is_not_resized_again_while_pods_of_it_are_removed(large_and_running: Job):
    make_smaller(2)

    with pytest.raises(Rejected) as refusal:
        make_smaller(20)

    assert refusal.value.by_state
    assert [violation.rule_id for violation in refusal.value.violations] == ["job_is_shrinking"]
    stop_steps()
    run_session()
    pass_time(60)
    make_smaller(4)
    assert len(phases(large_and_running)) == 4


@pytest.mark.usefixtures("ten_at_once")
def test_a_smaller_job_that_is_cancelled_loses_the_rest_in_steps_too(large_and_running: Job):
    make_smaller(2)

    command_job("default", "large", "Cancel")

    assert Counter(phases(large_and_running)) == {"Running": 12, "Pending": 23}
    assert stop_steps() == 10
    run_session()
    pass_time(60)
    assert phases(large_and_running) == []


@pytest.mark.usefixtures("ten_at_once")
@pytest.mark.django_db(transaction=True)
def test_a_large_job_that_has_ended_is_deleted_in_steps(monkeypatch: pytest.MonkeyPatch):
    pauses: list[float] = []
    monkeypatch.setattr("scheduler.services.jobs.changes.time.sleep", pauses.append)
    large = job("large", replicas=35)
    steps()
    Pod.objects.update(phase="Succeeded")
    Job.objects.update(phase="Completed")

    with CaptureQueriesContext(connection) as asked:
        delete_job("default", "large")

    assert not Job.objects.filter(pk=large.pk).exists()
    assert not Pod.objects.exists()
    assert len(pauses) == 3
    assert sum(query["sql"].startswith("BEGIN") for query in asked.captured_queries) == 5
