"""Stories of Volcano's design documents (docs/origins.md) through services, sessions
and cluster.
"""

from __future__ import annotations

import pytest

from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import Event, Eviction, Pod, PodGroup, QueueFigures
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import create_queue, update_queue
from scheduler.services.sessions.runner import SessionRunner
from tests.histories import broken_rules
from tests.worlds import job, node, pass_time, phases, queue, run_session

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def test_a_suspended_subtree_takes_jobs_and_starts_none_until_it_is_resumed():
    """The suspension design: suspend, submit, edit the quota, resume; the same podgroup starts."""
    node("n1", cpu="8")
    queue("research")
    queue("vision", "research")
    runner = SessionRunner("test")
    before = job("before", "vision", seconds=500)
    run_session(runner)
    pass_time(3)

    command_queue("research", QueueCommand.SUSPEND, reason="the budget is reviewed")
    made = job("train", "vision", replicas=2, cpu="2")
    for _ in range(3):
        run_session(runner)
        pass_time(1)

    group = PodGroup.objects.get(job=made)
    assert (group.phase, phases(made)) == ("Pending", ["Pending", "Pending"])
    assert (group.reason_code, "research" in group.reason_message) == ("QueueSuspended", True)
    (condition,) = group.conditions
    assert (condition["type"], "research" in condition["message"]) == ("Unschedulable", True)
    assert any(
        "research" in event.message for event in Event.objects.filter(kind="PodGroup", name="train")
    )
    assert phases(before) == ["Running"]

    update_queue("vision", {"spec": {"capability": {"cpu": "6"}}}, merge=True)
    run_session(runner)
    assert phases(made) == ["Pending", "Pending"]
    command_queue("research", QueueCommand.RESUME)
    for _ in range(2):
        run_session(runner)
    pass_time(3)
    run_session(runner)

    again = PodGroup.objects.get(job=made)
    assert (again.pk, again.phase, phases(made)) == (group.pk, "Running", ["Running", "Running"])
    assert again.reason_code == ""


def test_a_new_guarantee_in_a_full_cluster_is_kept_by_reclaim():
    """The guarantee design: everything is taken.

    A new queue with a guarantee, a job within it: admitted, and room is made for it.
    """
    for number in range(4):
        node(f"n{number}", cpu="4")
    queue("old", deserved={"cpu": "12"}, guarantee={"cpu": "4"})
    runner = SessionRunner("test")
    elastic = job("elastic", "old", replicas=8, least=2, seconds=1000)
    gang = job("gang", "old", replicas=4, cpu="2", seconds=1000)
    for _ in range(2):
        run_session(runner)
        pass_time(3)
    assert phases(elastic) + phases(gang) == ["Running"] * 12

    create_queue(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "new"},
            "spec": {
                "weight": 1,
                "deserved": {"cpu": "4"},
                "guarantee": {"resource": {"cpu": "4"}},
            },
        }
    )
    urgent = job("urgent", "new", replicas=2, cpu="2", seconds=1000)
    for _ in range(12):
        run_session(runner)
        assert broken_rules() == []
        pass_time(3)

    assert phases(urgent) == ["Running", "Running"]
    victims = Eviction.objects.all()
    assert {victim.queue_name for victim in victims} == {"old"}
    assert "default/urgent" in {victim.beneficiary for victim in victims}
    old = QueueFigures.objects.get(queue__name="old")
    assert dict(old.allocated)["cpu"] >= 4000
    assert set(Pod.objects.filter(podgroup__job=gang).values_list("phase", flat=True)) in (
        {"Running"},
        {"Pending"},
    )  # never by half
