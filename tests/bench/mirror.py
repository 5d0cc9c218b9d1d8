"""The mirror of a Kubernetes cluster: the processor's time for each event, from its JSON to the
committed row.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable
from time import perf_counter, process_time
from typing import Any

from tests.bench.database import a_database

Row = dict[str, object]

NODES = 1_000
PODS = 10_000
GANG = 20
BATCH = 200  # events that come within the moment in which the watcher collects


def mirror(scale: float, _repetitions: int) -> list[Row]:
    """1,000 nodes and 10,000 pods in gangs: read for the first time, then followed."""
    nodes = max(10, int(NODES * scale))
    pods = max(GANG, int(PODS * scale) // GANG * GANG)
    with a_database():
        bench = _Bench(nodes, pods)
        return [
            bench.first_look(),
            bench.again(),
            bench.follow("bound", _bound, bench.pods),
            bench.follow("running", _running, bench.pods),
            bench.follow("heartbeats of nodes that change nothing", _heard_again, bench.nodes),
            bench.follow("pods of others, deleted", None, bench.others),
            bench.delete_gangs(max(1, pods // GANG // 5)),
            bench.queues_that_come_and_go(20),
            bench.follow("ended and deleted", None, bench.pods),
        ]


class _Bench:
    """Objects as JSON, as an API server would send them, and a mirror that hears them."""

    def __init__(self, nodes: int, pods: int) -> None:
        self.nodes = [_node(number) for number in range(nodes)]
        self.groups = [_podgroup(number) for number in range(pods // GANG)]
        self.pods = [_pod(number, nodes) for number in range(pods)]
        self.others = [_foreign_pod(number, nodes) for number in range(nodes)]
        self._begin()

    def _begin(self) -> None:
        from scheduler.services.cluster.mirror import state
        from scheduler.services.cluster.mirror.flush import WATCHER
        from scheduler.services.cluster.mirror.store import Store
        from scheduler.services.cluster.mirror.writer import MirrorWriter
        from scheduler.services.sessions import lease

        state.begin(cluster_uid="bench", server="https://bench", version="v1.36", name="bench")
        self.held = lease.acquire("bench", 600, WATCHER)
        self.store = Store()
        self.writer = MirrorWriter(self.store, ("volcano",))

    def first_look(self) -> Row:
        return self._measured("first look", self._look, len(self._everything()))

    def again(self) -> Row:
        """After a restart: all is read and compared, nothing is written."""
        self._begin()
        return self._measured("look after a restart", self._look, len(self._everything()))

    def _everything(self) -> list[dict[str, Any]]:
        return [*self.nodes, *self.groups, *self.pods, *self.others]

    def _look(self) -> None:
        from scheduler.clusters.kubernetes.read import read_object
        from scheduler.clusters.kubernetes.resources import FOLLOWED
        from scheduler.clusters.kubernetes.watch_events import Listed

        texts = [json.dumps(each) for each in self._everything()]
        for resource in FOLLOWED:
            found = [json.loads(text) for text in texts if f'"kind": "{resource.kind}"' in text]
            values = tuple(read_object(resource, each) for each in found)
            self.store.take(Listed(resource, "1", values))
        self.writer.load()
        self._flush()

    def follow(
        self,
        what: str,
        change: Callable[[dict[str, Any]], dict[str, Any]] | None,
        objects: list[dict[str, Any]],
    ) -> Row:
        """Each object changes once, or goes where nothing is to be changed."""
        if change is not None:
            objects[:] = [change(each) for each in objects]
        lines = [json.dumps(each) for each in objects]
        is_gone = change is None
        return self._measured(what, lambda: self._hear_all(lines, is_gone), len(lines))

    def delete_gangs(self, gangs: int) -> Row:
        """One after the other: a podgroup and its pods in each transaction."""
        doomed = []
        for number in range(gangs):
            members = self.pods[number * GANG : (number + 1) * GANG]
            doomed.append([json.dumps(each) for each in (*members, self.groups[number])])
        del self.pods[: gangs * GANG]
        del self.groups[:gangs]

        def delete_all() -> None:
            for lines in doomed:
                self._hear_all(lines, is_gone=True)

        return self._measured(
            "pods and podgroups, a gang at a time", delete_all, gangs * (GANG + 1)
        )

    def queues_that_come_and_go(self, number: int) -> Row:
        lines = [json.dumps(_queue(each)) for each in range(number)]

        def come_and_go() -> None:
            for line in lines:
                self._hear_all([line], is_gone=False)
                self._hear_all([line], is_gone=True)

        return self._measured("queues that come and go, one by one", come_and_go, 2 * number)

    def _hear_all(self, lines: list[str], is_gone: bool) -> None:
        for some in _batches(lines):
            for line in some:
                self._hear(json.loads(line), is_gone)
            self._flush()

    def _hear(self, found: dict[str, Any], is_gone: bool) -> None:
        from scheduler.clusters.kubernetes.read import read_object
        from scheduler.clusters.kubernetes.resources import FOLLOWED
        from scheduler.clusters.kubernetes.watch_events import Changed, Removed

        resource = next(each for each in FOLLOWED if each.kind == found["kind"])
        value = read_object(resource, found)
        event = Removed if is_gone else Changed
        self.store.take(event(resource, found["metadata"]["resourceVersion"], value))

    def _flush(self) -> None:
        from scheduler.services.cluster.mirror.flush import flush

        assert self.held is not None
        flush(self.store, self.writer, self.held)

    def _measured(self, what: str, work: Callable[[], None], events: int) -> Row:
        wall = perf_counter()
        processor = process_time()
        work()
        spent = process_time() - processor
        return {
            "what": f"{events:,} {what}",
            "wallSeconds": round(perf_counter() - wall, 2),
            "cpuSeconds": round(spent, 2),
            "cpuMsAnEvent": round(spent * 1000 / events, 3),
        }


def _batches(lines: list[str]) -> Iterable[list[str]]:
    for start in range(0, len(lines), BATCH):
        yield lines[start : start + BATCH]


# Objects


def _metadata(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "uid": str(uuid.uuid4()),
        "resourceVersion": "1",
        "creationTimestamp": "2026-11-17T12:00:00Z",
        **more,
    }


def _node(number: int) -> dict[str, Any]:
    room = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-17T12:00:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(f"node-{number:04}", labels={"kubernetes.io/os": "linux"}),
        "spec": {},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def _queue(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": _metadata(f"queue-{number}"),
        "spec": {"weight": 1},
        "status": {"state": "Open"},
    }


def _podgroup(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": _metadata(f"gang-{number}", namespace="default"),
        "spec": {"minMember": GANG, "queue": "default"},
        "status": {"phase": "Inqueue"},
    }


def _pod(number: int, nodes: int) -> dict[str, Any]:
    gang = f"gang-{number // GANG}"
    found = _any_pod(f"{gang}-worker-{number % GANG}", "volcano", {"cpu": "4", "memory": "16Gi"})
    found["metadata"]["annotations"] = {
        "scheduling.k8s.io/group-name": gang,
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": str(number % GANG),
    }
    found["wanted"] = f"node-{number % nodes:04}"
    return found


def _foreign_pod(number: int, nodes: int) -> dict[str, Any]:
    found = _any_pod(f"proxy-{number}", "default-scheduler", {"cpu": "100m"})
    found["spec"]["nodeName"] = f"node-{number % nodes:04}"
    found["status"]["phase"] = "Running"
    return found


def _any_pod(name: str, scheduler: str, requests: dict[str, str]) -> dict[str, Any]:
    container = {"name": "main", "image": "example.com/image", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name, namespace="default"),
        "spec": {"schedulerName": scheduler, "containers": [container], "tolerations": []},
        "status": {"phase": "Pending"},
    }


def _bound(pod: dict[str, Any]) -> dict[str, Any]:
    return {**pod, "spec": {**pod["spec"], "nodeName": pod["wanted"]}}


def _running(pod: dict[str, Any]) -> dict[str, Any]:
    return {**pod, "status": {"phase": "Running", "startTime": "2026-11-17T12:01:00Z"}}


def _heard_again(node: dict[str, Any]) -> dict[str, Any]:
    return {**node, "metadata": {**node["metadata"], "resourceVersion": "2"}}
