"""What the API server has: which resources it serves, and which cluster it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import NotFound
from scheduler.clusters.kubernetes.resources import (
    FOLLOWED,
    NAMESPACES,
    NEWER_VERSIONS,
    PODS,
    Resource,
)

_VOLCANO_CONTROLLERS = "app=volcano-controller"
"""The label of their pods, however Volcano was installed."""
_VOLCANO_SCHEDULER: Final = "app=volcano-scheduler"
_NAME_OPTION: Final = "--scheduler-name"
_USUAL_NAME: Final = "volcano"


def served_resources(client: Client) -> tuple[Resource, ...]:
    """Those of `FOLLOWED` that are served, in the same order, each in its best version.

    Volcano's may be missing, and Kubernetes' own podgroups.
    """
    served: dict[str, set[str]] = {}
    found: list[Resource] = []
    for wanted in FOLLOWED:
        resource = _best_version(client, wanted, served)
        if resource is not None:
            found.append(resource)
    return tuple(found)


def served_version(client: Client, resource: Resource) -> Resource:
    """The same, in the version that is served; as it was given if none is."""
    return _best_version(client, resource, {}) or resource


def _best_version(
    client: Client, resource: Resource, served: dict[str, set[str]]
) -> Resource | None:
    for version in _versions(resource):
        if version.api_version not in served:
            served[version.api_version] = _plurals(client, version)
        if version.plural in served[version.api_version]:
            return version
    return None


def _versions(resource: Resource) -> Iterator[Resource]:
    for version in NEWER_VERSIONS.get(resource, ()):
        yield replace(resource, version=version)
    yield resource


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
