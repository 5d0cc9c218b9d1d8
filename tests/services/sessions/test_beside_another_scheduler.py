"""Shadow sessions beside another scheduler that binds pods through a real API server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from django.db import connection

from scheduler.conf import KubernetesConf
from scheduler.domain.comparison import Verdict
from scheduler.models import Node, Pod
from scheduler.selectors.sessions.comparison import comparisons_for
from scheduler.services.cluster import api_server
from scheduler.services.cluster.mirror.feed import connect
from scheduler.services.cluster.mirror.watcher import Watcher
from scheduler.services.sessions.runner import SessionRunner
from tests.control_plane import objects
from tests.control_plane.objects import wait_until
from tests.mirrored import is_synced, kubernetes_mode

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"


@contextmanager
def watching(plane: Any) -> Iterator[None]:
    """A watcher in a thread of this process. Sessions are run by the test."""
    settings = {"kubeconfig": str(plane.kubeconfig)}
    watcher = Watcher(partial(connect, KubernetesConf(**settings)))
    thread = threading.Thread(target=_run, args=(watcher,), name="watcher")
    with kubernetes_mode(**settings):
        thread.start()
        try:
            wait_until(is_synced, "the first look at the cluster")
            yield
        finally:
            watcher.stop()
            thread.join(30)
            api_server._client.cache_clear()
            assert not thread.is_alive()


def _run(watcher: Watcher) -> None:
    try:
        watcher.run()
    finally:
        connection.close()


class Binder:
    """Another scheduler: it binds what it is told to, whole gangs or not."""

    def __init__(self, plane: Any) -> None:
        self.api = plane.api

    def submit(self, name: str, pods: int, cpu: str) -> None:
        self.api.post(GROUPS, objects.podgroup(name, min_member=pods))
        for number in range(pods):
            member = objects.pod(
                f"{name}-{number}",
                cpu=cpu,
                scheduler="volcano",
                annotations={"scheduling.k8s.io/group-name": name},
            )
            self.api.post(PODS, member)
        wait_until(
            lambda: Pod.objects.filter(podgroup__name=name).count() == pods, f"pods of {name}"
        )

    def bind(self, pod: str, node: str = "n1") -> None:
        self.api.post(f"{PODS}/{pod}/binding", objects.binding(pod, node))
        wait_until(lambda: Pod.objects.filter(name=pod, node__name=node).exists(), f"{pod} bound")


def verdicts() -> dict[str, str]:
    return {row.podgroup_name: row.verdict for row in comparisons_for(None)}


def test_what_another_scheduler_binds_is_compared(control_plane):
    binder = Binder(control_plane)
    control_plane.api.post(NODES, objects.node("n1", cpu="8"))
    control_plane.kubectl("taint", "node", "n1", "node.kubernetes.io/not-ready-")
    with watching(control_plane):
        runner = SessionRunner("test")
        wait_until(lambda: Node.objects.filter(ready=True).exists(), "the node")
        runner.run()
        binder.submit("fits", 2, "2")
        binder.submit("big", 1, "64")
        binder.submit("later", 1, "2")
        runner.run()

        binder.bind("fits-0")
        runner.run()
        binder.bind("fits-1")
        binder.bind("big-0")
        runner.run()

        assert verdicts() == {
            "default/fits": Verdict.TOGETHER,
            "default/big": Verdict.ONLY_THEIRS,
            "default/later": Verdict.UNDECIDED,
        }
