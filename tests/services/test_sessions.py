"""Sessions on a real database: when they run, who may write, and what is written when the world moves on meanwhile."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scheduler.domain.lifecycle import QueueCommand
from scheduler.engine import run_session as think
from scheduler.models import (
    ClusterState,
    Decision,
    Event,
    Job,
    Lease,
    Node,
    Pod,
    PodGroup,
    Queue,
    QueueFigures,
    SchedulingSession,
    SimulatedPod,
)
from scheduler.services import lease, sessions
from scheduler.services.dispatch import dispatch
from scheduler.services.queues import command_queue
from scheduler.services.scheduling import pause_scheduling, resume_scheduling, set_period, want_session
from scheduler.services.sessions import SessionRunner, is_due, pause_before
from scheduler.services.simulation import bring_back_node, lose_node
from tests.histories import broken_rules, half_gangs
from tests.worlds import job, manifest, node, pass_time, phases, queue, run_session

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Something happens after a session has thought and before it writes."""

    def arrange(happening: Callable[[], object]) -> None:
        def think_slowly(*args: Any, **more: Any) -> Any:
            outcome = think(*args, **more)
            happening()
            return outcome

        monkeypatch.setattr(sessions, "run_session", think_slowly)

    return arrange


def state() -> ClusterState:
    return ClusterState.objects.get(pk=1)


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
    assert dict(state().total)["cpu"] == 4000


def test_what_does_not_change_is_not_written_again():
    node("n1", cpu="4")
    job("fits", replicas=2)
    job("big", replicas=8)
    runner = SessionRunner("test")
    for _ in range(3):
        run_session(runner)

    with CaptureQueriesContext(connection) as log:
        runner.run()

    writes = [query["sql"] for query in log.captured_queries if query["sql"].startswith(("UPDATE", "INSERT", "DELETE"))]
    tables = {
        table for table in ("scheduler_pod", "scheduler_podgroup", "scheduler_queuefigures", "scheduler_event") if table in str(writes)
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
        counts.append(len([query for query in log.captured_queries if "SAVEPOINT" not in query["sql"]]))
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

    written = [query["sql"] for query in log.captured_queries if query["sql"].startswith(("UPDATE scheduler_", "INSERT INTO scheduler_"))]
    assert len(written) <= 12


# The world moves on between thinking and writing


def bound_after(happening: Callable[[], object], meanwhile: Callable[[Callable[[], object]], None]) -> list[str]:
    meanwhile(happening)
    result = SessionRunner("test").run()
    assert result
    assert broken_rules() == []
    assert half_gangs() == []
    return sorted(bind.pod for bind in result.written.bound)


def test_a_gang_that_lost_a_pod_meanwhile_is_left_whole_for_the_next_session(meanwhile: Any):
    node("n1", cpu="8")
    made, other = job("train", replicas=3), job("other")

    bound = bound_after(made.podgroup.pods.order_by("id")[0].delete, meanwhile)

    assert bound == ["default/other-worker-0"]
    assert phases(made) == ["Pending", "Pending"]
    assert phases(other) == ["Binding"]
    assert SchedulingSession.objects.latest("number").counts["lost"] == 3
    assert not Event.objects.filter(name="train", reason="Scheduled").exists()


def test_a_queue_that_was_suspended_meanwhile_gets_nothing(meanwhile: Any):
    queue("a")
    node("n1", cpu="8")
    made, other = job("train", "a"), job("other")

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

    assert bound_after(lambda: PodGroup.objects.filter(job=made).update(phase="Completed"), meanwhile) == []


@pytest.fixture
def reclaim() -> Callable[[], list[str]]:
    """One queue has all of a node, another asks for its half: who is told to go."""
    node("n1", cpu="2")
    queue("rich", deserved={"cpu": "1"})
    queue("poor", deserved={"cpu": "1"})
    job("old", "rich", replicas=2, least=1)
    run_session()
    pass_time(3)
    run_session()
    job("new", "poor")

    def run() -> list[str]:
        result = SessionRunner("test").run()
        assert result
        assert Decision.objects.filter(kind="Evict").count() == len(result.written.evicted)
        return [evict.queue for evict in result.written.evicted]

    return run


def test_a_queue_that_has_too_much_gives_back(reclaim: Callable[[], list[str]]):
    assert reclaim() == ["rich"]


def test_a_victim_that_ended_meanwhile_is_not_evicted(reclaim: Callable[[], list[str]], meanwhile: Any):
    meanwhile(lambda: Pod.objects.filter(podgroup__queue__name="rich").update(phase="Succeeded"))

    assert reclaim() == []


def test_a_victim_in_a_queue_that_was_suspended_meanwhile_is_left_alone(reclaim: Callable[[], list[str]], meanwhile: Any):
    meanwhile(lambda: command_queue("rich", QueueCommand.SUSPEND))

    assert reclaim() == []


# One scheduler at a time


def test_only_one_worker_holds_the_lease():
    first, second = SessionRunner("first"), SessionRunner("second")

    assert first.run()
    assert second.run() is None
    assert first.run()


def test_another_worker_takes_over_when_the_lease_has_run_out_and_closes_what_was_left():
    first, second = SessionRunner("first"), SessionRunner("second")
    first.run()
    SchedulingSession.objects.update(state="Running", finished_at=None)  # as if killed in the middle
    Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    result = second.run()

    assert result
    assert list(SchedulingSession.objects.order_by("number").values_list("state", flat=True)) == ["TakenOver", "Done"]
    tokens = list(SchedulingSession.objects.order_by("number").values_list("fencing_token", flat=True))
    assert tokens[0] < tokens[1]


def test_a_worker_of_this_machine_that_is_no_more_is_not_waited_for():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    host = socket.gethostname()
    assert lease.acquire(f"{host}:{gone.pid}:abc", 1000)

    assert SessionRunner("next").run()


@pytest.mark.parametrize("holder", ["{host}:{pid}:abc", "elsewhere:999999999:abc", "{host}:x:abc", "nobody"])
def test_a_worker_that_lives_or_that_nothing_is_known_of_is_waited_for(holder: str):
    assert lease.acquire(holder.format(host=socket.gethostname(), pid=os.getpid()), 1000)

    assert SessionRunner("next").run() is None


def test_a_worker_that_slept_past_its_lease_can_not_write(meanwhile: Any):
    node("n1", cpu="8")
    made = job("train")

    def sleep_while_another_takes_over() -> None:
        Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert lease.acquire("other", 30)

    meanwhile(sleep_while_another_takes_over)

    assert SessionRunner("slow").run() is None
    assert phases(made) == ["Pending"]
    assert not Decision.objects.exists()


def test_even_if_nobody_took_over(meanwhile: Any):
    node("n1", cpu="8")
    made = job("train")
    meanwhile(lambda: Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1)))

    assert SessionRunner("slow").run() is None
    assert phases(made) == ["Pending"]


