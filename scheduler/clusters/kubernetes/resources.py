"""What is followed in a cluster, and where the API server has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object and its place in the API. `group` is "" for the core group.

    It is the same kind in every version that the API server serves.
    """

    group: str
    version: str = field(compare=False)
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """As it stands in an object: "v1", "batch.volcano.sh/v1alpha1"."""
        if not self.group:
            return self.version
        return f"{self.group}/{self.version}"

    @property
    def name(self) -> str:
        """As kubectl writes it: "pods", "queues.scheduling.volcano.sh"."""
        if not self.group:
            return self.plural
        return f"{self.plural}.{self.group}"

    def path(self, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """The path of one object, or of all of them if no name is given.

        Without a namespace it is that of all namespaces.
        """
        parts = [self.root]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    @property
    def root(self) -> str:
        """The path of its group and version."""
        if not self.group:
            return f"/api/{self.version}"
        return f"/apis/{self.group}/{self.version}"


WHO_AM_I: Final = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
PODS: Final = Resource("", "v1", "pods", "Pod", namespaced=True)
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PRIORITY_CLASSES: Final = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
DISRUPTION_BUDGETS: Final = Resource(
    "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", namespaced=True
)
VOLUMES: Final = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
CLAIMS: Final = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True
)
QUEUES: Final = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)
PODGROUPS: Final = Resource(
    "scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", namespaced=True
)
NATIVE_PODGROUPS: Final = Resource(
    "scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", namespaced=True
)
"""Kubernetes' own, of another group than Volcano's. 1.36 serves this version if it is asked to."""

NEWER_VERSIONS: Final = {NATIVE_PODGROUPS: ("v1beta1", "v1alpha3")}
"""Of kinds that change: the best first. What is read of them is the same in all versions."""

JOBS: Final = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job", namespaced=True)
COMMANDS: Final = Resource("bus.volcano.sh", "v1alpha1", "commands", "Command", namespaced=True)

FOLLOWED: Final = (
    NAMESPACES,
    PRIORITY_CLASSES,
    NODES,
    QUEUES,
    PODGROUPS,
    NATIVE_PODGROUPS,
    JOBS,
    VOLUMES,
    CLAIMS,
    PODS,
    COMMANDS,
    DISRUPTION_BUDGETS,
)
"""In the order in which a mirror can write them: what others refer to comes first."""
