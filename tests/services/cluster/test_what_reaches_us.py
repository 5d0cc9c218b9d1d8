"""Everything that brings pods to a scheduler, on a real API server: each source with its traps.

Kubernetes' own controllers run as they are. Of operators that cannot run here (KubeRay,
LeaderWorkerSet, Kueue) the objects are made as they would make them.
"""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.clusters.kubernetes.gates import QUEUE_GATE
from scheduler.models import Pod, PodGroup
from tests.control_plane import objects
from tests.control_plane.objects import wait_until
from tests.scheduled import GROUP
from tests.services.cluster.test_scheduled_cluster import (
    GROUPS,
    NATIVE_GROUPS,
    PODS,
    QUEUES,
    Worker,
    make_gang,
    make_native_gang,
    make_node,
    native_conditions,
    phases,
    scheduling,
    template,
    why,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]

BATCH_JOBS = "/apis/batch/v1/namespaces/default/jobs"
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"


def node_of(api: Any, pod: str) -> str:
    return str(api.get(f"{PODS}/{pod}")["spec"].get("nodeName", ""))


def queue_of(pod: str) -> str:
    return Pod.objects.get(name=pod).podgroup.queue.name


def is_scheduled(api: Any, group: str) -> str:
    return native_conditions(api, group).get("PodGroupScheduled", ("", ""))[0]


# Kubernetes' own PodGroups


def test_a_native_gang_is_placed_as_a_whole_or_says_why_not(control_plane):
    api = control_plane.api
    make_node(api, "n1")
    api.post(QUEUES, objects.queue("research"))
    make_native_gang(api, "train", 2, group_labels={QUEUE_NAME: "research"})
    make_native_gang(api, "large", 3, cpu="2")

    with control_plane.kwok(), scheduling(control_plane):
        worker = Worker()
        worker.work_until(lambda: phases(api)["Running"] == 2, "the gang to run")
        worker.work_until(lambda: is_scheduled(api, "train") == "True", "the gang to be told")
        worker.work_until(lambda: is_scheduled(api, "large") == "False", "the other to be told")

        assert native_conditions(api, "train") == {"PodGroupScheduled": ("True", "Scheduled")}
        assert native_conditions(api, "large") == {"PodGroupScheduled": ("False", "Unschedulable")}
        worker.work_until(lambda: why(api, "large-0") == "Unschedulable", "its pods to say why")
        assert queue_of("train-0") == "research"


def test_a_native_gang_that_is_evicted_says_so(control_plane):
    api = control_plane.api
    make_node(api, "n1")
    api.post("/apis/scheduling.k8s.io/v1/priorityclasses", _priority_class("high", 100))
    make_native_gang(api, "low", 2, cpu="2")

    with control_plane.kwok(), scheduling(control_plane):
        worker = Worker()
        worker.work_until(lambda: phases(api)["Running"] == 2, "the gang to run")
        for number in range(2):
            finalizers = {"metadata": {"finalizers": ["example.com/wait"]}}
            api.patch(f"{PODS}/low-{number}", finalizers)  # or they are gone too fast to be seen
        pod = objects.pod("urgent", cpu="4")
        pod["spec"]["priorityClassName"] = "high"
        api.post(PODS, pod)

        def is_told() -> bool:
            told = native_conditions(api, "low").get("DisruptionTarget")
            return told == ("True", "PreemptionByScheduler")

        _let_all_age()
        worker.work_until(is_told, "the gang to say that it is taken apart")
        assert native_conditions(api, "low")["PodGroupScheduled"] == ("True", "Scheduled")


def _let_all_age() -> None:
    from tests.worlds import let_age

    wait_until(lambda: Pod.objects.filter(phase="Running").count() == 2, "the mirror")
    let_age()


