"""The kinds of objects that the fake API server knows, and how their paths are read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of objects."""

    group: str  # empty for the core
    version: str
    plural: str
    kind: str
    is_namespaced: bool
    has_status: bool = True  # status is changed by a path of its own

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """As error messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


RESOURCES = (
    Resource("", "v1", "nodes", "Node", is_namespaced=False),
    Resource("", "v1", "namespaces", "Namespace", is_namespaced=False),
    Resource("", "v1", "pods", "Pod", is_namespaced=True),
    Resource("", "v1", "events", "Event", is_namespaced=True, has_status=False),
    Resource("events.k8s.io", "v1", "events", "Event", is_namespaced=True, has_status=False),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", is_namespaced=True),
    Resource(
        "scheduling.k8s.io",
        "v1",
        "priorityclasses",
        "PriorityClass",
        is_namespaced=False,
        has_status=False,
    ),
    # As Kubernetes 1.37 has it. The real server of the tests is 1.36.
    Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", is_namespaced=True),
    Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", is_namespaced=False),
    Resource(
        "scheduling.volcano.sh",
        "v1beta1",
        "podgroups",
        "PodGroup",
        is_namespaced=True,
        has_status=False,
    ),
    Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job", is_namespaced=True),
    Resource(
        "bus.volcano.sh", "v1alpha1", "commands", "Command", is_namespaced=True, has_status=False
    ),
    Resource("coordination.k8s.io", "v1", "leases", "Lease", is_namespaced=True, has_status=False),
)

_BY_PATH = {(each.api_version, each.plural): each for each in RESOURCES}


def resource_of(api_version: str, plural: str) -> Resource:
    return _BY_PATH[api_version, plural]


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names. Without a name it is the list."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def target_of(path: str) -> Target | None:
    """None for a path of no known resource."""
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        return _read("/".join(parts[1:2]), parts[2:])
    if parts[0] == "apis":
        return _read("/".join(parts[1:3]), parts[3:])
    return None


def _read(api_version: str, parts: list[str]) -> Target | None:
    namespace = ""
    if parts[0:1] == ["namespaces"] and len(parts) > 2:
        namespace = parts[1]
        parts = parts[2:]
    plural, name, subresource = [*parts, "", "", ""][:3]
    resource = _BY_PATH.get((api_version, plural))
    if resource is None:
        return None
    return Target(resource, namespace, name, subresource)