def test_a_worker_of_the_same_name_goes_on_after_a_crash():
    SessionRunner("same").run()
    SchedulingSession.objects.update(state="Running", finished_at=None)

    assert SessionRunner("same").run()
    assert SchedulingSession.objects.filter(state="TakenOver").count() == 1


def test_a_session_that_fails_says_so_and_the_next_one_reads_everything_anew(meanwhile: Any, monkeypatch: pytest.MonkeyPatch):
    node("n1", cpu="8")
    made = job("train")
    runner = SessionRunner("test")
    runner.run()
    meanwhile(lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        runner.run()
    monkeypatch.undo()
    result = runner.run()

    assert result
    assert result.refreshed.reloaded
    failed = SchedulingSession.objects.get(state="Failed")
    assert "ZeroDivisionError" in failed.message
    assert phases(made) == ["Binding"]


# When


def test_sessions_come_at_the_stored_period_which_may_change_while_running():
    runner = SessionRunner("test")
    runner.run()
    now = state().last_session_at
    assert now

    assert not is_due(state(), now + timedelta(seconds=0.6))
    assert is_due(state(), now + timedelta(seconds=0.8))
    set_period(5)
    assert not is_due(state(), now + timedelta(seconds=4.6))
    assert is_due(state(), now + timedelta(seconds=4.8))
    with pytest.raises(ValueError, match=r"0\.5 to 3600"):
        set_period(0.1)


def test_who_gives_work_brings_the_next_session_forward_and_many_make_one(django_capture_on_commit_callbacks: Any):
    SessionRunner("test").run()
    assert not is_due(state(), state().last_session_at)

    with django_capture_on_commit_callbacks(execute=True):
        want_session()
        want_session()
    wanted = state().session_wanted_at
    with django_capture_on_commit_callbacks(execute=True):
        want_session()

    assert is_due(state(), timezone.now())
    assert state().session_wanted_at == wanted
    SessionRunner("test").run()
    assert not is_due(state(), state().last_session_at)


def test_a_storm_of_requests_does_not_make_a_storm_of_sessions():
    SessionRunner("test").run()
    begun = state().last_session_at
    assert begun

    assert pause_before(state(), begun + timedelta(seconds=0.05)) == pytest.approx(0.15)
    assert pause_before(state(), begun + timedelta(seconds=2)) == 0


def test_while_scheduling_is_paused_nothing_is_decided_and_everybody_is_told_why():
    node("n1", cpu="8")
    pause_scheduling(reason="maintenance")
    made = job("train")

    run_session()
    assert phases(made) == ["Pending"]
    assert PodGroup.objects.get(job=made).reason_code == "SchedulingPaused"
    resume_scheduling()
    run_session()

    assert phases(made) == ["Bound"]
    assert list(Event.objects.filter(kind="Cluster").order_by("id").values_list("reason", flat=True)) == [
        "SchedulingPaused",
        "SchedulingResumed",
    ]


def test_a_pause_that_comes_while_a_session_thinks_is_respected(meanwhile: Any):
    node("n1", cpu="8")
    made = job("train")

    assert bound_after(lambda: pause_scheduling(reason="stop"), meanwhile) == []

    assert phases(made) == ["Pending"]
    assert PodGroup.objects.get(job=made).reason_code == "SchedulingPaused"


# Machines


def test_pods_of_a_lost_node_come_back_elsewhere_and_the_node_may_return_empty():
    node("n1", cpu="4")
    made = job("train", replicas=2, cpu="2")
    run_session()
    pass_time(3)
    node("n2", cpu="4")

    assert lose_node("n1", dry_run=True).pods == 2
    assert phases(made) == ["Running", "Running"]
    assert lose_node("n1").pods == 2
    assert not lose_node("n1").changed
    assert phases(made) == ["Unknown", "Unknown"]
    pass_time(6)
    assert phases(made) == ["Pending", "Pending"]
    run_session()
    assert set(Pod.objects.values_list("node__name", flat=True)) == {"n2"}
    assert bring_back_node("n1").changed
    assert not bring_back_node("n1").changed
    with pytest.raises(Node.DoesNotExist):
        lose_node("n9")


def test_a_place_that_the_cluster_refuses_is_given_back():
    node("n1", cpu="4")
    made = job("train")
    assert SessionRunner("test").run()
    Node.objects.update(ready=False)

    dispatch()

    assert phases(made) == ["Pending"]
    assert "not ready" in Decision.objects.get().error


def test_a_decision_that_is_no_longer_true_is_not_carried_out():
    node("n1", cpu="4")
    made = job("train")
    runner = SessionRunner("test")
    runner.run()
    with transaction.atomic():
        Pod.objects.filter(podgroup__job=made).update(phase="Pending", node=None)

    dispatch()

    assert phases(made) == ["Pending"]
    assert Decision.objects.get().done_at


def test_a_decision_about_a_pod_that_is_gone_is_not_carried_out():
    node("n1", cpu="4")
    made = job("train")
    SessionRunner("test").run()
    Pod.objects.filter(podgroup__job=made).delete()

    dispatch()

    assert Decision.objects.get().done_at
    assert not SimulatedPod.objects.exists()


def test_pods_still_leaving_keep_their_room_on_the_node():
    node("n1", cpu="2")
    made = job("crash", cpu="2", seconds=1, exit_code=1, replicas=1, maxRetry=0, policies=[{"event": "PodFailed", "action": "RestartJob"}])
    both = submit_two_tasks()
    run_session()
    pass_time(5)
    made.refresh_from_db()
    run_session()

    assert made.phase == "Failed"
    assert broken_rules() == []
    assert both


def submit_two_tasks() -> Job:
    """A job of which one pod fails while another still runs: when its retries are used up, that one has to leave first."""
    from scheduler.services.jobs import submit_job

    asked = manifest("two", cpu="1", maxRetry=0, policies=[{"event": "PodFailed", "action": "RestartJob"}])
    (first,) = asked["spec"]["tasks"]
    template = {**first["template"], "metadata": {"annotations": {"fumarole.io/run-seconds": "1", "fumarole.io/exit-code": "1"}}}
    asked["spec"]["tasks"] = [first, {**first, "name": "bad", "template": template}]
    return submit_job(asked).job


def test_a_failed_job_counts_on_its_node_until_the_last_pod_has_left():
    node("n1", cpu="2")
    made = submit_two_tasks()
    run_session()
    pass_time(4)
    made.refresh_from_db()
    late = job("late", cpu="2")
    run_session()

    assert made.phase == "Failed"
    assert PodGroup.objects.get(job=made).phase != "Completed"
    assert phases(late) == ["Pending"]
    pass_time(5)
    run_session()
    assert PodGroup.objects.get(job=made).phase == "Completed"
    assert phases(late) == ["Bound"]
    assert Queue.objects.get(name="default").state == "Open"