def _priority_class(name: str, value: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def test_a_native_podgroup_that_is_deleted_stays_until_its_pods_are_gone(control_plane):
    """Kubernetes' finalizer keeps it. We neither set it nor take it away."""
    api = control_plane.api
    make_node(api, "n1")

    with control_plane.controllers(), control_plane.kwok(), scheduling(control_plane):
        make_native_gang(api, "train", 1)
        worker = Worker()
        worker.work_until(lambda: phases(api)["Running"] == 1, "the gang to run")
        worker.work_until(lambda: is_scheduled(api, "train") == "True", "the gang to be told")
        api.delete(f"{NATIVE_GROUPS}/train")
        worker.work_until(
            lambda: api.get(f"{NATIVE_GROUPS}/train")["metadata"].get("deletionTimestamp"),
            "the deletion to begin",
        )

        assert Pod.objects.get(name="train-0").phase in ("Bound", "Running")
        assert PodGroup.objects.get(name="train").is_native
        api.delete(f"{PODS}/train-0")
        wait_until(lambda: not api.answers(f"{NATIVE_GROUPS}/train"), "it to be gone")
        wait_until(lambda: not PodGroup.objects.exists(), "the mirror to tell so")


def test_a_job_of_kubernetes_that_makes_a_native_podgroup_is_a_gang(control_plane):
    """With the gate WorkloadWithJob its controller makes the PodGroup, and names no queue."""
    api = control_plane.api
    make_node(api, "n1")
    api.post(QUEUES, objects.queue("research"))
    job = {
        "metadata": {"name": "train"},
        "spec": {
            "parallelism": 3,
            "completions": 3,
            "completionMode": "Indexed",
            "template": {
                "metadata": {"annotations": {QUEUE_NAME: "research"}},
                "spec": template(cpu="2")["spec"] | {"restartPolicy": "Never"},
            },
        },
    }

    with (
        control_plane.controllers("WorkloadWithJob=true"),
        control_plane.kwok(),
        scheduling(control_plane),
    ):
        api.post(BATCH_JOBS, job)
        worker = Worker()
        worker.work_until(lambda: api.get(NATIVE_GROUPS)["items"], "its podgroup")
        name = api.get(NATIVE_GROUPS)["items"][0]["metadata"]["name"]
        worker.work_until(lambda: native_conditions(api, name), "the gang to say why it waits")
        assert native_conditions(api, name)["PodGroupScheduled"] == ("False", "Unschedulable")
        assert phases(api) == {"Pending": 3}
        row = PodGroup.objects.get()
        assert (row.queue.name, row.min_member, row.is_native) == ("research", 3, True)

        make_node(api, "n2")
        worker.work_until(
            lambda: api.get(f"{BATCH_JOBS}/train")["status"].get("succeeded") == 3, "its end"
        )


# Kubernetes' own controllers, without podgroups


def test_pods_of_a_stateful_set_come_one_after_the_other_and_are_placed(control_plane):
    api = control_plane.api
    make_node(api, "n1")
    pods = template(cpu="1")
    wanted = {
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db",
            "replicas": 2,
            "selector": {"matchLabels": pods["metadata"]["labels"]},
            "template": pods,
        },
    }

    with control_plane.controllers(), control_plane.kwok(), scheduling(control_plane):
        api.post(STATEFUL_SETS, wanted)
        Worker().work_until(lambda: phases(api)["Running"] == 2, "both to run")

        assert PodGroup.objects.count() == 1  # one owner, one group


def test_pods_that_ask_to_be_a_gang_without_a_podgroup_are_one(control_plane):
    """By the annotation that Volcano knows, which their Job hands down."""
    api = control_plane.api
    make_node(api, "n1")
    pods = template(cpu="3")
    pods["metadata"]["annotations"] = {"scheduling.volcano.sh/group-min-member": "2"}
    pods["spec"]["restartPolicy"] = "Never"
    job = {
        "metadata": {"name": "train"},
        "spec": {"parallelism": 2, "completions": 2, "template": pods},
    }

    with control_plane.controllers(), control_plane.kwok(), scheduling(control_plane):
        api.post(BATCH_JOBS, job)
        worker = Worker()
        worker.work_until(
            lambda: any(why(api, each["metadata"]["name"]) for each in api.get(PODS)["items"]),
            "one of them to say why it waits",
        )
        assert phases(api) == {"Pending": 2}  # there is room for one

        make_node(api, "n2")
        worker.work_until(
            lambda: api.get(f"{BATCH_JOBS}/train")["status"].get("succeeded") == 2, "its end"
        )


# Operators


def test_a_ray_cluster_is_placed_and_when_it_has_ended_keeps_no_room(control_plane):
    """KubeRay writes schedulerName volcano. Nobody completes its podgroup."""
    api = control_plane.api
    make_node(api, "n1")
    api.post(QUEUES, objects.queue("research"))
    _make_ray_cluster(api, "first")

    with control_plane.kwok(), scheduling(control_plane, "fumarole", "volcano"):
        worker = Worker()
        worker.work_until(lambda: phases(api)["Running"] == 2, "the cluster to run")
        assert queue_of("first-head") == "research"
        for name in ("first-head", "first-worker"):
            api.delete(f"{PODS}/{name}")
        worker.work_until(lambda: not api.get(PODS)["items"], "its pods to be gone")

        _make_ray_cluster(api, "second")  # the podgroup of the first is still there
        worker.work_until(lambda: phases(api)["Running"] == 2, "the second to run")


def _make_ray_cluster(api: Any, name: str) -> None:
    group = objects.podgroup(f"ray-{name}-pg", queue="research", min_member=2)
    group["spec"]["minResources"] = {"cpu": "4", "memory": "2Gi"}
    api.post(GROUPS, group)
    for role in ("head", "worker"):
        pod = objects.pod(
            f"{name}-{role}",
            cpu="2",
            scheduler="volcano",
            annotations={GROUP: f"ray-{name}-pg", "volcano.sh/task-spec": f"{role}group"},
            labels={"ray.io/cluster": name, "volcano.sh/queue-name": "research"},
        )
        api.post(PODS, pod)


