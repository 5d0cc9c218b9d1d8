"""What the API server has: which resources it serves, and which cluster it is."""

from __future__ import annotations

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import NotFound
from scheduler.clusters.kubernetes.resources import FOLLOWED, NAMESPACES, PODS, Resource

_VOLCANO_CONTROLLERS = "app=volcano-controller"
"""The label of their pods, however Volcano was installed."""


def served_resources(client: Client) -> tuple[Resource, ...]:
    """Those of `FOLLOWED` that are served, in the same order. Volcano's may be missing."""
    served: dict[str, set[str]] = {}
    found: list[Resource] = []
    for resource in FOLLOWED:
        group = resource.api_version
        if group not in served:
            served[group] = _plurals(client, resource)
        if resource.plural in served[group]:
            found.append(resource)
    return tuple(found)


def _plurals(client: Client, resource: Resource) -> set[str]:
    """All resources of the same group and version, by their plural."""
    try:
        answer = client.get_path(resource.root)
    except NotFound:
        return set()
    return {item["name"] for item in answer.get("resources") or ()}


def cluster_uid(client: Client) -> str:
    """Which cluster it is: the uid of kube-system, which lives as long as the cluster.

    Versions of another cluster mean nothing here.
    """
    return str(client.get(NAMESPACES, "kube-system")["metadata"]["uid"])


def server_version(client: Client) -> str:
    """Such as "v1.36.3"."""
    return str(client.get_path("/version").get("gitVersion", ""))


def volcano_controllers_run(client: Client) -> bool:
    """Whether Volcano's controller manager is at work: it carries out commands to queues."""
    found = client.list(
        PODS, label_selector=_VOLCANO_CONTROLLERS, field_selector="status.phase=Running"
    )
    return bool(found)
