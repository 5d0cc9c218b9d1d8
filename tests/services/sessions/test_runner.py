"""Sessions on a real database: what they write, and what is written when the world moves on
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import (
    ClusterState,
    Decision,
    Event,
    Node,
    Pod,
    PodGroup,
    QueueFigures,
    SchedulingSession,
)
from scheduler.services.cluster.dispatch import dispatch
from scheduler.services.cluster.simulation import lose_node
from scheduler.services.queues.commands import command_queue
from scheduler.services.sessions.requests import pause_scheduling
from scheduler.services.sessions.runner import SessionRunner
from tests.histories import broken_rules, half_gangs
from tests.worlds import job, let_age, let_wait, node, pass_time, phases, queue, run_session

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


# What a session does, and does not do


def test_a_session_never_makes_a_pod_running():
    node("n1", cpu="8")
    made = job("train", replicas=2)

    run_session()
    run_session()
    assert phases(made) == ["Bound", "Bound"]

    pass_time(3)
    assert phases(made) == ["Running", "Running"]


def test_what_was_decided_is_stored_with_reasons_figures_and_counts():
    node("n1", cpu="4")
    job("fits", replicas=2)
    big = job("big", replicas=8)

    result = run_session()

    row = SchedulingSession.objects.get(number=result.number)
    assert (row.state, row.counts["binds"], row.counts["reloaded"]) == ("Done", 2, True)
    assert set(row.durations) == {"claim", "read", "think", "write", "actions"}
    assert sum(row.durations["actions"].values()) <= row.durations["think"]
    assert Decision.objects.filter(session=row, kind="Bind").count() == 2
    waiting = PodGroup.objects.get(job=big)
    assert waiting.reason_code
    assert waiting.reason_session == result.number
    figures = QueueFigures.objects.get(queue__name="default")
    assert dict(figures.allocated)["cpu"] == 2000
    assert dict(ClusterState.objects.get(pk=1).total)["cpu"] == 4000


def test_what_does_not_change_is_not_written_again():
    node("n1", cpu="4")
    job("fits", replicas=2)
    job("big", replicas=8)
    runner = SessionRunner("test")
    for _ in range(3):
        run_session(runner)

    with CaptureQueriesContext(connection) as log:
        runner.run()

    writes = [
        query["sql"]
        for query in log.captured_queries
        if query["sql"].startswith(("UPDATE", "INSERT", "DELETE"))
    ]
    tables = {
        table
        for table in (
            "scheduler_pod",
            "scheduler_podgroup",
            "scheduler_queuefigures",
            "scheduler_event",
        )
        if table in str(writes)
    }
    assert tables == set()


def test_the_number_of_queries_does_not_depend_on_the_number_of_placements():
    for number in range(4):
        node(f"n{number}", cpu="64")
    runner = SessionRunner("test")
    run_session(runner)
    counts = []
    for size in (1, 2, 60):
        job(f"job-{size}", replicas=size, least=1)
        with CaptureQueriesContext(connection) as log:
            result = runner.run()
        assert result
        assert len(result.written.bound) == size
        counts.append(
            len([query for query in log.captured_queries if "SAVEPOINT" not in query["sql"]])
        )
        dispatch()
        for _ in range(3):
            run_session(runner)

    assert counts[1] == counts[2]
    assert counts[2] <= 30


def test_the_pods_of_a_session_are_written_in_a_dozen_queries():
    node("n1", cpu="64")
    job("train", replicas=20)
    runner = SessionRunner("test")

    with CaptureQueriesContext(connection) as log:
        runner.run()

    written = [
        query["sql"]
        for query in log.captured_queries
        if query["sql"].startswith(("UPDATE scheduler_", "INSERT INTO scheduler_"))
    ]
    assert len(written) <= 12


# The world moves on between thinking and writing


def bound_after(
    happening: Callable[[], object], meanwhile: Callable[[Callable[[], object]], None]
) -> list[str]:
    meanwhile(happening)
    result = SessionRunner("test").run()
    assert result
    assert broken_rules() == []
    assert half_gangs() == []
    return sorted(bind.pod for bind in result.written.bound)


def test_a_gang_that_lost_a_pod_meanwhile_is_left_whole_for_the_next_session(meanwhile: Any):
    node("n1", cpu="8")
    made = job("train", replicas=3)
    other = job("other")

    bound = bound_after(made.podgroup.pods.order_by("id")[0].delete, meanwhile)

    assert bound == ["default/other-worker-0"]
    assert phases(made) == ["Pending", "Pending"]
    assert phases(other) == ["Binding"]
    assert SchedulingSession.objects.latest("number").counts["lost"] == 3
    assert not Event.objects.filter(name="train", reason="Scheduled").exists()


def test_a_queue_that_was_suspended_meanwhile_gets_nothing(meanwhile: Any):
    queue("a")
    node("n1", cpu="8")
    made = job("train", "a")
    other = job("other")

    bound = bound_after(lambda: command_queue("a", QueueCommand.SUSPEND), meanwhile)

    assert (phases(made), bound) == (["Pending"], ["default/other-worker-0"])
    assert phases(other) == ["Binding"]


def test_a_node_that_was_lost_meanwhile_gets_nothing(meanwhile: Any):
    node("n1", cpu="8")
    made = job("train", replicas=2)

    assert bound_after(lambda: lose_node("n1"), meanwhile) == []
    assert phases(made) == ["Pending", "Pending"]


def test_a_node_that_was_cordoned_meanwhile_gets_nothing(meanwhile: Any):
    node("n1", cpu="8")
    job("train", replicas=2)

    assert bound_after(lambda: Node.objects.update(unschedulable=True), meanwhile) == []


def test_a_gang_over_two_nodes_of_which_one_went_is_not_started_by_half(meanwhile: Any):
    node("n1", cpu="2")
    node("n2", cpu="2")
    made = job("train", replicas=4)

    assert bound_after(lambda: lose_node("n2"), meanwhile) == []
    assert phases(made) == ["Pending"] * 4


def test_a_job_that_was_cancelled_meanwhile_gets_nothing(meanwhile: Any):
    node("n1", cpu="8")
    made = job("train", replicas=2)

    assert (
        bound_after(lambda: PodGroup.objects.filter(job=made).update(phase="Completed"), meanwhile)
        == []
    )


def test_a_pause_that_comes_while_a_session_thinks_is_respected(meanwhile: Any):
    node("n1", cpu="8")
    made = job("train")

    assert bound_after(lambda: pause_scheduling(reason="stop"), meanwhile) == []

    assert phases(made) == ["Pending"]
    assert PodGroup.objects.get(job=made).reason_code == "SchedulingPaused"


@pytest.fixture
def reclaim() -> Callable[[], list[str]]:
    """One queue has all of a node, another asks for its half: who is told to go."""
    node("n1", cpu="2")
    queue("rich", deserved={"cpu": "1"})
    queue("poor", deserved={"cpu": "1"})
    job("old", "rich", replicas=2, least=1)
    run_session()
    pass_time(3)
    let_age()
    run_session()
    job("new", "poor")
    let_wait()

    def run() -> list[str]:
        result = SessionRunner("test").run()
        assert result
        assert Decision.objects.filter(kind="Evict").count() == len(result.written.evicted)
        return [evict.queue for evict in result.written.evicted]

    return run


def test_a_queue_that_has_too_much_gives_back(reclaim: Callable[[], list[str]]):
    assert reclaim() == ["rich"]


def test_an_eviction_is_counted_once_for_each_gang_and_session():
    node("n1", cpu="4")
    queue("rich", deserved={"cpu": "1"})
    queue("poor", deserved={"cpu": "3"})
    job("old", "rich", replicas=4, least=1)
    run_session()
    pass_time(3)
    let_age()
    run_session()
    job("new", "poor", replicas=3)
    let_wait()

    result = run_session()

    assert len(result.written.evicted) == 3
    assert dict(PodGroup.objects.values_list("name", "evictions")) == {"old": 1, "new": 0}


def test_a_victim_that_was_spared_is_not_counted(reclaim: Callable[[], list[str]], meanwhile: Any):
    meanwhile(lambda: command_queue("rich", QueueCommand.SUSPEND))

    reclaim()

    assert PodGroup.objects.get(name="old").evictions == 0


def test_a_victim_that_ended_meanwhile_is_not_evicted(
    reclaim: Callable[[], list[str]], meanwhile: Any
):
    meanwhile(lambda: Pod.objects.filter(podgroup__queue__name="rich").update(phase="Succeeded"))

    assert reclaim() == []


def test_a_victim_in_a_queue_that_was_suspended_meanwhile_is_left_alone(
    reclaim: Callable[[], list[str]], meanwhile: Any
):
    meanwhile(lambda: command_queue("rich", QueueCommand.SUSPEND))

    assert reclaim() == []


def test_whoever_may_see_a_queue_may_see_what_is_told_of_its_gangs_and_pods(
    reclaim: Callable[[], list[str]],
):
    reclaim()

    told = Event.objects.exclude(kind__in=("Node", "Cluster"))

    assert {"Evict", "Scheduled", "Unschedulable"} <= set(told.values_list("reason", flat=True))
    assert not told.filter(queue_name="").exists()