def test_a_leader_waits_until_there_is_room_for_its_workers(control_plane):
    """LeaderWorkerSet asks for one member and the resources of all: the workers come later."""
    api = control_plane.api
    make_node(api, "n1")
    api.post(QUEUES, objects.queue("research", capability={"cpu": "8"}))
    group = objects.podgroup("lws-0", queue="research", min_member=1)
    group["spec"]["minResources"] = {"cpu": "6", "memory": "3Gi"}
    group["metadata"]["annotations"] = {QUEUE_NAME: "research"}
    api.post(GROUPS, group)
    _make_lws_pod(api, "lws-0")

    with control_plane.kwok(), scheduling(control_plane):
        worker = Worker()
        worker.work_until(lambda: why(api, "lws-0"), "the leader to say why it waits")
        assert node_of(api, "lws-0") == ""

        make_node(api, "n2")
        worker.work_until(lambda: node_of(api, "lws-0"), "the leader to have a place")
        for number in (1, 2):
            _make_lws_pod(api, f"lws-0-{number}")
        worker.work_until(lambda: phases(api)["Running"] == 3, "the workers to run")


def _make_lws_pod(api: Any, name: str) -> None:
    annotations = {GROUP: "lws-0", "leaderworkerset.sigs.k8s.io/size": "3"}
    api.post(PODS, objects.pod(name, cpu="2", annotations=annotations))


def test_pods_behind_the_gate_of_kueue_are_left_alone_until_it_opens(control_plane):
    api = control_plane.api
    make_node(api, "n1")
    api.post(QUEUES, objects.queue("research"))
    pod = objects.pod("gated", labels={"kueue.x-k8s.io/queue-name": "research"})
    pod["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    api.post(PODS, pod)
    api.post(PODS, objects.pod("free"))

    with control_plane.kwok(), scheduling(control_plane):
        worker = Worker()
        worker.work_until(lambda: node_of(api, "free"), "the other pod to have a place")
        assert not Pod.objects.filter(name="gated").exists()
        told = api.get(f"{PODS}/gated")["status"]["conditions"]
        assert [each["reason"] for each in told] == ["SchedulingGated"]  # the API server's

        api.patch(f"{PODS}/gated", {"spec": {"schedulingGates": []}})
        worker.work_until(lambda: node_of(api, "gated"), "it to have a place")


def test_the_label_of_kai_names_the_queue(control_plane):
    api = control_plane.api
    make_node(api, "n1")
    api.post(QUEUES, objects.queue("research"))
    api.post(PODS, objects.pod("mine", labels={"kai.scheduler/queue": "research"}))

    with control_plane.kwok(), scheduling(control_plane):
        Worker().work_until(lambda: node_of(api, "mine"), "it to have a place")

        assert queue_of("mine") == "research"


def test_pods_of_each_scheduler_name_of_the_setting_are_placed_and_no_others(control_plane):
    api = control_plane.api
    make_node(api, "n1")
    for name in ("fumarole", "volcano", "kai-scheduler", "default-scheduler"):
        api.post(PODS, objects.pod(f"of-{name}", scheduler=name))
    make_gang(api, "gang", 1, scheduler="volcano")

    with control_plane.kwok(), scheduling(control_plane, "fumarole", "volcano", "kai-scheduler"):
        Worker().work_until(lambda: phases(api)["Running"] == 4, "four of them to run")

        assert node_of(api, "of-default-scheduler") == ""


def test_the_gate_of_queues_opens_when_the_queue_has_room(control_plane):
    """Then autoscalers may see the pod, whether or not a node has room for it."""
    api = control_plane.api
    make_node(api, "n1")
    api.post(QUEUES, objects.queue("wide"))
    api.post(QUEUES, objects.queue("narrow", capability={"cpu": "1"}))
    _make_gated_pod(api, "fits", "wide", cpu="1")
    _make_gated_pod(api, "large", "wide", cpu="100")
    _make_gated_pod(api, "held", "narrow", cpu="2")

    with control_plane.kwok(), scheduling(control_plane):
        worker = Worker()
        worker.work_until(lambda: node_of(api, "fits"), "the pod that fits to have a place")
        worker.work_until(lambda: _gates(api, "large") == [], "the gate of the large one to open")
        worker.work_until(lambda: why(api, "held") == "ExceedsCapability", "the held one to say so")
        worker.work_until(lambda: why(api, "large") == "Unschedulable", "the large one to say so")

        assert _gates(api, "held") == [QUEUE_GATE]


def _make_gated_pod(api: Any, name: str, queue: str, *, cpu: str) -> None:
    pod = objects.pod(name, cpu=cpu, annotations={QUEUE_NAME: queue})
    pod["spec"]["schedulingGates"] = [{"name": QUEUE_GATE}]
    api.post(PODS, pod)


def _gates(api: Any, name: str) -> list[str]:
    gates = api.get(f"{PODS}/{name}")["spec"].get("schedulingGates", [])
    return [gate["name"] for gate in gates]
