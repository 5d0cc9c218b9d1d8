"""What the definition of queues in a cluster can hold, and where we put the rest.

Volcano's own definition knows neither `spec.state` nor the fields that only Fumarole has. The API
server drops such a field without a word, so it is stored as an annotation: `fumarole.io/state`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import Forbidden, NotFound
from scheduler.clusters.kubernetes.manifests import DEFINITIONS
from scheduler.clusters.kubernetes.resources import QUEUES
from scheduler.domain.lifecycle import REQUESTABLE_STATES

STATE: Final = "state"
_PREFIX: Final = "fumarole.io/"
ANNOTATIONS: Final = {
    STATE: _PREFIX + "state",
    "owner": _PREFIX + "owner",
    "description": _PREFIX + "description",
    "minRunSeconds": _PREFIX + "min-run-seconds",
    "maxWaitingJobs": _PREFIX + "max-waiting-jobs",
    "maxWaitingPods": _PREFIX + "max-waiting-pods",
    "maxWaitingJobsPerUser": _PREFIX + "max-waiting-jobs-per-user",
    "maxWaitingPodsPerUser": _PREFIX + "max-waiting-pods-per-user",
    "maxPodsPerJob": _PREFIX + "max-pods-per-job",
    "maxRunSeconds": _PREFIX + "max-run-seconds",
    "namespaces": _PREFIX + "namespaces",
}
"""By the key in `spec`: fields that Volcano's definition does not have."""

_TEXTS: Final = (STATE, "owner", "description", "namespaces")
"""The others are whole numbers."""

VOLCANO_FIELDS: Final = frozenset(
    {
        "affinity",
        "capability",
        "dequeueStrategy",
        "deserved",
        "extendClusters",
        "guarantee",
        "parent",
        "priority",
        "reclaimable",
        "type",
        "weight",
    }
)
"""What Volcano's own definition has in `spec`."""


def known_queue_fields(client: Client) -> frozenset[str]:
    """The keys of `spec`. Volcano's own where we may not read the definition."""
    try:
        definition = client.get(DEFINITIONS, QUEUES.name)
    except (NotFound, Forbidden):
        return VOLCANO_FIELDS
    found: set[str] = set()
    for version in definition["spec"]["versions"]:
        if version["name"] == QUEUES.version:
            schema = version["schema"]["openAPIV3Schema"]
            found.update(schema["properties"].get("spec", {}).get("properties", {}))
    return frozenset(found) or VOLCANO_FIELDS


def with_fields_from_annotations(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The object as its author meant it. A field of `spec` counts before its annotation."""
    metadata = raw.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if not any(name in annotations for name in ANNOTATIONS.values()):
        return dict(raw)
    spec = dict(raw.get("spec") or {})
    kept = dict(annotations)
    for key, name in ANNOTATIONS.items():
        text = kept.pop(name, "")
        if text and not spec.get(key) and _is_usable(key, text):
            spec[key] = value_of(key, text)
    return {**raw, "metadata": {**metadata, "annotations": kept}, "spec": spec}


def _is_usable(key: str, text: str) -> bool:
    return key != STATE or text in [state.value for state in REQUESTABLE_STATES]


def value_of(key: str, text: str) -> object:
    """What an annotation means as the field `key` of `spec`."""
    if key not in _TEXTS and text.isascii() and text.isdigit():
        return int(text)
    return text


def with_annotations_for_fields(
    manifest: Mapping[str, Any], known: Collection[str]
) -> dict[str, Any]:
    """The manifest as this cluster can hold it."""
    metadata = manifest["metadata"]
    annotations = dict(metadata.get("annotations") or {})
    spec = {}
    for key, value in manifest["spec"].items():
        if key in known:
            spec[key] = value
        elif isinstance(value, list):
            annotations[ANNOTATIONS[key]] = ",".join(value)
        elif value not in (None, ""):
            annotations[ANNOTATIONS[key]] = str(value)
    return {**manifest, "metadata": {**metadata, "annotations": annotations}, "spec": spec}
