"""A fake API server with queues in it, and the mirror of them: for changes that are sent to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scheduler.clusters.kubernetes.queue_definition import VOLCANO_FIELDS
from scheduler.clusters.kubernetes.read.workloads import read_queue
from scheduler.models import Mirror
from scheduler.services.cluster import api_server
from tests.control_plane.fake.resources import resource_of
from tests.control_plane.fake.server import FakeApiServer
from tests.mirrored import MadeUpCluster, kubernetes_mode

QUEUES = resource_of("scheduling.volcano.sh/v1beta1", "queues")
COMMANDS = resource_of("bus.volcano.sh/v1alpha1", "commands")


class FakeCluster:
    """A fake API server with queues in it, and the mirror of them."""

    def __init__(self, server: FakeApiServer) -> None:
        self.server = server
        self.mirror = MadeUpCluster()

    def defines(self, *fields: str, by: str = Mirror.FUMAROLE) -> None:
        known = sorted({*VOLCANO_FIELDS, *fields})
        Mirror.objects.update(queue_fields=known, queue_controller=by)
        follows_status = by == Mirror.VOLCANO
        self.mirror.begin_anew(follows_status=follows_status)

    def has(self, name: str, status: dict[str, Any] | None = None, **spec: Any) -> None:
        self.server.store.create(QUEUES, "", {"metadata": {"name": name}, "spec": spec})
        if status:
            self.changes(name, lambda queue: {**queue, "status": status})

    def changes(self, name: str, how: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Somebody else does, and the mirror has not heard of it."""
        self.server.store.change(QUEUES, "", name, how)

    def tells(self) -> None:
        """The mirror hears everything."""
        found, _ = self.server.store.list(QUEUES, "")
        self.mirror.lists(*(read_queue(each) for each in found))

    def queue(self, name: str) -> dict[str, Any]:
        return self.server.store.get(QUEUES, "", name)

    def writes(self) -> list[str]:
        return [method for method, _ in self.server.requests if method != "GET"]


@contextmanager
def fake_cluster(folder: Path) -> Iterator[FakeCluster]:
    """With one queue, research, of weight 3, and a definition that knows `spec.state`."""
    with FakeApiServer() as server:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(_KUBECONFIG.format(address=server.address))
        with kubernetes_mode(kubeconfig=str(kubeconfig)):
            running = FakeCluster(server)
            running.has("research", weight=3, parent="root")
            running.defines("state")
            running.tells()
            try:
                yield running
            finally:
                api_server._client.cache_clear()


_KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: fake
contexts: [{{name: fake, context: {{cluster: fake, user: somebody}}}}]
clusters: [{{name: fake, cluster: {{server: "{address}"}}}}]
users: [{{name: somebody, user: {{token: secret}}}}]
"""
