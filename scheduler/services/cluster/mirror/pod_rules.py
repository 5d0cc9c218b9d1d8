"""What rules between pods look at: labels of pods, and pods of others on nodes.

Labels are kept only while some rule looks at them. As long as no pod has rules, this costs nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from scheduler.clusters.kubernetes.values import PodObject
from scheduler.domain.pod_rules import (
    REQUIRED,
    Labels,
    PodSelector,
    read_rules,
    required_terms,
    watched_keys,
    watched_labels,
)

_ANTI_AFFINITY = "podAntiAffinity"


class RuleWatch:
    """The labels that rules look at: those of our pods, and the anti-affinity of all others.

    `keys` is None while there are no rules.
    """

    def __init__(self, scheduler_names: Collection[str]) -> None:
        self._scheduler_names = frozenset(scheduler_names)
        self._selectors: dict[str, tuple[PodSelector, ...]] = {}  # by the uid of the pod
        self.keys: frozenset[str] | None = None

    def follow(self, pods: Iterable[tuple[str, PodObject | None]]) -> bool:
        """These pods have changed or are gone. Whether others are looked at now.

        Labels that nobody looks at any more are kept until the last rule is gone.
        """
        has_changed = False
        for uid, pod in pods:
            selectors = self._selectors_of(pod)
            if selectors:
                has_changed = self._selectors.get(uid) != selectors or has_changed
                self._selectors[uid] = selectors
            elif self._selectors.pop(uid, None) is not None:
                has_changed = True
        if not has_changed:
            return False
        return self._look_at(
            watched_keys(item for items in self._selectors.values() for item in items)
        )

    def _look_at(self, keys: frozenset[str] | None) -> bool:
        if keys is not None and self.keys is not None and keys <= self.keys:
            return False
        if keys == self.keys:
            return False
        self.keys = keys
        return True

    def _selectors_of(self, pod: PodObject | None) -> tuple[PodSelector, ...]:
        if pod is None or pod.is_finished:
            return ()
        if not pod.affinity and not pod.spread:
            return ()
        rules = read_rules(pod.affinity, pod.spread)
        if pod.scheduler_name in self._scheduler_names:
            return tuple(rules.selectors)
        return tuple(term.selector for term in rules.anti_affinity)

    def labels_of(self, pod: PodObject) -> dict[str, str]:
        """Those of its labels that rules look at."""
        if self.keys is None:
            return {}
        return dict(watched_labels(pod.meta.labels, self.keys))


Kind = tuple[str, Labels, int]
"""Namespace, labels, and the number of its anti-affinity."""


class ForeignPodsOnNodes:
    """Pods of others by node, those of one kind counted together."""

    def __init__(self, watch: RuleWatch) -> None:
        self._watch = watch
        self._pods: dict[str, tuple[str, Kind]] = {}
        self._kinds: dict[str, Counter[Kind]] = defaultdict(Counter)
        self._affinities: list[dict[str, Any]] = [{}]

    def put(self, uid: str, pod: PodObject) -> set[str]:
        """This pod is on its node. The nodes that changed."""
        if self._watch.keys is None:
            return self.drop(uid)
        kind = self._kind_of(pod)
        if self._pods.get(uid) == (pod.node, kind):
            return set()
        touched = self.drop(uid)
        self._pods[uid] = (pod.node, kind)
        self._kinds[pod.node][kind] += 1
        return touched | {pod.node}

    def drop(self, uid: str) -> set[str]:
        """It is there no more. The nodes that changed."""
        held = self._pods.pop(uid, None)
        if held is None:
            return set()
        node, kind = held
        self._kinds[node][kind] -= 1
        return {node}

    def _kind_of(self, pod: PodObject) -> Kind:
        assert self._watch.keys is not None
        affinity: dict[str, Any] = {}
        terms = list(required_terms(pod.affinity, _ANTI_AFFINITY))
        if terms:
            affinity = {_ANTI_AFFINITY: {REQUIRED: terms}}
        if affinity not in self._affinities:
            self._affinities.append(affinity)
        number = self._affinities.index(affinity)
        return (pod.meta.namespace, watched_labels(pod.meta.labels, self._watch.keys), number)

    def on(self, node: str) -> list[dict[str, Any]]:
        """As the row of the node keeps them."""
        return list(self._entries(node))

    def _entries(self, node: str) -> Iterator[dict[str, Any]]:
        for kind, count in sorted(self._kinds.get(node, {}).items()):
            namespace, labels, affinity = kind
            if count:
                entry = {"namespace": namespace, "labels": dict(labels), "count": count}
                if affinity:
                    entry["affinity"] = self._affinities[affinity]
                yield entry
