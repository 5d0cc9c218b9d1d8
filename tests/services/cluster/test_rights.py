"""The rights of the account in `deploy/kubernetes/rbac.yaml`: each is used, there are no others.

What the account asks for is read from the audit log of a real API server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.credentials import from_kubeconfig
from scheduler.clusters.kubernetes.eviction import (
    EvictOrder,
    EvictResult,
    delete_pod,
    evict_pod,
)
from scheduler.clusters.kubernetes.gates import QUEUE_GATE
from scheduler.clusters.kubernetes.installer import install
from scheduler.clusters.kubernetes.manifests import FOLDER, Wanted
from scheduler.clusters.kubernetes.resources import (
    JOBS,
    NATIVE_PODGROUPS,
    NODES,
    PODGROUPS,
    PODS,
    Resource,
)
from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import Pod
from scheduler.services.cluster.pod_logs import read_log
from scheduler.services.jobs.changes import update_job
from scheduler.services.jobs.submit import submit_job
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import create_queue, update_queue
from scheduler.services.queues.deletion import delete_queue
from tests.control_plane import objects
from tests.control_plane.objects import wait_until
from tests.control_plane.plane import ACCOUNT, ControlPlane
from tests.services.cluster.jobs.examples import job, task
from tests.services.cluster.test_queues_both_ways import ADMIN, stored, vcctl, wait_for, watching
from tests.services.cluster.test_scheduled_cluster import (
    NATIVE_GROUPS,
    VOLCANO_JOBS,
    Worker,
    make_gang,
    make_native_gang,
    make_node,
    native_conditions,
    podgroup_phase,
    why,
)
from tests.services.cluster.test_scheduled_cluster import PODS as PODS_PATH

pytestmark = pytest.mark.django_db(transaction=True)
Right = tuple[str, str, str]  # API group, resource with its subresource, verb

_RULES_REVIEWS = Resource(
    "authorization.k8s.io",
    "v1",
    "selfsubjectrulesreviews",
    "SelfSubjectRulesReview",
    namespaced=False,
)
_EVERYBODY = {
    ("authentication.k8s.io", "selfsubjectreviews", "create"),
    ("authorization.k8s.io", "selfsubjectaccessreviews", "create"),
    ("authorization.k8s.io", "selfsubjectrulesreviews", "create"),
}
"""What Kubernetes lets every account do: ask who it is, and what it may do."""


def test_an_account_that_watches_uses_every_right_that_it_has(control_plane: ControlPlane) -> None:
    kubeconfig = _installed(control_plane)
    log = _Log(control_plane.audit_log)

    _look_after_queues(control_plane, kubeconfig)
    _leave_queues_to_volcano(control_plane, kubeconfig)
    _read_single_objects(control_plane, kubeconfig)

    wait_until(lambda: _granted("fumarole-watch") <= log.used(), "the last lines of the log")
    assert log.used() == _granted("fumarole-watch")
    assert log.refused() == set()


def test_an_account_that_schedules_uses_every_right_that_it_has(
    control_plane: ControlPlane,
) -> None:
    kubeconfig = _installed(control_plane, schedules=True)
    log = _Log(control_plane.audit_log)
    wanted = _granted("fumarole-schedule")

    _place_pods(control_plane, kubeconfig)
    _evict_pods(control_plane, kubeconfig)
    _run_a_job(control_plane, kubeconfig)

    wait_until(lambda: wanted <= log.used(), "the last lines of the log")
    assert log.used() <= wanted | _granted("fumarole-watch")
    assert log.refused() == set()


@pytest.mark.parametrize(
    ("schedules", "roles"),
    [(False, ["fumarole-watch"]), (True, ["fumarole-watch", "fumarole-schedule"])],
    ids=["watch", "schedule"],
)
def test_an_account_may_do_what_its_roles_say_and_nothing_else(
    control_plane: ControlPlane, schedules: bool, roles: list[str]
) -> None:
    kubeconfig = _installed(control_plane, schedules=schedules)
    wanted = _EVERYBODY.union(*(_granted(role) for role in roles))

    wait_until(lambda: _allowed(kubeconfig) == wanted, f"just these rights: {sorted(wanted)}")


def _installed(plane: ControlPlane, *, schedules: bool = False) -> Path:
    """The kubeconfig of the account."""
    admin = Client(from_kubeconfig(plane.kubeconfig))
    for _ in install(admin, Wanted(schedules=schedules)):
        pass
    admin.close()
    token = plane.kubectl("create", "token", "fumarole", "--namespace", "fumarole").strip()
    return plane.token_user("account", token)


def _look_after_queues(plane: ControlPlane, kubeconfig: Path) -> None:
    """Fumarole's own hands on a queue: its whole life, a command, the status."""
    with watching(plane, kubeconfig=str(kubeconfig)):
        create_queue(objects.queue("research", weight=2, parent="root"), by=ADMIN)
        update_queue("research", {"spec": {"weight": 5}}, by=ADMIN, merge=True)
        vcctl(plane, "close")
        wait_for("research", state="Closed")
        wait_until(lambda: stored(plane, "research")["status"]["state"] == "Closed", "the status")
        delete_queue("research", by=ADMIN)


