"""Raw objects of the API server to the values that the mirror writes.

An object that the server has accepted is taken as it is. What cannot be read all the same raises an
ordinary error, which the watch turns into `Unreadable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler.clusters.kubernetes import resources
from scheduler.clusters.kubernetes.read.cluster_objects import (
    read_disruption_budget,
    read_namespace,
    read_node,
    read_priority_class,
)
from scheduler.clusters.kubernetes.read.native_groups import read_native_podgroup
from scheduler.clusters.kubernetes.read.pods import read_pod
from scheduler.clusters.kubernetes.read.volumes import read_claim, read_volume
from scheduler.clusters.kubernetes.read.workloads import (
    read_command,
    read_job,
    read_podgroup,
    read_queue,
)
from scheduler.clusters.kubernetes.resources import Resource
from scheduler.clusters.kubernetes.values import ClusterObject

READERS: Final[Mapping[Resource, Callable[[Mapping[str, Any]], ClusterObject]]] = {
    resources.NAMESPACES: read_namespace,
    resources.PRIORITY_CLASSES: read_priority_class,
    resources.NODES: read_node,
    resources.QUEUES: read_queue,
    resources.PODGROUPS: read_podgroup,
    resources.NATIVE_PODGROUPS: read_native_podgroup,
    resources.JOBS: read_job,
    resources.VOLUMES: read_volume,
    resources.CLAIMS: read_claim,
    resources.PODS: read_pod,
    resources.COMMANDS: read_command,
    resources.DISRUPTION_BUDGETS: read_disruption_budget,
}


def read_object(resource: Resource, raw: Mapping[str, Any]) -> ClusterObject:
    """The value of one object."""
    return READERS[resource](raw)
