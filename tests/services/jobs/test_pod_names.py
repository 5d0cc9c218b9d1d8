"""Jobs whose pods, or whose gang, would get names that others have."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.admission.violations import Rejected
from scheduler.models import Job, Pod, PodGroup
from scheduler.services.jobs.podgroups import submit_podgroup
from scheduler.services.jobs.submit import command_job, submit_job
from tests.worlds import manifest, node, pass_time, phases, run_session

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def one_task(name: str, task: str) -> dict[str, Any]:
    asked = manifest(name)
    asked["spec"]["tasks"][0]["name"] = task
    return asked


def test_a_job_whose_pods_names_are_taken_is_refused():
    submit_job(one_task("a", "b-c"))

    with pytest.raises(Rejected, match="would get"):
        submit_job(one_task("a-b", "c"))

    assert list(Job.objects.values_list("name", flat=True)) == ["a"]


def test_a_job_whose_gangs_name_is_taken_is_refused():
    submit_podgroup({"metadata": {"name": "train"}, "spec": {"queue": "default"}})

    with pytest.raises(Rejected, match="would get"):
        submit_job(manifest("train"))

    assert not Job.objects.exists()


def test_a_task_whose_pods_names_were_taken_while_it_waited_makes_its_job_fail_and_no_other():
    node("n1", cpu="8")
    asked = manifest("a")
    (first,) = asked["spec"]["tasks"]
    asked["spec"]["tasks"] = [first, {**first, "name": "b-c", "dependsOn": {"name": ["worker"]}}]
    submit_job(asked)
    submit_job(one_task("a-b", "c"))

    for _ in range(3):
        run_session()
        pass_time(5)

    assert dict(Job.objects.values_list("name", "phase")) == {"a": "Failed", "a-b": "Running"}
    assert PodGroup.objects.get(name="a").phase == "Completed"
    assert phases(Job.objects.get(name="a-b")) == ["Running"]


def test_a_job_whose_pods_names_were_taken_while_it_was_suspended_fails_when_it_is_resumed():
    submit_job(one_task("a", "b-c"))
    command_job("default", "a", "Suspend")
    submit_job(one_task("a-b", "c"))

    command_job("default", "a", "Resume")

    assert Job.objects.get(name="a").phase == "Failed"
    assert PodGroup.objects.get(name="a").phase == "Completed"
    assert list(Pod.objects.values_list("podgroup__name", flat=True)) == ["a-b"]
