"""A real API server whose pods are placed by sessions: from creation to Running, and back again.

KWOK plays the kubelets. The watcher is a thread of this process; sessions and orders are taken
here, as a worker would.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from django.db import connection

from scheduler.conf import KubernetesConf
from scheduler.models import Pod
from scheduler.services.cluster import api_client, api_server
from scheduler.services.cluster.mirror.feed import connect
from scheduler.services.cluster.mirror.watcher import Watcher
from scheduler.services.cluster.tick import watch
from scheduler.services.sessions.runner import SessionRunner
from tests.control_plane import objects
from tests.control_plane.objects import wait_until
from tests.mirrored import is_synced, kubernetes_mode
from tests.scheduled import GROUP
from tests.worlds import let_age

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
_PATIENCE_SECONDS = 240.0  # only how long a broken test may take, on a busy machine
VOLCANO_JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"

NATIVE_GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"


@contextmanager
def scheduling(plane: Any, *names: str, **given: Any) -> Iterator[None]:
    """A watcher beside the API server, in the mode "schedule"."""
    asked = {"mode": "schedule", "kubeconfig": str(plane.kubeconfig), **given}
    if names:
        asked["scheduler_names"] = names
    watcher = Watcher(partial(connect, KubernetesConf(**asked)))
    thread = threading.Thread(target=_run, args=(watcher,), name="watcher")
    with kubernetes_mode(**asked):
        thread.start()
        try:
            wait_until(is_synced, "the first look at the cluster")
            yield
        finally:
            watcher.stop()
            thread.join(30)
            api_client._client.cache_clear()
            api_server._client.cache_clear()
            assert not thread.is_alive()


def _run(watcher: Watcher) -> None:
    try:
        watcher.run()
    finally:
        connection.close()


class Worker:
    """Sessions and orders, one after the other."""

    def __init__(self) -> None:
        self._runner = SessionRunner("test")

    def work_until(self, is_so: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            self.sit()

    def sit(self, times: int = 1) -> None:
        for _ in range(times):
            self._runner.run_if_due()
            watch()
            time.sleep(0.05)


def phases(api: Any) -> Counter[str]:
    return Counter(_phase(pod) for pod in api.get(PODS)["items"])


def _phase(pod: dict[str, Any]) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return "Leaving"
    return str(pod["status"]["phase"])


def cores_in_use(api: Any) -> Counter[str]:
    used: Counter[str] = Counter()
    for pod in api.get(PODS)["items"]:
        node = pod["spec"].get("nodeName")
        if node and pod["status"]["phase"] not in ("Succeeded", "Failed"):
            used[node] += int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
    return used


def why(api: Any, pod: str) -> str:
    """Why it has no place, in one word; nothing for one that has."""
    for condition in api.get(f"{PODS}/{pod}")["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition["reason"])
    return ""


def podgroup_phase(api: Any, name: str) -> str:
    return str(api.get(f"{GROUPS}/{name}").get("status", {}).get("phase", ""))


def make_node(api: Any, name: str) -> None:
    """Of 4 cores. The API server taints each new node, and no controller takes the taint away."""
    api.post(NODES, objects.node(name, cpu="4", is_kwok=True))
    api.patch(f"{NODES}/{name}", {"spec": {"taints": []}})


def make_gang(api: Any, name: str, size: int, *, queue: str = "default", **given: Any) -> None:
    api.post(GROUPS, objects.podgroup(name, queue=queue, min_member=size))
    for number in range(size):
        api.post(PODS, objects.pod(f"{name}-{number}", annotations={GROUP: name}, **given))


def make_native_gang(api: Any, name: str, size: int, **given: Any) -> None:
    """Of Kubernetes itself, as 1.36 has it."""
    labels = given.pop("group_labels", {})
    api.post(NATIVE_GROUPS, objects.native_podgroup(name, min_count=size, labels=labels))
    for number in range(size):
        api.post(PODS, objects.pod_of_native_group(f"{name}-{number}", name, **given))


def native_conditions(api: Any, name: str) -> dict[str, tuple[str, str]]:
    """Status and reason of each condition."""
    found = api.get(f"{NATIVE_GROUPS}/{name}").get("status", {}).get("conditions", [])
    return {each["type"]: (each["status"], each["reason"]) for each in found}


def test_gangs_and_single_pods_run_and_no_node_holds_more_than_it_has(control_plane):
    api = control_plane.api
    for number in range(3):
        make_node(api, f"n{number}")
    api.post(PODS, objects.pod("web", cpu="2", scheduler="default-scheduler"))
    api.post(f"{PODS}/web/binding", objects.binding("web", "n0"))
    make_gang(api, "gang", 3, cpu="2")
    make_gang(api, "large", 3, cpu="4")
    api.post(PODS, objects.pod("single", cpu="2"))

    with control_plane.kwok(), scheduling(control_plane):
        worker = Worker()
        worker.work_until(lambda: phases(api)["Running"] == 5, "what fits to run")

        assert phases(api) == {"Running": 5, "Pending": 3}  # the large gang waits as a whole
        assert max(cores_in_use(api).values()) <= 4
        wait_until(
            lambda: Pod.objects.filter(phase="Running").count() == 4, "the mirror to tell so"
        )
        worker.work_until(
            lambda: why(api, "large-0") == "Unschedulable", "the waiting pods to say why"
        )
        assert why(api, "single") == ""
        worker.work_until(
            lambda: podgroup_phase(api, "gang") == "Running", "the podgroup to say it"
        )


def test_a_queue_takes_back_what_it_deserves(control_plane):
    api = control_plane.api
    make_node(api, "n1")
    api.post(QUEUES, objects.queue("lender", deserved={"cpu": "2"}, reclaimable=True))
    api.post(QUEUES, objects.queue("owner", deserved={"cpu": "2"}))
    for number in range(4):
        make_gang(api, f"loan{number}", 1, queue="lender", cpu="1")

    with control_plane.kwok(), scheduling(control_plane):
        worker = Worker()
        worker.work_until(lambda: phases(api)["Running"] == 4, "the lender to take all")
        wait_until(lambda: Pod.objects.filter(phase="Running").count() == 4, "the mirror")
        let_age()  # or they are spared for having just started
        make_gang(api, "claim", 2, queue="owner", cpu="1")

        def owner_runs() -> bool:
            running = {
                pod["metadata"]["name"]
                for pod in api.get(PODS)["items"]
                if pod["status"]["phase"] == "Running" and _phase(pod) != "Leaving"
            }
            return {"claim-0", "claim-1"} <= running

        worker.work_until(owner_runs, "the owner to get its share")

        assert max(cores_in_use(api).values()) <= 4
        worker.work_until(lambda: podgroup_phase(api, "claim") == "Running", "the podgroup")


def template(**given: Any) -> dict[str, Any]:
    """Of pods of a Deployment or a Job."""
    pod = objects.pod("ignored", **given)
    labels = {"app": "web"}
    return {"metadata": {"labels": labels}, "spec": pod["spec"]}


def make_deployment(api: Any, name: str, replicas: int, *, queue: str, cpu: str = "1") -> None:
    labels = {"app": name}
    pods = template(cpu=cpu)
    in_queue = {"scheduling.volcano.sh/queue-name": queue}
    pods["metadata"] = {"labels": labels, "annotations": in_queue}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pods}
    deployment = {"metadata": {"name": name}, "spec": spec}
    api.post("/apis/apps/v1/namespaces/default/deployments", deployment)


def test_pods_of_kubernetes_own_controllers_are_placed_in_their_queues(control_plane):
    api = control_plane.api
    make_node(api, "n1")
    api.post(QUEUES, objects.queue("research"))
    make_deployment(api, "web", 2, queue="research")
    pods_of_job = template(cpu="1")["spec"] | {"restartPolicy": "Never"}
    api.post(
        "/apis/batch/v1/namespaces/default/jobs",
        {"metadata": {"name": "once"}, "spec": {"template": {"spec": pods_of_job}}},
    )

    def job_is_done() -> bool:
        job = api.get("/apis/batch/v1/namespaces/default/jobs/once")
        return job["status"].get("succeeded") == 1

    with control_plane.controllers(), control_plane.kwok(), scheduling(control_plane):
        worker = Worker()
        worker.work_until(lambda: phases(api)["Running"] >= 2, "the deployment to run")
        worker.work_until(job_is_done, "the job to end")

        queues = set(Pod.objects.values_list("podgroup__queue__name", "podgroup__min_member"))
        assert queues == {("research", 1), ("default", 1)}


def test_a_replica_without_a_place_says_why_though_the_others_run(control_plane):
    """Autoscalers see the one that waits for nodes, and not the one that its queue holds back."""
    api = control_plane.api
    make_node(api, "n1")
    api.post(QUEUES, objects.queue("small", capability={"cpu": "1"}))
    api.post(QUEUES, objects.queue("wide"))
    make_deployment(api, "held", 2, queue="small")
    make_deployment(api, "large", 2, queue="wide", cpu="3")

    def told() -> set[tuple[str, str]]:
        found = set()
        for pod in api.get(PODS)["items"]:
            if not pod["spec"].get("nodeName"):
                found.add((pod["metadata"]["labels"]["app"], why(api, pod["metadata"]["name"])))
        return found

    expected = {("held", "WaitingForQuota"), ("large", "Unschedulable")}
    with control_plane.controllers(), control_plane.kwok(), scheduling(control_plane):
        worker = Worker()
        worker.work_until(lambda: phases(api)["Running"] == 2, "what fits to run")
        worker.work_until(lambda: told() == expected, "the others to say why")


def test_a_job_of_volcano_goes_from_apply_to_completed(control_plane):
    """Its controllers make the pods once the podgroup is Inqueue, which sessions say."""
    api = control_plane.api
    make_node(api, "n1")
    api.post(QUEUES, objects.queue("default"))
    api.post(VOLCANO_JOBS, objects.volcano_job("train", replicas=3))

    def is_completed() -> bool:
        status = api.get(f"{VOLCANO_JOBS}/train").get("status", {})
        return status.get("state", {}).get("phase") == "Completed"

    with (
        control_plane.volcano_controllers(),
        control_plane.kwok(),
        scheduling(control_plane, "fumarole", "volcano", job_controller="volcano"),
    ):
        Worker().work_until(is_completed, "the job to be completed")


def test_a_cluster_in_which_nothing_happens_is_told_nothing(control_plane):
    """Sessions go on, but what pods, podgroups and queues say has been said."""
    api = control_plane.api
    make_node(api, "n1")
    api.post(QUEUES, objects.queue("small", capability={"cpu": "1"}))
    make_gang(api, "runs", 2)
    make_gang(api, "large", 2, cpu="3")
    make_gang(api, "held", 1, cpu="2", queue="small")
    make_native_gang(api, "native", 3, cpu="3")
    api.post(PODS, objects.pod("bare", cpu="50"))
    waiting = ("large-0", "held-0", "native-0", "bare")

    with control_plane.kwok(), scheduling(control_plane):
        worker = Worker()
        worker.work_until(lambda: phases(api)["Running"] == 2, "the gang to run")
        worker.work_until(lambda: all(why(api, pod) for pod in waiting), "all to say why")
        worker.work_until(lambda: native_conditions(api, "native"), "the native one to say why")
        worker.work_until(lambda: podgroup_phase(api, "runs") == "Running", "the podgroup")
        said = {}

        def has_come_to_rest() -> bool:
            """The same twice, with some sessions in between."""
            before = dict(said)
            said.update(_versions(api))
            worker.sit(10)
            return bool(before) and before == said

        worker.work_until(has_come_to_rest, "the cluster to come to rest")
        worker.sit(100)  # each looks at what is to be told, as often as the watcher does

        assert _versions(api) == said


_TOLD_PLACES = (PODS, GROUPS, NATIVE_GROUPS, QUEUES, "/apis/events.k8s.io/v1/events")


def _versions(api: Any) -> dict[str, str]:
    """Of everything that Fumarole writes to."""
    found = {}
    for place in _TOLD_PLACES:
        for each in api.get(place)["items"]:
            meta = each["metadata"]
            found[f"{place}/{meta['name']}"] = meta["resourceVersion"]
    return found
