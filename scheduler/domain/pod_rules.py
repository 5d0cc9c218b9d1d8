"""Rules between pods: affinity, anti-affinity and topology spread.

Only what must hold is here. Preferences (`preferredDuringScheduling...`, `ScheduleAnyway`) are left
out, and what cannot be honoured is named by `unsupported_rules`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from scheduler.domain.requirements import Requirement, read_requirement

Labels = tuple[tuple[str, str], ...]
"""Sorted by key, so that the same labels are the same value."""

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
HOSTNAME: Final = "kubernetes.io/hostname"
_TERM_KINDS: Final = ("podAffinity", "podAntiAffinity")
_NOTHING: Final = (Requirement("", "In"),)


@dataclass(frozen=True, slots=True, order=True)
class PodSelector:
    """Pods of these namespaces whose labels hold all requirements.

    No namespaces means the pod's own. `everywhere` means all namespaces.
    """

    requirements: tuple[Requirement, ...] = ()
    namespaces: tuple[str, ...] = ()
    everywhere: bool = False

    def of(self, namespace: str) -> PodSelector:
        """As a pod of this namespace means it."""
        if self.namespaces or self.everywhere:
            return self
        return replace(self, namespaces=(namespace,))

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        if not self.everywhere and namespace not in self.namespaces:
            return False
        return all(item.holds(labels.get(item.key)) for item in self.requirements)

    @property
    def selects_nothing(self) -> bool:
        return self.requirements == _NOTHING

    @property
    def keys(self) -> set[str]:
        return {item.key for item in self.requirements if item.key}

    @property
    def words(self) -> str:
        """For people: "app=db, tier in (a, b)"."""
        if not self.requirements:
            return "any label"
        return ", ".join(_requirement_words(item) for item in self.requirements)


def _requirement_words(item: Requirement) -> str:
    if item.operator == "In" and len(item.values) == 1:
        return f"{item.key}={item.values[0]}"
    if item.operator == "Exists":
        return item.key
    if item.operator == "DoesNotExist":
        return f"!{item.key}"
    word = {"In": "in", "NotIn": "not in"}.get(item.operator, item.operator)
    return f"{item.key} {word} ({', '.join(item.values)})"


@dataclass(frozen=True, slots=True, order=True)
class PodTerm:
    """Nodes with the same value of the label `topology_key` are one domain.

    An affinity wants a pod of the selector in its domain, an anti-affinity wants none.
    """

    selector: PodSelector
    topology_key: str


@dataclass(frozen=True, slots=True, order=True)
class Spread:
    """No domain may have `max_skew` pods more than the one with the fewest.

    With fewer domains than `min_domains` the fewest are none. The nodes that count are those that
    the pod's node selector and node affinity allow, unless `any_node`, and whose taints it
    tolerates, if `minds_taints`.
    """

    selector: PodSelector
    topology_key: str
    max_skew: int = 1
    min_domains: int = 1
    any_node: bool = False
    minds_taints: bool = False


@dataclass(frozen=True, slots=True)
class PodRules:
    """All of them must hold when the pod is placed. Later changes are ignored."""

    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[Spread, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.affinity or self.anti_affinity or self.spread)

    @property
    def selectors(self) -> Iterator[PodSelector]:
        for term in (*self.affinity, *self.anti_affinity):
            yield term.selector
        for spread in self.spread:
            yield spread.selector


NO_RULES: Final = PodRules()


@dataclass(frozen=True, slots=True)
class ForeignPods:
    """Alike pods of others on one node: they take room, and count for the rules of our pods.

    Their own anti-affinity keeps ours away.
    """

    namespace: str
    labels: Labels = ()
    count: int = 1
    anti_affinity: tuple[PodTerm, ...] = ()


def watched_keys(selectors: Iterable[PodSelector]) -> frozenset[str] | None:
    """The labels that any of these selectors look at; None where there is no selector at all."""
    keys: set[str] = set()
    is_watched = False
    for selector in selectors:
        is_watched = True
        keys |= selector.keys
    if not is_watched:
        return None
    return frozenset(keys)


def watched_labels(labels: Mapping[str, str], keys: frozenset[str]) -> Labels:
    """Those of these labels that somebody looks at."""
    return tuple(sorted((key, value) for key, value in labels.items() if key in keys))


# Reading


def read_rules(affinity: Mapping[str, Any], spread: Sequence[Mapping[str, Any]]) -> PodRules:
    """From the shapes that Kubernetes gives them."""
    found = PodRules(
        affinity=_read_terms(affinity, "podAffinity"),
        anti_affinity=_read_terms(affinity, "podAntiAffinity"),
        spread=tuple(_read_spread(item) for item in required_spread(spread)),
    )
    return found or NO_RULES


def read_anti_affinity(affinity: Mapping[str, Any], namespace: str) -> tuple[PodTerm, ...]:
    """The anti-affinity of a pod of this namespace."""
    terms = _read_terms(affinity, "podAntiAffinity")
    return tuple(PodTerm(term.selector.of(namespace), term.topology_key) for term in terms)


def required_terms(affinity: Mapping[str, Any], kind: str) -> Sequence[Mapping[str, Any]]:
    return (affinity.get(kind) or {}).get(REQUIRED) or ()


def required_spread(spread: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Without what is only a preference."""
    return [item for item in spread if item.get("whenUnsatisfiable") == "DoNotSchedule"]


