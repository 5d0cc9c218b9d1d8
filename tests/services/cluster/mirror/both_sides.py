"""A cluster and its mirror, compared: what the API server has, and what the tables should have for
it.
"""

from __future__ import annotations

from typing import Any

from scheduler.domain.resources import NOTHING, Resources
from scheduler.models import (
    DisruptionBudget,
    Namespace,
    Node,
    Pod,
    PodGroup,
    PriorityClass,
    Queue,
)

OUR_SCHEDULERS = ("fumarole", "volcano")
_ENDED = ("Succeeded", "Failed")
GROUP = "scheduling.k8s.io/group-name"
QUEUES_PATH = "/apis/scheduling.volcano.sh/v1beta1/queues"
JOBS_PATH = "/apis/batch.volcano.sh/v1alpha1/jobs"
BUDGETS_PATH = "/apis/policy/v1/poddisruptionbudgets"
CLASSES_PATH = "/apis/scheduling.k8s.io/v1/priorityclasses"
PODGROUPS_PATH = "/apis/scheduling.volcano.sh/v1beta1/podgroups"


def differences(api: Any) -> list[str]:
    """Empty where both sides are equal. Written without the code that it checks."""
    found: list[str] = []
    for what, wanted, stored in (
        ("namespaces", _namespaces_of_cluster(api), _stored_namespaces()),
        ("classes", _classes_of_cluster(api), _stored_classes()),
        ("budgets", _budgets_of_cluster(api), _stored_budgets()),
        ("nodes", _nodes_of_cluster(api), _stored_nodes()),
        ("queues", _queues_of_cluster(api), _stored_queues()),
        ("podgroups", _podgroups_of_cluster(api), _stored_podgroups()),
        ("pods", _pods_of_cluster(api), _stored_pods()),
    ):
        for name in sorted(wanted.keys() | stored.keys()):
            if wanted.get(name) != stored.get(name):
                found.append(f"{what} {name}: {wanted.get(name)} is {stored.get(name)}")
    return found


def _items(api: Any, path: str) -> list[dict[str, Any]]:
    return list(api.get(path)["items"])


def _namespaces_of_cluster(api: Any) -> dict[str, Any]:
    return {item["metadata"]["name"]: True for item in _items(api, "/api/v1/namespaces")}


def _stored_namespaces() -> dict[str, Any]:
    return dict.fromkeys(Namespace.objects.values_list("name", flat=True), True)


def _classes_of_cluster(api: Any) -> dict[str, Any]:
    return {item["metadata"]["name"]: item["value"] for item in _items(api, CLASSES_PATH)}


def _stored_classes() -> dict[str, Any]:
    return dict(PriorityClass.objects.values_list("name", "value"))


def _budgets_of_cluster(api: Any) -> dict[str, Any]:
    found = {}
    for item in _items(api, BUDGETS_PATH):
        allowed = item.get("status", {}).get("disruptionsAllowed", 0)
        uid = item["metadata"]["uid"]
        found["/".join(_place(item))] = (uid, allowed, item["spec"].get("selector"))
    return found


def _stored_budgets() -> dict[str, Any]:
    found = {}
    for row in DisruptionBudget.objects.all():
        found[str(row)] = (str(row.uid), row.disruptions_allowed, row.selector)
    return found


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


def _known_groups(api: Any) -> dict[tuple[str, str], tuple[str, bool, str, str]]:
    """By namespace and name in the cluster: the name here, whether there is an object, job, queue.

    Only those with a queue. A job has one even if its podgroup is not there.
    """
    queues = {"root", "default"} | {queue["metadata"]["name"] for queue in _items(api, QUEUES_PATH)}
    found = {}
    for group in _items(api, PODGROUPS_PATH):
        meta = group["metadata"]
        queue = group["spec"].get("queue", "default")
        if queue in queues:
            found[meta["namespace"], meta["name"]] = (meta["name"], True, "", queue)
    objects = {_place(group) for group in _items(api, PODGROUPS_PATH)}
    owners = {_place(group): _owner_uid(group) for group in _items(api, PODGROUPS_PATH)}
    for job in _items(api, JOBS_PATH):
        meta = job["metadata"]
        own = (meta["namespace"], f"{meta['name']}-{meta['uid']}")
        is_foreign = own in objects and owners[own] != meta["uid"]
        is_there = own in found or (own not in objects and job["spec"]["queue"] in queues)
        if is_there and not is_foreign:
            name = own[1] if (meta["namespace"], meta["name"]) in found else meta["name"]
            queue = job["spec"]["queue"]
            if own in found:
                queue = found[own][3]
            found[own] = (name, own in objects, meta["uid"], queue)
    return found


def _place(item: dict[str, Any]) -> tuple[str, str]:
    return (item["metadata"]["namespace"], item["metadata"]["name"])


def _owner_uid(item: dict[str, Any]) -> str:
    owners = item["metadata"].get("ownerReferences", [])
    return str(owners[0]["uid"]) if owners else ""


def _podgroups_of_cluster(api: Any) -> dict[str, Any]:
    """Without those that are made here for pods that name none."""
    found = {}
    for (namespace, object_name), known in _known_groups(api).items():
        found[f"{namespace}/{object_name}"] = known
    return found


def _stored_podgroups() -> dict[str, Any]:
    found = {}
    made_here = PodGroup.objects.filter(object_name__startswith="podgroup-")
    for group in PodGroup.objects.select_related("job", "queue").exclude(pk__in=made_here):
        job = str(group.job.uid) if group.job else ""
        found[f"{group.namespace}/{group.object_name}"] = (
            group.name,
            group.object_uid is not None,
            job,
            _living_name(group.queue),
        )
    return found


def _living_name(queue: Queue) -> str:
    if queue.deleted_at is not None:
        return f"{queue.name}, which is deleted"
    return queue.name


def _pods_of_cluster(api: Any) -> dict[str, Any]:
    """Those that have rows, with their podgroup, node, phase and budgets."""
    groups = _known_groups(api)
    budgets = _items(api, BUDGETS_PATH)
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
        found[meta["uid"]] = (meta["name"], group, node, _phase(pod), _protectors(pod, budgets))
    return found


def _protectors(pod: dict[str, Any], budgets: list[dict[str, Any]]) -> str:
    """Names of budgets. Those of the tests have only labels in their selectors."""
    names = []
    labels = pod["metadata"].get("labels", {})
    for budget in budgets:
        wanted = budget["spec"]["selector"].get("matchLabels", {})
        is_near = budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
        if is_near and wanted.items() <= labels.items():
            names.append(budget["metadata"]["name"])
    return ",".join(sorted(names)[:8])


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
        found[str(pod.uid)] = (pod.name, pod.podgroup.object_name, node, pod.phase, pod.budgets)
    return found


def stored_podgroups() -> dict[str, str]:
    return dict(PodGroup.objects.values_list("name", "queue__name"))
