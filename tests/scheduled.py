"""A fake API server with pods in it, which is mirrored and whose pods are placed by sessions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.utils import timezone

from scheduler.clusters.kubernetes import resources
from scheduler.clusters.kubernetes.read import READERS
from scheduler.models import Decision, Mirror, Pod
from scheduler.services.cluster import api_client
from scheduler.services.sessions.runner import SessionRunner
from tests.control_plane import objects
from tests.control_plane.fake.resources import resource_of
from tests.control_plane.fake.server import FakeApiServer
from tests.mirrored import MadeUpCluster, kubernetes_mode

NODES = resource_of("v1", "nodes")
PODS = resource_of("v1", "pods")
PODGROUPS = resource_of("scheduling.volcano.sh/v1beta1", "podgroups")
QUEUES = resource_of("scheduling.volcano.sh/v1beta1", "queues")
NATIVE = replace(resources.NATIVE_PODGROUPS, version="v1beta1")
NATIVE_PODGROUPS = resource_of(NATIVE.api_version, "podgroups")
_TOLD = (
    resources.NAMESPACES,
    resources.NODES,
    resources.QUEUES,
    resources.PODGROUPS,
    NATIVE,
    resources.PODS,
)
GROUP = "scheduling.k8s.io/group-name"
BINDING = "/api/v1/namespaces/default/pods/*/binding"


class ScheduledCluster:
    """`tells` is the watcher, `sits` a session; orders are carried out by the code under test."""

    def __init__(self, server: FakeApiServer) -> None:
        self.server = server
        self.mirror = MadeUpCluster()
        self._runner = SessionRunner("test")

    def has_node(self, name: str, **given: Any) -> None:
        self.server.store.create(NODES, "", objects.node(name, **given))

    def has_queue(self, name: str, **spec: Any) -> None:
        self.server.store.create(QUEUES, "", objects.queue(name, **spec))

    def has_pod(self, name: str, **given: Any) -> None:
        self.server.store.create(PODS, "default", _pending(objects.pod(name, **given)))

    def has_gang(self, name: str, size: int, *, queue: str = "default", **given: Any) -> None:
        group = objects.podgroup(name, queue=queue, min_member=size)
        self.server.store.create(PODGROUPS, "default", group)
        for number in range(size):
            self.has_pod(f"{name}-{number}", annotations={GROUP: name}, **given)

    def has_native_gang(self, name: str, size: int, **given: Any) -> None:
        """Of Kubernetes itself, as 1.37 has it."""
        group = objects.native_podgroup(name, min_count=size, labels=given.pop("group_labels", {}))
        self.server.store.create(NATIVE_PODGROUPS, "default", group)
        for number in range(size):
            pod = objects.pod_of_native_group(f"{name}-{number}", name, **given)
            self.server.store.create(PODS, "default", _pending(pod))

    def native_podgroup(self, name: str) -> dict[str, Any]:
        return self.server.store.get(NATIVE_PODGROUPS, "default", name)

    def loses_pod(self, name: str) -> None:
        self.server.store.delete(PODS, "default", name)

    def pod(self, name: str) -> dict[str, Any]:
        return self.server.store.get(PODS, "default", name)

    def podgroup(self, name: str) -> dict[str, Any]:
        return self.server.store.get(PODGROUPS, "default", name)

    def node_of(self, name: str) -> str:
        return str(self.pod(name)["spec"].get("nodeName", ""))

    def tells(self) -> None:
        """The mirror hears everything, and that just now."""
        found = []
        for resource in _TOLD:
            place = resource_of(resource.api_version, resource.plural)
            items, _ = self.server.store.list(place, "")
            found += [READERS[resource](item) for item in items]
        self.mirror.lists(*found)
        self.hears()

    def hears(self) -> None:
        Mirror.objects.update(heard_at=timezone.now())

    def sits(self) -> None:
        self.tells()
        self._runner.run()

    def binds(self) -> list[str]:
        """The requests to bind, as the server saw them."""
        return [path for _, path in self.server.requests if path.endswith("/binding")]


def _pending(pod: dict[str, Any]) -> dict[str, Any]:
    return {**pod, "status": {"phase": "Pending"}}


def phase(name: str) -> str:
    return Pod.objects.get(name=name).phase


def phases() -> dict[str, str]:
    return dict(Pod.objects.order_by("name").values_list("name", "phase"))


def open_decisions() -> int:
    return Decision.objects.filter(done_at=None).count()


def wait_no_longer() -> None:
    """As if every pause were over."""
    Decision.objects.update(retry_at=None)


@contextmanager
def scheduled_cluster(folder: Path, **kubernetes: Any) -> Iterator[ScheduledCluster]:
    """With one node of 8 cores, n1."""
    with FakeApiServer() as server:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(_KUBECONFIG.format(address=server.address))
        with kubernetes_mode(mode="schedule", kubeconfig=str(kubeconfig), **kubernetes):
            running = ScheduledCluster(server)
            running.has_node("n1")
            try:
                yield running
            finally:
                api_client._client.cache_clear()


_KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: fake
contexts: [{{name: fake, context: {{cluster: fake, user: somebody}}}}]
clusters: [{{name: fake, cluster: {{server: "{address}"}}}}]
users: [{{name: somebody, user: {{token: secret}}}}]
"""
