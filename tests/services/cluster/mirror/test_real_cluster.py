"""The watcher beside a real API server: lists, changes, restarts of both, and a random history."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from scheduler.conf import KubernetesConf
from scheduler.models import Mirror, Node, Pod, PodGroup, Queue
from scheduler.services.cluster.mirror.feed import connect
from scheduler.services.cluster.mirror.watcher import Watcher
from tests.control_plane import objects
from tests.control_plane.api import ApiError
from tests.control_plane.objects import wait_until
from tests.mirrored import is_synced, kubernetes_mode
from tests.services.cluster.mirror.both_sides import (
    GROUP,
    QUEUES_PATH,
    differences,
    stored_podgroups,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]

NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"


@contextmanager
def watching(plane: Any) -> Iterator[None]:
    """A watcher in a thread of this process, from its first list to its end."""
    given = KubernetesConf(kubeconfig=str(plane.kubeconfig))
    watcher = Watcher(partial(connect, given))
    thread = threading.Thread(target=_run, args=(watcher,), name="watcher")
    with kubernetes_mode(kubeconfig=str(plane.kubeconfig)):
        thread.start()
        try:
            wait_until(is_synced, "the first look at the cluster")
            yield
        finally:
            watcher.stop()
            thread.join(30)
            assert not thread.is_alive()


def _run(watcher: Watcher) -> None:
    try:
        watcher.run()
    finally:
        connection.close()


def wait_until_equal(api: Any) -> None:
    try:
        wait_until(lambda: _are_equal(api), "both sides to be equal")
    except AssertionError:
        raise AssertionError("\n".join(differences(api))) from None


def _are_equal(api: Any) -> bool:
    try:
        return not differences(api)
    except (ApiError, OSError):  # a server that has just started does not answer everything yet
        return False


def insist(ask: Callable[[], object]) -> None:
    """Of a server that has just started."""

    def is_done() -> bool:
        with suppress(ApiError, OSError):
            ask()
            return True
        return False

    wait_until(is_done, "the server to answer")


def bind(api: Any, pod: str, node: str) -> None:
    api.post(f"{PODS}/{pod}/binding", objects.binding(pod, node))


def delete(api: Any, path: str) -> None:
    """At once, as there is no kubelet that would end a pod."""
    api.delete(path, {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})


def grouped(name: str, group: str, **given: Any) -> dict[str, Any]:
    return objects.pod(name, annotations={GROUP: group}, **given)


def test_what_is_there_is_mirrored_and_so_is_every_change(control_plane):
    api = control_plane.api
    api.post(NODES, objects.node("n1"))
    api.post(QUEUES_PATH, objects.queue("research", weight=3))
    api.post(GROUPS, objects.podgroup("gang", queue="research", min_member=2))
    api.post(PODS, grouped("gang-0", "gang", cpu="2"))
    api.post(PODS, objects.pod("web", cpu="500m", scheduler="default-scheduler"))
    bind(api, "web", "n1")

    with watching(control_plane):
        wait_until_equal(api)
        assert Node.objects.get().taken.amount("cpu") == 500
        assert stored_podgroups()["gang"] == "research"
        assert Mirror.objects.get().positions["pods"].isdigit()

        bind(api, "gang-0", "n1")
        api.patch(f"{NODES}/n1", {"spec": {"unschedulable": True}})
        api.post(NODES, objects.node("n2", labels={"zone": "b"}))
        api.patch(f"{QUEUES_PATH}/research", {"spec": {"weight": 7}})
        wait_until_equal(api)
        assert Pod.objects.get(name="gang-0").phase == "Bound"
        assert Queue.objects.get(name="research").weight == 7

        delete(api, f"{PODS}/gang-0")
        delete(api, f"{PODS}/web")
        api.delete(f"{NODES}/n2")
        wait_until_equal(api)
        assert list(Node.objects.values_list("name", flat=True)) == ["n1"]
        assert not Pod.objects.exists()


def test_a_namespace_that_is_deleted_takes_its_podgroups_and_pods_along(control_plane):
    api = control_plane.api
    api.post(NAMESPACES, {"metadata": {"name": "team"}})
    api.post(GROUPS.replace("default", "team", 1), objects.podgroup("gang"))
    api.post(PODS.replace("default", "team", 1), grouped("gang-0", "gang"))

    with control_plane.controllers(), watching(control_plane):
        wait_until_equal(api)
        assert PodGroup.objects.filter(namespace="team").exists()

        api.delete(f"{NAMESPACES}/team")

        wait_until(lambda: not Pod.objects.filter(namespace="team").exists(), "the pods to go")
        wait_until(lambda: not PodGroup.objects.exists(), "the podgroups to go")
        wait_until_equal(api)


def test_an_api_server_that_is_killed_and_comes_back(control_plane):
    api = control_plane.api
    api.post(NODES, objects.node("n1"))
    with watching(control_plane):
        wait_until_equal(api)

        control_plane.kill_api_server()
        control_plane.start_api_server()
        insist(lambda: api.post(NODES, objects.node("n2")))
        insist(lambda: api.delete(f"{NODES}/n1"))

        wait_until_equal(api)
        assert list(Node.objects.values_list("name", flat=True)) == ["n2"]


@contextmanager
def watcher_process(plane: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A watcher as it runs in production, on the database of this test."""
    environment = {
        **os.environ,
        "SCHEDULER_CLUSTER": "kubernetes",
        "KUBECONFIG": str(plane.kubeconfig),
        "DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
        "SECRET_KEY": "test",
    }
    process = subprocess.Popen(
        [sys.executable, "manage.py", "watcher"], cwd=Path(settings.BASE_DIR), env=environment
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait(30)


def test_a_watcher_that_is_killed_at_any_moment_does_no_harm(control_plane):
    api = control_plane.api
    chance = random.Random(7)
    for round_number in range(3):
        with watcher_process(control_plane) as process:
            for number in range(20):
                api.post(NODES, objects.node(f"n{round_number}-{number}"))
            wait_until(Node.objects.exists, "the watcher to begin")
            threading.Event().wait(chance.uniform(0.0, 0.3))
            process.send_signal(signal.SIGKILL)
        delete(api, f"{NODES}/n{round_number}-{chance.randrange(20)}")

    with watcher_process(control_plane):
        wait_until_equal(api)
    assert Node.objects.count() == 57


# A random history


class History:
    """Random changes that a cluster could see, a few at a time."""

    def __init__(self, api: Any, seed: int) -> None:
        self.api = api
        self.chance = random.Random(seed)
        self.made = 0
        self.known: dict[str, list[str]] = {
            "node": [],
            "queue": [],
            "job": [],
            "group": [],
            "pod": [],
        }

    def step(self) -> None:
        chosen = self.chance.choices(
            [self.add, self.bind, self.change, self.remove], weights=[5, 4, 3, 3]
        )[0]
        with suppress(ApiError):  # it is gone already, or bound already
            chosen()

    def add(self) -> None:
        self.made += 1
        kind = self.chance.choice(["node", "queue", "job", "group", "pod", "pod", "pod"])
        name = f"{kind}-{self.made}"
        if kind != "node" and self.chance.random() < 0.3 and self.known[kind]:
            name = self.chance.choice(self.known[kind])  # perhaps one that was deleted before
        getattr(self, f"_add_{kind}")(name)
        self.known[kind].append(name)

    def _add_node(self, name: str) -> None:
        self.api.post(NODES, objects.node(name, labels={"zone": self.chance.choice("ab")}))

    def _add_queue(self, name: str) -> None:
        parent = self.chance.choice(["root", *self.known["queue"]])
        self.api.post(QUEUES_PATH, objects.queue(name, weight=1, parent=parent))

    def _add_job(self, name: str) -> None:
        """With its podgroup, now and then, as Volcano's controller would make it."""
        queue = self.chance.choice(["default", *self.known["queue"]])
        made = self.api.post(JOBS, objects.volcano_job(name, queue=queue))["metadata"]
        group = objects.podgroup(f"{name}-{made['uid']}", queue=queue)
        owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "controller": True}
        group["metadata"]["ownerReferences"] = [{**owner, "name": name, "uid": made["uid"]}]
        self.known["group"].append(group["metadata"]["name"])
        if self.chance.random() < 0.7:
            self.api.post(GROUPS, group)

    def _add_group(self, name: str) -> None:
        queue = self.chance.choice(["default", "missing", *self.known["queue"]])
        if self.known["job"] and self.chance.random() < 0.3:
            name = self.chance.choice(self.known["job"])  # somebody else's, of the same name
        self.api.post(GROUPS, objects.podgroup(name, queue=queue))

    def _add_pod(self, name: str) -> None:
        kind = self.chance.choice(["gang", "gang", "bare", "foreign"])
        if kind == "foreign":
            self.api.post(PODS, objects.pod(name, scheduler="default-scheduler"))
        elif kind == "bare" or not self.known["group"]:
            self.api.post(PODS, objects.pod(name))
        else:
            self.api.post(PODS, grouped(name, self.chance.choice(self.known["group"])))

    def bind(self) -> None:
        if self.known["pod"] and self.known["node"]:
            bind(self.api, self.chance.choice(self.known["pod"]), self._any("node"))

    def change(self) -> None:
        kind = self.chance.choice(["node", "queue", "pod"])
        if not self.known[kind]:
            return
        name = self._any(kind)
        if kind == "node":
            cordon = self.chance.random() < 0.5
            self.api.patch(f"{NODES}/{name}", {"spec": {"unschedulable": cordon}})
        elif kind == "queue":
            self.api.patch(f"{QUEUES_PATH}/{name}", {"spec": {"weight": self.made % 90 + 1}})
        else:
            phase = self.chance.choice(["Running", "Succeeded", "Failed"])
            self.api.patch(f"{PODS}/{name}/status", {"status": {"phase": phase}})

    def remove(self) -> None:
        kind = self.chance.choice(["node", "queue", "job", "group", "group", "pod", "pod"])
        paths = {"node": NODES, "queue": QUEUES_PATH, "job": JOBS, "group": GROUPS, "pod": PODS}
        if self.known[kind]:
            delete(self.api, f"{paths[kind]}/{self._any(kind)}")

    def _any(self, kind: str) -> str:
        return self.chance.choice(self.known[kind])


@pytest.mark.parametrize("seed", [1, 2])
def test_after_any_history_the_mirror_equals_the_cluster(control_plane, seed):
    history = History(control_plane.api, seed)
    for _ in range(20):
        history.step()

    with watching(control_plane):
        for _ in range(6):
            for _ in range(25):
                history.step()
            wait_until_equal(control_plane.api)
