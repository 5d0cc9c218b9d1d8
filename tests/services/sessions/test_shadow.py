"""Sessions beside another scheduler: figures and reasons are written, decisions are not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler.domain.resources import Resources
from scheduler.models import Decision, Event, Node, Pod, PodGroup, QueueFigures
from scheduler.services.sessions.runner import SessionRunner
from tests.mirrored import (
    MadeUpCluster,
    job,
    kubernetes_mode,
    moved,
    node,
    pod,
    podgroup,
    podgroup_of,
    queue,
)

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture(autouse=True)
def _watching() -> Iterator[None]:
    with kubernetes_mode():
        yield


def test_sessions_wait_until_the_whole_cluster_is_known():
    cluster = MadeUpCluster()
    runner = SessionRunner("test")
    assert runner.run_if_due() is None

    cluster.lists(node("n1"))

    assert runner.run_if_due() is not None


def test_nothing_is_bound_and_the_reason_of_what_waits_is_told():
    cluster = MadeUpCluster()
    cluster.lists(
        node("n1", cpu="4"),
        podgroup("fits"),
        pod("fits-0", group="fits", cpu="1"),
        podgroup("big"),
        pod("big-0", group="big", cpu="64"),
    )

    SessionRunner("test").run()

    assert set(Pod.objects.values_list("phase", "node_id")) == {("Pending", None)}
    assert not Decision.objects.exists()
    assert set(PodGroup.objects.values_list("phase", flat=True)) == {"Pending"}
    assert PodGroup.objects.get(name="big").reason_code == "ExceedsCluster"


def test_what_would_start_is_told_once_that_another_scheduler_decides():
    cluster = MadeUpCluster()
    waiting = pod("fits-0", group="fits", cpu="1")
    cluster.lists(node("n1", cpu="4"), podgroup("fits", phase="Inqueue"), waiting)
    runner = SessionRunner("test")

    runner.run()

    group = PodGroup.objects.get()
    assert group.reason_code == "AnotherSchedulerDecides"
    assert group.conditions == []
    assert not Event.objects.exists()

    cluster.has(node("n2"))
    runner.run()
    assert PodGroup.objects.get().reason_session == group.reason_session

    cluster.has(moved(waiting, node="n1", phase="Running"))
    runner.run()
    assert PodGroup.objects.get().reason_code == ""


def test_a_job_that_ends_between_two_sessions_has_no_reason_any_more():
    cluster = MadeUpCluster()
    train = job("train")
    group = podgroup_of(train, phase="Inqueue")
    cluster.lists(node("n1"), train, group, pod("train-0", group=train.group_name))
    SessionRunner("test").run()
    assert PodGroup.objects.get().reason_code == "AnotherSchedulerDecides"

    cluster.has(moved(train, phase="Completed"))
    cluster.loses(group)

    ended = PodGroup.objects.get()
    assert (ended.phase, ended.reason_code, ended.reason_message) == ("Completed", "", "")


def test_figures_are_those_of_the_cluster_and_not_of_what_would_be_decided():
    cluster = MadeUpCluster()
    cluster.lists(
        node("n1", cpu="8"),
        queue("research", deserved={"cpu": "4"}),
        podgroup("runs", queue="research"),
        pod("runs-0", group="runs", node="n1", cpu="2"),
        podgroup("waits", queue="research"),
        pod("waits-0", group="waits", cpu="1"),
    )

    SessionRunner("test").run()

    figures = QueueFigures.objects.get(queue__name="research")
    assert figures.allocated.amount("cpu") == 2000
    assert figures.deserved.amount("cpu") == 4000


def test_a_session_counts_only_the_room_that_others_leave():
    cluster = MadeUpCluster()
    other = pod("web", node="n1", cpu="6", scheduler="default-scheduler")
    cluster.lists(node("n1", cpu="8"), podgroup("g"), pod("g-0", group="g", cpu="4"), other)
    runner = SessionRunner("test")

    runner.run()
    assert Node.objects.get().taken == Resources.parse({"cpu": "6", "pods": "1"})
    assert PodGroup.objects.get().reason_code not in ("", "AnotherSchedulerDecides")

    cluster.has(moved(other, phase="Succeeded"))
    runner.run()
    assert PodGroup.objects.get().reason_code == "AnotherSchedulerDecides"


def test_a_session_that_would_only_repeat_itself_is_not_run_again():
    cluster = MadeUpCluster()
    cluster.lists(node("n1", cpu="8"), podgroup("g"), pod("g-0", group="g", cpu="4"))
    runner = SessionRunner("test")
    runner.run()
    second = runner.run()
    third = runner.run()

    assert second is not None
    assert third is not None
    assert not third.written.queues


def test_pods_on_a_node_that_is_gone_do_not_stop_sessions():
    cluster = MadeUpCluster()
    first = node("n1")
    cluster.lists(first, podgroup("g"), pod("g-0", group="g", node="n1"))
    runner = SessionRunner("test")
    runner.run()

    cluster.loses(first)

    assert runner.run() is not None
    assert SessionRunner("test").run() is not None
