"""What a pod takes on its node, counted as Kubernetes counts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.domain.resources import NOTHING, Resources, total

_OF_WHOLE_PODS: Final = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class InitContainer:
    """`stays` marks a sidecar (restartPolicy Always): it runs on beside the containers."""

    requests: Resources
    stays: bool = False


def pod_requests(
    containers: Sequence[Resources],
    init_containers: Sequence[InitContainer] = (),
    *,
    of_pod: Resources = NOTHING,
    limits_of_pod: Resources = NOTHING,
    overhead: Resources = NOTHING,
) -> Resources:
    """The most that it takes at any time of its life.

    Init containers run one after the other, each beside the sidecars that were started before it.
    Then all containers run, beside all sidecars.

    `of_pod` and `limits_of_pod` are the requests and limits of the pod as a whole. Its request for
    a resource replaces that of the containers, and its limit is the request where nobody else asks
    for the resource.
    """
    needed = _largest(_stages(containers, init_containers))
    for name, amount in limits_of_pod.items():
        if _is_for_whole_pods(name):
            needed.setdefault(name, amount)
    for name, amount in of_pod.items():
        if _is_for_whole_pods(name):
            needed[name] = amount
    for name, amount in overhead.items():
        needed[name] = needed.get(name, 0) + amount
    return Resources(needed)


def _stages(
    containers: Sequence[Resources], init_containers: Sequence[InitContainer]
) -> list[Resources]:
    """What it takes while each init container runs, and after them."""
    if not init_containers:
        return [total(containers)]
    stages: list[Resources] = []
    sidecars = NOTHING
    for container in init_containers:
        running = sidecars + container.requests
        if container.stays:
            sidecars = running
        stages.append(running)
    stages.append(total([*containers, sidecars]))
    return stages


def _largest(stages: Sequence[Resources]) -> dict[str, int]:
    most: dict[str, int] = {}
    for stage in stages:
        for name, amount in stage.items():
            most[name] = max(amount, most.get(name, amount))
    return most


def _is_for_whole_pods(name: str) -> bool:
    return name in _OF_WHOLE_PODS or name.startswith("hugepages-")