def _leave_queues_to_volcano(plane: ControlPlane, kubeconfig: Path) -> None:
    """A command is sent."""
    with watching(plane, kubeconfig=str(kubeconfig), queue_controller="volcano"):
        create_queue(objects.queue("research", weight=2, parent="root"), by=ADMIN)
        command_queue("research", QueueCommand.CLOSE, by=ADMIN)


def _place_pods(plane: ControlPlane, kubeconfig: Path) -> None:
    """A gang that gets its places, and one that is too large, which is told."""
    make_node(plane.api, "n1")
    make_gang(plane.api, "small", 2)
    make_gang(plane.api, "large", 1, cpu="1000")
    make_native_gang(plane.api, "native", 1)
    gated = objects.pod("gated")
    gated["spec"]["schedulingGates"] = [{"name": QUEUE_GATE}]
    plane.api.post(PODS_PATH, gated)
    settings = {"mode": "schedule", "scheduler_names": ("fumarole",)}
    with plane.kwok(), watching(plane, kubeconfig=str(kubeconfig), **settings):
        Worker().work_until(
            lambda: (
                why(plane.api, "large-0")
                and podgroup_phase(plane.api, "small") == "Running"
                and native_conditions(plane.api, "native")
                and plane.api.get(f"{PODS_PATH}/gated")["spec"].get("nodeName")
            ),
            "what is told of the gangs",
        )


def _run_a_job(plane: ControlPlane, kubeconfig: Path) -> None:
    """From its submission to the end of its time: with a service, and pods that go."""
    given = job("short", task("worker", 1), minAvailable=1, ttlSecondsAfterFinished=2)
    given["spec"]["plugins"] = {"svc": []}
    settings = {"mode": "schedule", "scheduler_names": ("fumarole", "volcano")}
    with plane.kwok(), watching(plane, kubeconfig=str(kubeconfig), **settings):
        submit_job(given, by=ADMIN)
        update_job("default", "short", {"metadata": {"labels": {"a": "b"}}}, by=ADMIN, merge=True)
        worker = Worker()
        worker.work_until(Pod.objects.filter(phase="Succeeded").exists, "the pod to end")
        pod = Pod.objects.select_related("podgroup__queue").get(podgroup__job__name="short")
        assert "may not read logs" not in read_log(ADMIN, pod).problem
        worker.work_until(lambda: plane.api.get(VOLCANO_JOBS)["items"] == [], "the job to go")


def _evict_pods(plane: ControlPlane, kubeconfig: Path) -> None:
    """In both ways that KUBERNETES_EVICTION names."""
    account = Client(from_kubeconfig(kubeconfig))
    for name, evict in (("small-0", evict_pod), ("small-1", delete_pod)):
        uid = plane.api.get(f"{PODS_PATH}/{name}")["metadata"]["uid"]
        order = EvictOrder(uid, "default", name, reason="Reclaimed", message="For a test.")
        assert evict(account, order).result is EvictResult.LEAVING
    account.close()


def _read_single_objects(plane: ControlPlane, kubeconfig: Path) -> None:
    """As pages do that show the YAML of an object."""
    plane.api.post("/api/v1/nodes", objects.node("n1"))
    plane.api.post("/api/v1/namespaces/default/pods", objects.pod("p1"))
    plane.kubectl("create", "-f", "-", given=json.dumps(objects.podgroup("gang")))
    plane.kubectl("create", "-f", "-", given=json.dumps(objects.volcano_job("train")))
    plane.api.post(NATIVE_GROUPS, objects.native_podgroup("native"))
    account = Client(from_kubeconfig(kubeconfig))
    account.get(NODES, "n1")
    account.get(PODS, "p1", "default")
    account.get(PODGROUPS, "gang", "default")
    account.get(NATIVE_PODGROUPS, "native", "default")
    account.get(JOBS, "train", "default")
    account.close()


def _granted(role: str) -> set[Right]:
    for document in yaml.safe_load_all((FOLDER / "rbac.yaml").read_text()):
        if document["kind"] == "ClusterRole" and document["metadata"]["name"] == role:
            return set(_rights_in(document["rules"]))
    raise AssertionError(f"there is no role {role}")


def _rights_in(rules: list[dict[str, Any]]) -> Iterator[Right]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield group, resource, verb


def _allowed(kubeconfig: Path) -> set[Right]:
    """As the API server itself says it, for any namespace that has no rules of its own."""
    account = Client(from_kubeconfig(kubeconfig))
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "default"},
    }
    answer = account.create(_RULES_REVIEWS, review)
    account.close()
    return set(_rights_in(answer["status"]["resourceRules"]))


class _Log:
    """What the account has asked for since this log was opened."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begin = len(self._lines())

    def _lines(self) -> list[str]:
        if not self._file.exists():
            return []
        return self._file.read_text().splitlines()

    def _requests(self) -> Iterator[tuple[Right, int]]:
        for line in self._lines()[self._begin :]:
            event = json.loads(line)
            if event["user"]["username"] != ACCOUNT:
                continue
            asked = event.get("objectRef")
            if asked is None:  # a path such as /version, which everybody may ask for
                continue
            resource = asked["resource"]
            if "subresource" in asked:
                resource = f"{resource}/{asked['subresource']}"
            right = (asked.get("apiGroup", ""), resource, event["verb"])
            yield right, event["responseStatus"]["code"]

    def used(self) -> set[Right]:
        return {right for right, _ in self._requests()}

    def refused(self) -> set[Right]:
        return {right for right, code in self._requests() if code in (401, 403)}
