"""The status of queues: counts, allocated, reservation and conditions, from rows."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.domain.lifecycle import QueueCommand
from scheduler.domain.resources import Resources
from scheduler.models import Pod, PodClass, PodGroup, Queue, QueueFigures
from scheduler.selectors.queues.status import queue_status, queue_statuses
from scheduler.services.queues.commands import command_queue
from tests.services.queues.builders import complete, job, podgroup, queue

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def pods(group: PodGroup, number: int, phase: str, **requests: str) -> None:
    pod_class, _ = PodClass.objects.get_or_create(
        digest=str(sorted(requests.items())), defaults={"requests": Resources.parse(requests)}
    )
    first = Pod.objects.count()
    Pod.objects.bulk_create(
        Pod(
            namespace="ns",
            name=f"p{first + index}",
            podgroup=group,
            pod_class=pod_class,
            phase=phase,
        )
        for index in range(number)
    )


def test_podgroups_are_counted_by_phase_own_and_with_those_below():
    queue("p")
    queue("c", "p")
    queue("d", "p")
    for index, phase in enumerate(
        ("Pending", "Inqueue", "Running", "Running", "Unknown", "Completed")
    ):
        podgroup(f"c{index}", "c", phase)
    podgroup("d0", "d", "Running")

    found = queue_statuses()

    assert found["c"].own.as_dict() == {
        "pending": 1,
        "inqueue": 1,
        "running": 2,
        "unknown": 1,
        "completed": 1,
    }
    assert found["p"].own.as_dict() == {
        "pending": 0,
        "inqueue": 0,
        "running": 0,
        "unknown": 0,
        "completed": 0,
    }
    assert found["p"].subtree.running == found["root"].subtree.running == 3


def test_jobs_are_counted_and_work_without_a_job_is_unknown():
    queue("a")
    for name, phase in (
        ("j1", "Pending"),
        ("j2", "Running"),
        ("j3", "Aborting"),
        ("j4", "Completed"),
        ("j5", "Failed"),
        ("j6", "Aborted"),
        ("j7", "Terminated"),
    ):
        job(
            name,
            "a",
            phase,
            "Completed" if phase in ("Completed", "Failed", "Aborted", "Terminated") else "Running",
        )
    podgroup("outside", "a")

    assert queue_status("a").jobs == {
        "pending": 1,
        "running": 2,
        "completed": 1,
        "failed": 1,
        "aborted": 2,
        "unknown": 1,
    }


def test_allocated_is_what_placed_pods_ask_for_summed_up_the_tree():
    queue("p", guarantee={"cpu": "10", "memory": "1Gi"})
    queue("c", "p", guarantee={"cpu": "1"})
    group = podgroup("g", "c", "Running")
    pods(group, 2, "Running", cpu="1500m", memory="1Gi")
    pods(group, 1, "Bound", cpu="1")
    pods(group, 4, "Pending", cpu="8")
    pods(group, 1, "Releasing", cpu="8")

    found = queue_statuses()

    assert found["c"].allocated.to_quantities() == {"cpu": "4", "memory": "2Gi", "pods": "3"}
    assert found["p"].allocated == found["root"].allocated == found["c"].allocated
    assert found["p"].reservation.to_quantities() == {"cpu": "6", "memory": "0"}
    assert found["c"].reservation.to_quantities() == {"cpu": "0"}
    assert found["default"].allocated.to_quantities() == {"cpu": "0", "memory": "0"}


def test_a_draining_queue_says_how_much_is_left():
    queue("p")
    queue("c", "p")
    for name in ("g1", "g2", "g3"):
        podgroup(name, "c")
    command_queue("p", QueueCommand.CLOSE)
    complete("g1")

    (condition,) = queue_status("p").conditions

    assert (condition["type"], condition["status"], condition["message"]) == (
        "Draining",
        "True",
        "Draining: 2 of 3 podgroups left.",
    )
    assert condition["lastTransitionTime"]


def test_a_suspended_queue_says_whose_wish_it_is():
    queue("p")
    queue("c", "p")
    command_queue("p", QueueCommand.SUSPEND)

    assert queue_status("p").conditions[0]["message"] == "Nothing is started here by its own wish."
    assert (
        queue_status("c").conditions[0]["message"]
        == "Nothing is started here because p is suspended."
    )


def test_the_manifest_has_what_volcano_names():
    queue("a")
    QueueFigures.objects.create(
        queue=Queue.objects.get(name="a"), deserved=Resources.parse({"cpu": "2"}), share=0.5
    )

    status = queue_status("a").as_manifest()

    assert set(status) == {
        "state", "closedBy", "suspendedBy", "pending", "inqueue", "running", "unknown", "completed", "subtree", "jobs", "allocated", "deserved",
        "nominalShare", "request", "held", "realCapability", "share", "overused", "reservation", "conditions", "warnings",
    }  # fmt: skip
    assert (status["deserved"], status["share"], status["realCapability"]) == (
        {"cpu": "2"},
        0.5,
        None,
    )


def test_a_queue_that_is_not_there_is_said_so():
    with pytest.raises(Queue.DoesNotExist):
        queue_status("ghost")


def test_the_number_of_queries_does_not_grow_with_the_tree(django_assert_num_queries: Any):
    for number in range(20):
        queue(f"q{number}")
        pods(podgroup(f"g{number}", f"q{number}"), 1, "Running", cpu=str(number))

    with django_assert_num_queries(6):
        assert len(queue_statuses()) == 22
