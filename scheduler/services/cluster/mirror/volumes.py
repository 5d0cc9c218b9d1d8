"""Volumes of pods: where those that are bound can be reached, and which claims are not bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from scheduler.clusters.kubernetes.values import PersistentVolumeObject, PodObject
from scheduler.domain.pod_rules import REQUIRED
from scheduler.services.cluster.mirror.store import Store

Terms = Sequence[Mapping[str, Any]]


def affinity_with_volumes(pod: PodObject, store: Store) -> dict[str, Any]:
    """The affinity of the pod, with what its bound volumes require of the node."""
    affinity = dict(pod.affinity)
    required = [volume.node_terms for volume in _bound_volumes(pod, store) if volume.node_terms]
    if not required:
        return affinity
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    own = (node_affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()
    if own:
        required.insert(0, own)
    node_affinity[REQUIRED] = {"nodeSelectorTerms": _all_of(required)}
    affinity["nodeAffinity"] = node_affinity
    return affinity


def _all_of(required: Sequence[Terms]) -> list[dict[str, Any]]:
    """Alternatives that hold where each of these lists has an alternative that holds."""
    found: list[dict[str, Any]] = []
    for chosen in product(*required):
        term: dict[str, list[Any]] = {}
        for part in chosen:
            for field in ("matchExpressions", "matchFields"):
                if part.get(field):
                    term.setdefault(field, []).extend(part[field])
        # An empty alternative holds nowhere, with whatever it is joined.
        found.append(term if all(_asks_for_something(part) for part in chosen) else {})
    return found


def _asks_for_something(term: Mapping[str, Any]) -> bool:
    return bool(term.get("matchExpressions") or term.get("matchFields"))


def _bound_volumes(pod: PodObject, store: Store) -> list[PersistentVolumeObject]:
    found: list[PersistentVolumeObject] = []
    for name in pod.claims:
        claim = store.claim(f"{pod.meta.namespace}/{name}")
        if claim is None or not claim.is_bound:
            continue
        volume = store.volume(claim.volume)
        if volume is not None:
            found.append(volume)
    return found


def unbound_claims(pod: PodObject, store: Store) -> list[str]:
    """What is said of its claims that have no volume, so that nobody knows where it may run."""
    found: list[str] = []
    for name in pod.claims:
        claim = store.claim(f"{pod.meta.namespace}/{name}")
        if claim is None:
            found.append(f"the volume claim {name}, which is not there")
        elif not claim.is_bound or store.volume(claim.volume) is None:
            found.append(f"the volume claim {name}, which is not bound (WaitForFirstConsumer)")
    return found