def _read_terms(affinity: Mapping[str, Any], kind: str) -> tuple[PodTerm, ...]:
    found: list[PodTerm] = []
    for term in required_terms(affinity, kind):
        selector = PodSelector(
            _read_selector(term.get("labelSelector")),
            tuple(sorted(term.get("namespaces") or ())),
            everywhere=term.get("namespaceSelector") == {},
        )
        found.append(PodTerm(selector, term["topologyKey"]))
    return tuple(found)


def _read_spread(item: Mapping[str, Any]) -> Spread:
    requirements = _read_selector(item.get("labelSelector"))
    return Spread(
        # Kubernetes counts no pod for a selector that selects all.
        selector=PodSelector(requirements or _NOTHING),
        topology_key=item["topologyKey"],
        max_skew=item.get("maxSkew") or 1,
        min_domains=item.get("minDomains") or 1,
        any_node=item.get("nodeAffinityPolicy") == "Ignore",
        minds_taints=item.get("nodeTaintsPolicy") == "Honor",
    )


def _read_selector(given: Mapping[str, Any] | None) -> tuple[Requirement, ...]:
    """An empty one selects all pods; one that is not given selects none."""
    if given is None:
        return _NOTHING
    found = [
        Requirement(key, "In", (str(value),))
        for key, value in (given.get("matchLabels") or {}).items()
    ]
    found.extend(read_requirement(item) for item in given.get("matchExpressions") or ())
    return tuple(sorted(set(found)))


# Labels of the pod itself


def with_own_labels(rule: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """A term or a spread, with `matchLabelKeys` and `mismatchLabelKeys` as plain expressions.

    These keys stand for the value that the pod itself has. A label that it does not have is left
    out, as Kubernetes does it.
    """
    changed = dict(rule)
    own: list[dict[str, Any]] = []
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in changed.pop(field, None) or ():
            if key in labels:
                own.append({"key": key, "operator": operator, "values": [labels[key]]})
    if own and changed.get("labelSelector") is not None:
        selector = dict(changed["labelSelector"])
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *own]
        changed["labelSelector"] = selector
    return changed


def affinity_of(affinity: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """The affinity of a pod with these labels, its own labels written into the terms."""
    changed = dict(affinity)
    for kind in _TERM_KINDS:
        terms = required_terms(affinity, kind)
        if any("matchLabelKeys" in term or "mismatchLabelKeys" in term for term in terms):
            changed[kind] = {
                **affinity[kind],
                REQUIRED: [with_own_labels(term, labels) for term in terms],
            }
    return changed


def spread_of(
    spread: Iterable[Mapping[str, Any]], labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The same for the spread that must hold."""
    return [with_own_labels(item, labels) for item in required_spread(spread)]


# What cannot be honoured


def unsupported_rules(affinity: Mapping[str, Any]) -> list[str]:
    """What is asked for between pods and no session can honour, by the name of the field."""
    for kind in _TERM_KINDS:
        for term in required_terms(affinity, kind):
            if term.get("namespaceSelector"):
                return [f"namespaceSelector in {kind}"]
    return []
