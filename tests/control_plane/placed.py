"""What an API server's own objects say of pods that were placed: never a look into our database."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

GROUP = "scheduling.k8s.io/group-name"
_ENDED = ("Succeeded", "Failed")
_THOUSANDTHS = {
    "m": 1,
    "": 1000,
    "Ki": 1000 * 1024,
    "Mi": 1000 * 1024**2,
    "Gi": 1000 * 1024**3,
}
"""By the unit of a quantity: whole numbers, so that sums are exact."""

Object = Mapping[str, Any]


def overcommitted(nodes: Iterable[Object], pods: Iterable[Object]) -> list[str]:
    """A sentence for each node that holds more than it has."""
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        node = node_of(pod)
        if node and pod["status"].get("phase") not in _ENDED:
            used[node].update(_requests(pod))
    problems = []
    for node in nodes:
        name = node["metadata"]["name"]
        room = node["status"]["allocatable"]
        for resource, amount in used[name].items():
            if amount > _amount(room.get(resource, "0")):
                has = room.get(resource, "0")
                problems.append(f"{name} has {has} {resource} and holds {amount / 1000:g}")
    return problems


def broken_gangs(pods: Iterable[Object], least: Mapping[str, int]) -> list[str]:
    """A sentence for each gang that has some of its pods on nodes, and fewer than it needs.

    `least` says how many each needs.
    """
    placed: Counter[str] = Counter()
    for pod in pods:
        if node_of(pod):
            placed[pod["metadata"]["annotations"].get(GROUP, "")] += 1
    problems = []
    for gang, needed in least.items():
        if 0 < placed[gang] < needed:
            problems.append(f"{gang} needs {needed} pods and has {placed[gang]}")
    return problems


def node_of(pod: Object) -> str:
    return str(pod["spec"].get("nodeName", ""))


def _requests(pod: Object) -> Counter[str]:
    """Of pods of plain containers, as the tests make them."""
    found: Counter[str] = Counter({"pods": 1000})
    for container in pod["spec"]["containers"]:
        for resource, amount in container.get("resources", {}).get("requests", {}).items():
            found[resource] += _amount(amount)
    return found


def _amount(text: str) -> int:
    """In thousandths."""
    number = text.rstrip("mKMGi")
    return int(number) * _THOUSANDTHS[text[len(number) :]]
