"""Volcano's queues, podgroups, jobs and commands, read into values."""

from __future__ import annotations

import pytest

from scheduler.clusters.kubernetes.read.workloads import (
    read_command,
    read_job,
    read_podgroup,
    read_queue,
)
from scheduler.domain.queues import QueueState
from scheduler.domain.resources import Resources
from tests.clusters.kubernetes.raw import container, raw_meta

VERSION = "scheduling.volcano.sh/v1beta1"


def raw_queue(spec=None, status=None, **meta):
    return {
        "apiVersion": VERSION,
        "kind": "Queue",
        "metadata": raw_meta("science", **meta),
        "spec": spec or {},
        "status": status or {},
    }


def test_a_queue_with_its_shares():
    queue = read_queue(
        raw_queue(
            {
                "weight": 3,
                "parent": "root",
                "capability": {"cpu": 16},
                "deserved": {"cpu": "8"},
                "guarantee": {"resource": {"cpu": "4"}},
                "reclaimable": False,
            },
            {"state": "Open", "allocated": {"cpu": "1"}, "reservation": {}},
        )
    )

    assert (queue.spec.name, queue.spec.weight, queue.spec.reclaimable) == ("science", 3, False)
    assert queue.spec.capability == Resources({"cpu": 16_000})
    assert queue.spec.guarantee == Resources({"cpu": 4_000})
    assert queue.state == "Open"
    assert queue.status["allocated"] == {"cpu": "1"}
    assert queue.flaws == ()


def annotated(state: str) -> dict[str, dict[str, str]]:
    return {"annotations": {"fumarole.io/state": state}}


@pytest.mark.parametrize(
    ("spec", "status", "meta", "requested", "named"),
    [
        pytest.param({}, {}, {}, QueueState.OPEN, None, id="a-new-one-is-open"),
        pytest.param({}, {"state": "Closing"}, {}, QueueState.CLOSED, None, id="stock-crd"),
        pytest.param(
            {"state": "Suspended"},
            {"state": "Open"},
            {},
            QueueState.SUSPENDED,
            "Suspended",
            id="spec",
        ),
        pytest.param(
            {},
            {"state": "Open"},
            annotated("Suspended"),
            QueueState.SUSPENDED,
            "Suspended",
            id="mark",
        ),
        pytest.param(
            {}, {"state": "Open"}, annotated("sleepy"), QueueState.OPEN, None, id="no-state"
        ),
        pytest.param(
            {"state": "Open"},
            {},
            annotated("Suspended"),
            QueueState.OPEN,
            "Open",
            id="spec-before-mark",
        ),
    ],
)
def test_the_requested_state_of_a_queue(spec, status, meta, requested, named):
    queue = read_queue(raw_queue(spec, status, **meta))

    assert (queue.spec.state, queue.named_state) == (requested, named)


def test_a_queue_that_breaks_a_rule_is_read_all_the_same():
    queue = read_queue(
        raw_queue({"weight": -5, "capability": {"cpu": "lots"}, "deserved": {"cpu": "2"}})
    )

    assert len(queue.flaws) == 2
    assert "spec.capability.cpu" in " ".join(queue.flaws)
    assert queue.spec.deserved == Resources({"cpu": 2000})


def raw_group(spec=None, status=None):
    return {
        "metadata": raw_meta("gang", namespace="team"),
        "spec": spec or {},
        "status": status or {},
    }


def test_a_podgroup_without_minimum_resources_differs_from_one_that_asks_for_none():
    assert read_podgroup(raw_group()).min_resources is None
    assert read_podgroup(raw_group({"minResources": {}})).min_resources == Resources()


def test_names_of_resource_quotas_are_no_resources():
    """As Volcano's controller writes them for its jobs."""
    minimum = {
        "count/pods": "4",
        "cpu": "32",
        "limits.nvidia.com/gpu": "16",
        "nvidia.com/gpu": "16",
        "pods": "4",
        "requests.cpu": "32",
        "requests.nvidia.com/gpu": "16",
    }

    found = read_podgroup(raw_group({"minResources": minimum})).min_resources

    assert found == Resources.parse({"cpu": "32", "nvidia.com/gpu": "16", "pods": "4"})


def test_a_podgroup_whole():
    condition = {"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready"}
    group = read_podgroup(
        raw_group(
            {
                "queue": "science",
                "minMember": 3,
                "minTaskMember": {"worker": 2},
                "minResources": {"cpu": "3"},
                "priorityClassName": "high",
            },
            {"phase": "Inqueue", "conditions": [condition]},
        )
    )

    assert (group.queue, group.min_member, group.min_task_member) == ("science", 3, {"worker": 2})
    assert group.min_resources == Resources({"cpu": 3000})
    assert (group.priority_class, group.phase) == ("high", "Inqueue")
    assert group.conditions[0].type == "Scheduled"


def test_a_podgroup_without_a_queue_is_in_the_default_one():
    assert read_podgroup(raw_group()).queue == "default"


def test_a_job_as_its_controller_left_it():
    template = {"spec": {"containers": [container(requests={"cpu": "2"})]}}
    job = read_job(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": raw_meta("train", namespace="team"),
            "spec": {
                "queue": "science",
                "minAvailable": 2,
                "tasks": [{"name": "worker", "replicas": 2, "template": template}],
            },
            "status": {"state": {"phase": "Running"}, "retryCount": 1, "version": 4},
        }
    )

    assert (job.meta.key, job.job.queue, job.job.min_available) == ("team/train", "science", 2)
    assert job.job.tasks[0].template.requests == Resources({"cpu": 2000})
    assert (job.phase, job.retry_count, job.version, job.flaws) == ("Running", 1, 4, ())


def test_a_command_has_its_fields_at_the_top():
    command = read_command(
        {
            "metadata": raw_meta("close-science", namespace="default"),
            "action": "CloseQueue",
            "target": {"kind": "Queue", "name": "science", "uid": "q1", "apiVersion": VERSION},
            "reason": "maintenance",
        }
    )

    assert (command.action, command.target_kind, command.target_name) == (
        "CloseQueue",
        "Queue",
        "science",
    )
    assert (command.target_uid, command.reason) == ("q1", "maintenance")


@pytest.mark.parametrize(
    ("annotated", "in_spec", "state"),
    [("Closed", None, "Open"), ("Suspended", None, "Suspended"), (None, "Closed", "Closed")],
)
def test_where_volcano_opens_queues_our_old_annotation_does_not_keep_one_closed(
    annotated, in_spec, state
):
    raw = {"metadata": {"name": "q", "uid": "1"}, "spec": {}, "status": {"state": "Open"}}
    if annotated:
        raw["metadata"]["annotations"] = {"fumarole.io/state": annotated}
    if in_spec:
        raw["spec"]["state"] = in_spec

    found = read_queue(raw)

    assert found.requested_state(follows_status=True) == state
    assert found.requested_state(follows_status=False) == (annotated or in_spec)
