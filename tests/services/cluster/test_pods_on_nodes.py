"""Pods on machines: lost nodes, refused places, decisions that are no longer true, pods that are
still leaving.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import ClassVar

import pytest
from django.db import transaction
from django.utils import timezone

from scheduler.clusters.base import Answer, BindRequest, EvictRequest, PodReport
from scheduler.conf import conf
from scheduler.models import (
    Decision,
    Job,
    Node,
    Pod,
    PodGroup,
    Queue,
    SimulatedPod,
)
from scheduler.services.cluster import connection
from scheduler.services.cluster.dispatch import dispatch
from scheduler.services.cluster.simulation import bring_back_node, lose_node
from scheduler.services.jobs.submit import command_job
from scheduler.services.sessions.runner import SessionRunner
from tests.histories import broken_rules
from tests.worlds import job, manifest, node, pass_time, phases, run_session

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


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
    made = job(
        "crash",
        cpu="2",
        seconds=1,
        exit_code=1,
        replicas=1,
        maxRetry=0,
        policies=[{"event": "PodFailed", "action": "RestartJob"}],
    )
    both = submit_two_tasks()
    run_session()
    pass_time(5)
    made.refresh_from_db()
    run_session()

    assert made.phase == "Failed"
    assert broken_rules() == []
    assert both


def submit_two_tasks() -> Job:
    """A job of which one pod fails while another still runs: when its retries are used up, that one
    has to leave first.
    """
    from scheduler.services.jobs.submit import submit_job

    asked = manifest(
        "two", cpu="1", maxRetry=0, policies=[{"event": "PodFailed", "action": "RestartJob"}]
    )
    (first,) = asked["spec"]["tasks"]
    template = {
        **first["template"],
        "metadata": {"annotations": {"fumarole.io/run-seconds": "1", "fumarole.io/exit-code": "1"}},
    }
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


class StubbornCluster:
    """A cluster that will not stop a pod before it has been told twice."""

    asked: ClassVar[list[int]] = []

    def observe(self) -> Sequence[PodReport]:
        return []

    def bind(self, requests: Sequence[BindRequest]) -> Sequence[Answer]:
        return [Answer(request.pod_id) for request in requests]

    def evict(self, requests: Sequence[EvictRequest]) -> Sequence[Answer]:
        answers = [
            Answer(request.pod_id, "" if request.pod_id in self.asked else "not now")
            for request in requests
        ]
        self.asked.extend(request.pod_id for request in requests)
        return answers


@pytest.mark.parametrize(
    "away",
    [timedelta(minutes=-1), timedelta(hours=5)],
    ids=["long ago", "before the clock was put back"],
)
def test_an_eviction_that_the_cluster_refuses_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, away: timedelta
):
    elsewhere = replace(conf(), cluster=f"{__name__}.{StubbornCluster.__name__}")
    monkeypatch.setattr(connection, "conf", lambda: elsewhere)
    StubbornCluster.asked.clear()
    node("n1", cpu="8")
    job("train")
    run_session()
    command_job("default", "train", "Suspend")

    dispatch()
    eviction = Decision.objects.get(kind="Evict")
    assert (eviction.error, eviction.done_at) == ("not now", None)

    Decision.objects.update(claimed_at=timezone.now() + away)
    dispatch()
    eviction.refresh_from_db()
    assert eviction.done_at is not None
    assert len(StubbornCluster.asked) == 2
