"""A cluster and its mirror, compared: what the API server has, and what the tables should have for it."""

from __future__ import annotations

from typing import Any

from scheduler.domain.resources import NOTHING, Resources
from scheduler.models import Node, Pod, PodGroup, Queue

OUR_SCHEDULERS = ("fumarole", "volcano")
_ENDED = ("Succeeded", "Failed")
GROUP = "scheduling.k8s.io/group-name"
QUEUES_PATH = "/apis/scheduling.volcano.sh/v1beta1/queues"
PODGROUPS_PATH = "/apis/scheduling.volcano.sh/v1beta1/podgroups"


def differences(api: Any) -> list[str]:
    """Empty where both sides are equal. Written without the code that it checks."""
    found: list[str] = []
    for what, wanted, stored in (
        ("nodes", _nodes_of_cluster(api), _stored_nodes()),
        ("queues", _queues_of_cluster(api), _stored_queues()),
        ("pods", _pods_of_cluster(api), _stored_pods()),
    ):
        for name in sorted(wanted.keys() | stored.keys()):
            if wanted.get(name) != stored.get(name):
                found.append(f"{what} {name}: {wanted.get(name)} is {stored.get(name)}")
    return found


def _items(api: Any, path: str) -> list[dict[str, Any]]:
    return list(api.get(path)["items"])


def _nodes_of_cluster(api: Any) -> dict[str, Any]:
    rows = set(_pods_of_cluster(api))
    taken: dict[str, Resources] = {}
    for pod in _items(api, "/api/v1/pods"):
        node = pod["spec"].get("nodeName")
        if node and pod["status"]["phase"] not in _ENDED and pod["metadata"]["uid"] not in rows:
            amounts = {"pods": "1"}
            for container in pod["spec"]["containers"]:
                amounts |= container["resources"].get("requests", {})  # the tests' pods have one
            taken[node] = taken.get(node, NOTHING) + Resources.parse(amounts)
    found = {}
    for node in _items(api, "/api/v1/nodes"):
        name = node["metadata"]["name"]
        found[name] = (
            node["metadata"]["uid"],
            bool(node["spec"].get("unschedulable")),
            {key: node["metadata"].get("labels", {}).get(key) for key in ("zone",)},
            dict(taken.get(name, NOTHING)),
        )
    return found


def _stored_nodes() -> dict[str, Any]:
    return {
        node.name: (
            str(node.uid),
            node.unschedulable,
            {key: node.labels.get(key) for key in ("zone",)},
            dict(node.taken),
        )
        for node in Node.objects.all()
    }


def _queues_of_cluster(api: Any) -> dict[str, Any]:
    queues = {queue["metadata"]["name"]: queue for queue in _items(api, QUEUES_PATH)}
    found = {}
    for name, queue in queues.items():
        parent = queue["spec"].get("parent") or "root"
        is_missing = parent not in queues and parent not in ("root", "default")
        if is_missing or _is_in_a_circle(name, queues):
            parent = "root"
        found[name] = (queue["metadata"]["uid"], parent, queue["spec"].get("weight", 1))
    return found


def _is_in_a_circle(name: str, queues: dict[str, Any]) -> bool:
    """Whether it comes back to itself, going up as many steps as there are queues."""
    above = name
    for _ in queues:
        above = queues.get(above, {"spec": {}})["spec"].get("parent") or "root"
        if above == name:
            return True
    return False


def _stored_queues() -> dict[str, Any]:
    found = {}
    for queue in Queue.objects.select_related("parent").exclude(resource_version=1):
        found[queue.name] = (str(queue.uid), queue.parent_name or "root", queue.weight)
    return found


def _pods_of_cluster(api: Any) -> dict[str, Any]:
    """Those that have rows, with their podgroup, node and phase."""
    queues = {"root", "default"} | {queue["metadata"]["name"] for queue in _items(api, QUEUES_PATH)}
    groups = {
        (group["metadata"]["namespace"], group["metadata"]["name"])
        for group in _items(api, PODGROUPS_PATH)
        if group["spec"].get("queue", "default") in queues
    }
    nodes = {node["metadata"]["name"] for node in _items(api, "/api/v1/nodes")}
    found = {}
    for pod in _items(api, "/api/v1/pods"):
        spec = pod["spec"]
        meta = pod["metadata"]
        if spec["schedulerName"] not in OUR_SCHEDULERS:
            continue
        named = meta.get("annotations", {}).get(GROUP)
        if named and (meta["namespace"], named) not in groups:
            continue
        if meta.get("deletionTimestamp") and not spec.get("nodeName"):
            continue
        group = named or f"podgroup-{meta['uid']}"
        node = spec.get("nodeName")
        if node not in nodes:  # a pod may be bound to a node that does not exist
            node = None
        found[meta["uid"]] = (meta["name"], group, node, _phase(pod))
    return found


def _phase(pod: dict[str, Any]) -> str:
    phase = pod["status"]["phase"]
    if phase in _ENDED:
        return str(phase)
    if not pod["spec"].get("nodeName"):
        return "Pending"
    if pod["metadata"].get("deletionTimestamp"):
        return "Releasing"
    if phase == "Pending":
        return "Bound"
    return str(phase)


def _stored_pods() -> dict[str, Any]:
    found = {}
    for pod in Pod.objects.select_related("podgroup", "node"):
        node = pod.node.name if pod.node else None
        found[str(pod.uid)] = (pod.name, pod.podgroup.name, node, pod.phase)
    return found


def stored_podgroups() -> dict[str, str]:
    return dict(PodGroup.objects.values_list("name", "queue__name"))
