"""Pods say why they have no place: a condition each, an event a gang, and nothing is written again
that did not change.
"""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.api.podgroups import explanation
from scheduler.models import Event, Job, Node, Pod, PodGroup
from scheduler.selectors.jobs.gangs import place_in_line
from scheduler.selectors.jobs.pod_conditions import pod_conditions
from scheduler.services.sessions.runner import SessionRunner
from tests.worlds import job, node, run_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def told(made: Job) -> list[tuple[str, str, str]]:
    pods = Pod.objects.select_related("podgroup").filter(podgroup__job=made).order_by("index")
    return [
        (condition["status"], condition.get("reason", ""), condition.get("message", ""))
        for pod in pods
        for condition in pod_conditions(pod)
    ]


def fragmented() -> Job:
    """Three pods of two cores, and room for two of them: six cores on two nodes."""
    node("n1", cpu="3")
    node("n2", cpu="3")
    return job("train", replicas=3, cpu="2")


def test_a_gang_that_almost_fits_tells_each_pod_whether_it_would_have_a_place():
    made = fragmented()

    run_session()

    waiting = "can possibly be scheduled once minAvailable is satisfied"
    nowhere = "0/2 nodes are unavailable: 2 Insufficient cpu."
    assert told(made) == [
        ("False", "Schedulable", f"pod default/train-worker-0 {waiting}"),
        ("False", "Schedulable", f"pod default/train-worker-1 {waiting}"),
        ("False", "Unschedulable", nowhere),
    ]
    events = Event.objects.filter(kind="Pod", reason="FailedScheduling").order_by("id")
    assert [event.name for event in events] == [
        "train-worker-0",
        "train-worker-2",
    ]  # one for each thing that is said


def test_a_pod_that_has_a_place_is_scheduled_and_its_gang_forgets_why_it_waited():
    made = fragmented()
    run_session()
    assert PodGroup.objects.get(job=made).reason_code
    node("n3", cpu="4")

    run_session()  # of a worker that started just now, and did not say so itself
    run_session()

    assert {status for status, _, _ in told(made)} == {"True"}
    group = PodGroup.objects.get(job=made)
    assert (group.reason_code, group.pod_conditions) == ("", [])


def test_before_any_session_there_is_nothing_to_say():
    assert told(job("train")) == []


def test_what_is_told_is_told_anew_only_when_it_changed():
    made = fragmented()
    runner = SessionRunner("test")
    for _ in range(2):
        run_session(runner)
    before = PodGroup.objects.get(job=made).pod_conditions

    with CaptureQueriesContext(connection) as log:
        run_session(runner)
        Node.objects.filter(name="n1").update(
            labels={"zone": "a"}
        )  # thought about anew, with nothing new to say
        run_session(runner)

    assert not [
        query for query in log.captured_queries if "UPDATE scheduler_podgroup" in query["sql"]
    ]
    assert PodGroup.objects.get(job=made).pod_conditions == before


def test_a_gang_of_many_pods_keeps_a_handful_of_entries():
    for number in range(20):
        node(f"n{number}", cpu="7")
    made = job("wide", replicas=68, cpu="2")

    run_session()

    group = PodGroup.objects.get(job=made)
    assert [len(entry["pods"]) for entry in group.pod_conditions] == [1, 1]
    assert [status for status, _, _ in told(made)] == ["False"] * 68
    assert Event.objects.filter(kind="Pod", reason="FailedScheduling").count() == 2


def runs_without_one() -> Job:
    """Three pods of two cores of which one is enough, and room for two of them."""
    node("n1", cpu="5")
    made = job("web", replicas=3, least=1, cpu="2")
    run_session()
    run_session()
    return made


def test_a_pod_beyond_the_minimum_of_a_gang_that_runs_says_why_it_has_no_place():
    made = runs_without_one()

    nowhere = "0/1 nodes are unavailable: 1 Insufficient cpu."
    assert told(made)[2] == ("False", "Unschedulable", nowhere)
    assert {status for status, _, _ in told(made)[:2]} == {"True"}
    group = PodGroup.objects.get(job=made)
    assert (group.phase, group.reason_code, group.reason_message) == ("Running", "", "")
    assert explanation(place_in_line("default", "web"))["message"] == (
        f"It runs. 1 more pod waits: {nowhere}"
    )


def test_when_it_has_its_place_nothing_is_said_of_it_any_more():
    made = runs_without_one()
    node("n2", cpu="4")

    run_session()  # of a worker that started just now, and did not say so itself

    assert PodGroup.objects.get(job=made).pod_conditions == []
    assert explanation(place_in_line("default", "web"))["message"] == "It runs."
