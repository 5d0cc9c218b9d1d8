"""Persistent volumes and claims: only where a volume can be reached from."""

from __future__ import annotations

from typing import Any, Final

from scheduler.clusters.kubernetes.read.common import Raw, read_meta, section
from scheduler.clusters.kubernetes.values import ClaimObject, PersistentVolumeObject

_ZONE_LABELS: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_BETWEEN_ZONES: Final = "__"


def read_volume(raw: Raw) -> PersistentVolumeObject:
    meta = read_meta(raw)
    required = section(section(section(raw, "spec"), "nodeAffinity"), "required")
    terms = tuple(required.get("nodeSelectorTerms") or ())
    zones = _zones(meta.labels)
    if zones:
        terms = tuple(_with(term, zones) for term in terms or ({},))
    return PersistentVolumeObject(meta, terms)


def _zones(labels: Raw) -> list[dict[str, Any]]:
    """Volumes made long ago have their zone in a label, several joined by underscores."""
    found: list[dict[str, Any]] = []
    for key in _ZONE_LABELS:
        if labels.get(key):
            values = labels[key].split(_BETWEEN_ZONES)
            found.append({"key": key, "operator": "In", "values": values})
    return found


def _with(term: Raw, expressions: list[dict[str, Any]]) -> dict[str, Any]:
    return {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *expressions]}


def read_claim(raw: Raw) -> ClaimObject:
    return ClaimObject(
        meta=read_meta(raw),
        volume=section(raw, "spec").get("volumeName", ""),
        phase=section(raw, "status").get("phase", ""),
    )
