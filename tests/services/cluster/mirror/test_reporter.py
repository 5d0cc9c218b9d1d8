"""What pods and podgroups of a cluster are told: as the pages say it, and only what is new."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.clusters.kubernetes.values import Condition
from scheduler.models import PodGroup
from scheduler.services.cluster.api_client import client_of_process
from scheduler.services.cluster.dispatch import dispatch
from scheduler.services.cluster.mirror.reporter import Reporter, _Told, status_changes
from scheduler.services.cluster.mirror.sentences import says_the_same
from tests.control_plane import objects
from tests.control_plane.fake.faults import Answer
from tests.control_plane.fake.resources import resource_of
from tests.mirrored import podgroup
from tests.scheduled import NATIVE, PODS, ScheduledCluster, scheduled_cluster

pytestmark = [pytest.mark.django_db]

EVENTS = resource_of("events.k8s.io/v1", "events")


@pytest.fixture
def cluster(tmp_path) -> Iterator[ScheduledCluster]:
    with scheduled_cluster(tmp_path, scheduler_names=("fumarole",)) as running:
        yield running


@pytest.fixture
def reporter(cluster: ScheduledCluster) -> Iterator[Reporter]:
    made = Reporter(client_of_process(), ("fumarole",), (NATIVE,))
    yield made
    made.close()


def report(cluster: ScheduledCluster, reporter: Reporter) -> list[str]:
    """Everything that is to be told now is told. The requests for it."""
    before = len(cluster.server.requests)
    reporter._looked_at = 0.0
    reporter.look(cluster.mirror.store, cluster.mirror.writer.pod_id)
    for _, future in reporter._under_way:
        future.exception(60)
    return [f"{method} {path}" for method, path in cluster.server.requests[before:]]


def scheduled(pod: dict[str, Any]) -> dict[str, Any]:
    found = [each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"]
    return found[0]


def events(cluster: ScheduledCluster) -> list[tuple[str, str]]:
    found, _ = cluster.server.store.list(EVENTS, "default")
    return sorted((each["regarding"]["name"], each["reason"]) for each in found)


def test_a_pod_that_no_node_has_room_for_is_unschedulable_in_the_words_of_the_pages(
    cluster, reporter
):
    cluster.has_gang("gang", 2, cpu="6")
    cluster.sits()

    report(cluster, reporter)

    condition = scheduled(cluster.pod("gang-1"))
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    stored = PodGroup.objects.get(name="gang").pod_conditions
    assert condition["message"] in [entry["message"] for entry in stored]


def test_a_pod_that_its_queue_holds_back_is_not_unschedulable(cluster, reporter):
    """An autoscaler would buy machines for it."""
    cluster.has_queue("small", capability={"cpu": "1"})
    cluster.has_gang("gang", 1, cpu="2", queue="small")
    cluster.sits()

    report(cluster, reporter)

    reason = scheduled(cluster.pod("gang-0"))["reason"]
    assert reason == PodGroup.objects.get(name="gang").reason_code == "ExceedsCapability"


def test_what_was_told_is_not_told_again(cluster, reporter):
    cluster.has_gang("gang", 2, cpu="6")
    cluster.sits()
    told = report(cluster, reporter)
    cluster.sits()

    assert told
    assert report(cluster, reporter) == []


def test_the_pods_of_a_gang_that_wait_for_the_same_have_one_event(cluster, reporter):
    cluster.has_gang("gang", 3, cpu="100")
    cluster.sits()

    report(cluster, reporter)

    of_pods = [name for name, reason in events(cluster) if reason == "FailedScheduling"]
    assert len(of_pods) == 1


def test_the_phase_of_a_podgroup_is_written_and_its_pods_are_counted(cluster, reporter):
    cluster.has_gang("gang", 1)
    cluster.sits()
    dispatch()
    cluster.server.store.change(
        PODS, "default", "gang-0", lambda pod: {**pod, "status": {"phase": "Running"}}
    )
    cluster.sits()

    report(cluster, reporter)

    status = cluster.podgroup("gang")["status"]
    assert (status["phase"], status["running"]) == ("Running", 1)
    cluster.tells()
    assert PodGroup.objects.get(name="gang").phase == "Running"


def test_podgroups_and_pods_of_other_schedulers_are_told_nothing(cluster, reporter):
    cluster.has_gang("theirs", 2, cpu="100", scheduler="volcano")
    cluster.server.store.create(
        resource_of("scheduling.volcano.sh/v1beta1", "podgroups"),
        "default",
        objects.podgroup("empty"),
    )
    cluster.sits()

    assert report(cluster, reporter) == []


def test_what_fails_is_told_again(cluster, reporter):
    cluster.has_gang("gang", 1, cpu="100")
    cluster.sits()
    path = "/api/v1/namespaces/default/pods/gang-0/status"
    cluster.server.plan("PATCH", path, Answer(500, "InternalError"))
    report(cluster, reporter)
    assert "conditions" not in cluster.pod("gang-0")["status"]

    cluster.tells()
    report(cluster, reporter)

    assert scheduled(cluster.pod("gang-0"))["status"] == "False"


def test_other_figures_are_no_news():
    known = Condition("PodScheduled", "False", "Unschedulable", "36 of 40 nodes are full")

    assert says_the_same(
        known, Condition("PodScheduled", "False", "Unschedulable", "37 of 40 nodes are full")
    )
    assert not says_the_same(
        known, Condition("PodScheduled", "False", "QueueClosed", known.message)
    )
    assert not says_the_same(None, known)


def test_a_condition_of_another_type_holds_no_longer():
    group = podgroup("g", phase="Inqueue", conditions=(Condition("Unschedulable", "True", "Why"),))
    scheduled_now = {
        "type": "Scheduled",
        "status": "True",
        "reason": "tasks in gang are ready to be scheduled",
        "message": "",
        "lastTransitionTime": "2026-11-17T12:00:00Z",
    }

    changes = status_changes(group, "Running", [scheduled_now], [])

    assert changes["phase"] == "Running"
    statuses = {each["type"]: each["status"] for each in changes["conditions"]}
    assert statuses == {"Scheduled": "True", "Unschedulable": "False"}


# Podgroups of Kubernetes itself


def native_condition(cluster: ScheduledCluster, name: str) -> dict[str, Any]:
    (found,) = cluster.native_podgroup(name)["status"]["conditions"]
    return found


def test_a_native_podgroup_and_its_pods_are_told_why_they_wait(cluster, reporter):
    cluster.has_native_gang("train", 2, cpu="6")
    cluster.sits()

    report(cluster, reporter)

    condition = native_condition(cluster, "train")
    assert (condition["type"], condition["status"]) == ("PodGroupInitiallyScheduled", "False")
    assert condition["reason"] == "Unschedulable"
    assert condition["message"] == PodGroup.objects.get(name="train").reason_message
    assert scheduled(cluster.pod("train-1"))["reason"] == "Unschedulable"


def test_a_native_podgroup_that_its_queue_holds_back_is_not_unschedulable(cluster, reporter):
    cluster.has_queue("small", capability={"cpu": "1"})
    cluster.has_native_gang("train", 1, cpu="2", group_labels={"kai.scheduler/queue": "small"})
    cluster.sits()

    report(cluster, reporter)

    assert native_condition(cluster, "train")["reason"] == "ExceedsCapability"


def test_a_native_podgroup_that_has_its_places_says_so_and_nothing_more(cluster, reporter):
    cluster.has_native_gang("train", 2)
    cluster.sits()
    dispatch()
    cluster.tells()

    report(cluster, reporter)

    condition = native_condition(cluster, "train")
    assert (condition["status"], condition["reason"]) == ("True", "Scheduled")
    cluster.sits()
    assert report(cluster, reporter) == []


def test_pods_that_name_no_podgroup_are_told_too(cluster, reporter):
    """Their group is only here: it has no object that could be told."""
    cluster.has_pod("bare", cpu="100")
    cluster.sits()

    told = report(cluster, reporter)

    assert scheduled(cluster.pod("bare"))["reason"] == "Unschedulable"
    assert events(cluster) == [("bare", "FailedScheduling")]
    assert [line for line in told if "podgroups" in line] == []


def has_replicas(cluster: ScheduledCluster, count: int, **given: Any) -> None:
    """Pods of a Deployment, as its ReplicaSet makes them."""
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": "replica-set-of-web",
        "controller": True,
    }
    for number in range(count):
        pod = objects.pod(f"web-{number}", **given)
        pod["metadata"]["ownerReferences"] = [owner]
        pod["status"] = {"phase": "Pending"}
        cluster.server.store.create(PODS, "default", pod)


def runs_with_what_fits(cluster: ScheduledCluster) -> list[str]:
    """Pods that have places run. The names of those that have none."""
    cluster.sits()
    dispatch()
    waiting = []
    found, _ = cluster.server.store.list(PODS, "default")
    for pod in found:
        name = pod["metadata"]["name"]
        if not cluster.node_of(name):
            waiting.append(name)
            continue
        cluster.server.store.change(
            PODS, "default", name, lambda pod: {**pod, "status": {"phase": "Running"}}
        )
    cluster.sits()
    return waiting


def test_a_replica_that_no_node_has_room_for_is_unschedulable_though_others_run(cluster, reporter):
    has_replicas(cluster, 3, cpu="3")
    (waiting,) = runs_with_what_fits(cluster)

    report(cluster, reporter)

    condition = scheduled(cluster.pod(waiting))
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    gang = PodGroup.objects.get()
    assert condition["message"] == gang.pod_conditions[0]["message"]
    assert (gang.phase, gang.reason_code) == ("Running", "")
    assert events(cluster) == [(waiting, "FailedScheduling")]
    cluster.sits()
    assert report(cluster, reporter) == []


def test_a_replica_that_its_queue_holds_back_is_not_unschedulable(cluster, reporter):
    cluster.has_queue("small", capability={"cpu": "2"})
    has_replicas(cluster, 3, annotations={"scheduling.volcano.sh/queue-name": "small"})
    (waiting,) = runs_with_what_fits(cluster)

    report(cluster, reporter)

    condition = scheduled(cluster.pod(waiting))
    assert (condition["status"], condition["reason"]) == ("False", "WaitingForQuota")
    assert "small has 0 free under its capability of 2" in condition["message"]


def test_a_replica_that_takes_the_place_of_one_that_waited_is_told_too(cluster, reporter):
    has_replicas(cluster, 3, cpu="3")
    (waiting,) = runs_with_what_fits(cluster)
    report(cluster, reporter)
    pod = cluster.pod(waiting)
    cluster.loses_pod(waiting)
    metadata = {"name": "web-new", "ownerReferences": pod["metadata"]["ownerReferences"]}
    fresh = {**pod, "metadata": metadata, "status": {"phase": "Pending"}}
    cluster.server.store.create(PODS, "default", fresh)
    cluster.sits()

    report(cluster, reporter)

    assert scheduled(cluster.pod("web-new"))["reason"] == "Unschedulable"


def test_a_native_podgroup_is_not_told_that_a_pod_beyond_its_minimum_waits():
    """Its places are on their way: it must not say for a moment that it has none."""
    told = _Told("default/train", "Running", [], [{"reason": "Unschedulable"}])

    assert told.waits_for == ("", "")
