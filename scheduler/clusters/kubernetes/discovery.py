"""What the API server has: which resources it serves, and which cluster it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import NotFound
from scheduler.clusters.kubernetes.resources import FOLLOWED, NAMESPACES, PODS, Resource

_VOLCANO_CONTROLLERS = "app=volcano-controller"
"""The label of their pods, however Volcano was installed."""
_VOLCANO_SCHEDULER: Final = "app=volcano-scheduler"
_NAME_OPTION: Final = "--scheduler-name"
_USUAL_NAME: Final = "volcano"


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
    return bool(_running_pods(client, _VOLCANO_CONTROLLERS))


def names_served_by_volcano(client: Client) -> frozenset[str]:
    """The `schedulerName`s whose pods Volcano's scheduler places; none where it does not run."""
    names: set[str] = set()
    for pod in _running_pods(client, _VOLCANO_SCHEDULER):
        names.update(_names_asked_for(pod) or [_USUAL_NAME])
    return frozenset(names)


def _running_pods(client: Client, label: str) -> list[dict[str, Any]]:
    return client.list(PODS, label_selector=label, field_selector="status.phase=Running")


def _names_asked_for(pod: Mapping[str, Any]) -> list[str]:
    """As the options of its containers say: "--scheduler-name=NAME", perhaps several times."""
    found: list[str] = []
    for container in pod["spec"]["containers"]:
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        found += _values_of_option(" ".join(words).split())
    return found


def _values_of_option(words: list[str]) -> Iterator[str]:
    for number, word in enumerate(words):
        if word.startswith(f"{_NAME_OPTION}="):
            yield word.removeprefix(f"{_NAME_OPTION}=")
        elif word == _NAME_OPTION and number + 1 < len(words):
            yield words[number + 1]
