"""Tasks that wait for others, and gangs of which some members are done before the others."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.models import Job, Pod, PodGroup
from scheduler.services.cluster.dispatch import dispatch
from scheduler.services.cluster.simulation import lose_node
from scheduler.services.jobs.changes import update_job
from scheduler.services.jobs.podgroups import submit_podgroup
from scheduler.services.jobs.single_pods import submit_pod
from scheduler.services.jobs.submit import submit_job
from tests.worlds import manifest, node, pass_time, run_session

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def pipeline(*tasks: dict[str, Any], **spec: Any) -> Job:
    """Tasks by name and whatever else is to be said of them.

    Each has one pod that runs for five seconds.
    """
    asked = manifest("pipeline", seconds=5)
    (first,) = asked["spec"]["tasks"]
    del asked["spec"]["minAvailable"], first["minAvailable"]
    asked["spec"] |= {"tasks": [{**first, **task} for task in tasks], **spec}
    return submit_job(asked).job


def after(*names: str, iteration: str = "") -> dict[str, Any]:
    return {"dependsOn": {"name": list(names), **({"iteration": iteration} if iteration else {})}}


def begun() -> set[str]:
    return set(Pod.objects.values_list("task", flat=True))


def live(rounds: int = 1, seconds: float = 3) -> Job:
    for _ in range(rounds):
        run_session()
        pass_time(seconds)
    return Job.objects.get()


def test_a_gang_does_not_wait_for_members_that_wait_for_it():
    node("n1", cpu="8")
    made = pipeline({"name": "prepare"}, {"name": "train", "replicas": 3, **after("prepare")})
    assert (made.min_available, made.podgroup.min_member, made.podgroup.min_task_member) == (
        4,
        1,
        {"prepare": 1},
    )
    assert made.podgroup.min_resources.to_quantities() == {"cpu": "1"}

    assert live().phase == "Pending"
    assert begun() == {"prepare", "train"}
    assert live(rounds=4).phase == "Completed"


def test_tasks_without_pods_are_not_waited_for():
    pipeline(
        {"name": "off", "replicas": 0},
        {"name": "also-off", "replicas": 0, **after("off")},
        {"name": "train", **after("also-off")},
    )

    assert begun() == {"train"}


def test_a_task_that_is_given_its_first_pods_waits_for_those_it_depends_on():
    node("n1", cpu="8")
    made = pipeline({"name": "prepare"}, {"name": "train", "replicas": 0, **after("prepare")})

    update_job(
        "default",
        "pipeline",
        {"spec": {"tasks": [{**task, "replicas": 1} for task in made.tasks]}},
        merge=True,
    )
    assert begun() == {"prepare"}

    live()
    assert begun() == {"prepare", "train"}


def test_a_task_that_waits_for_nobody_has_its_first_pods_at_once():
    made = pipeline({"name": "prepare"}, {"name": "train", "replicas": 0})

    update_job(
        "default",
        "pipeline",
        {"spec": {"tasks": [{**task, "replicas": 2} for task in made.tasks]}},
        merge=True,
    )

    assert sorted(Pod.objects.values_list("name", flat=True)) == [
        f"pipeline-{task}-{index}" for task in ("prepare", "train") for index in (0, 1)
    ]


def test_a_job_fails_when_what_a_task_waits_for_has_failed():
    node("n1", cpu="8")
    template = {
        "metadata": {"annotations": {"fumarole.io/run-seconds": "0", "fumarole.io/exit-code": "1"}}
    }
    pipeline({"name": "prepare", "template": template}, {"name": "train", **after("prepare")})
    made = live(rounds=2)

    assert (made.phase, made.message) == (
        "Failed",
        "task train cannot begin: too few pods of prepare succeeded",
    )
    assert made.podgroup.phase == "Completed"


@pytest.mark.parametrize(("iteration", "begins"), [("any", True), ("all", False), ("", False)])
def test_one_of_several_is_enough_where_the_job_says_so(iteration: str, begins: bool):
    node("n1", cpu="1")
    pipeline(
        {"name": "a"},
        {"name": "b"},
        {"name": "train", **after("a", "b", iteration=iteration)},
        minAvailable=1,
    )
    live()

    assert ("train" in begun()) is begins


@pytest.mark.parametrize("other", ["Unknown", "Binding"])
def test_a_gang_is_not_completed_while_one_of_its_pods_may_still_run(other: str):
    node("n1", cpu="1")
    submit_podgroup({"metadata": {"name": "outside"}, "spec": {"minMember": 1}})
    mark = {"scheduling.k8s.io/group-name": "outside", "fumarole.io/run-seconds": "1"}
    template = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
    for name in ("one", "two"):
        submit_pod({"metadata": {"name": name, "annotations": mark}, "spec": template})
    run_session()
    pass_time(8)
    run_session()
    Pod.objects.filter(phase="Bound").update(phase=other)

    run_session()

    assert set(Pod.objects.values_list("phase", flat=True)) == {"Succeeded", other}
    assert PodGroup.objects.get().phase == "Running"


def test_a_job_whose_last_pods_were_on_a_lost_node_goes_on_elsewhere():
    node("n1", cpu="1")
    asked = manifest("train", replicas=2, least=1, seconds=3)
    made = submit_job(asked).job
    live(seconds=6)
    run_session()
    pass_time(2)
    lose_node("n1")
    node("n2", cpu="4")
    run_session()
    assert PodGroup.objects.get().phase != "Completed"

    for _ in range(4):
        run_session()
        dispatch()
        pass_time(8)

    made.refresh_from_db()
    assert made.phase == "Completed"
