"""Affinity, anti-affinity and topology spread between pods during a session.

Pods are counted by domain, for each selector that somebody asks about, and the counts follow every
placement and eviction. So a question about all nodes is one look into an array for each rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scheduler.domain.codes import StatusCode
from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.pod_rules import HOSTNAME, PodSelector, PodTerm, Spread
from scheduler.domain.tables import OCCUPIES_NODE, Rows, status_mask
from scheduler.domain.workloads import Constraint, PodStatus
from scheduler.engine.state.constraints import selected_nodes, tolerated_nodes
from scheduler.engine.state.nodes import NodeScores

if TYPE_CHECKING:
    from scheduler.engine.session import Session
    from scheduler.engine.state.gang import Gang

NO_DOMAIN = -1
MOST_SEARCHES = 20_000
"""So many nodes are looked for in a session for pods whose victims would have to go. Each search is
about as dear as placing a pod, and large gangs with many possible victims ask for very many.
"""
_TAKES_A_PLACE = OCCUPIES_NODE | status_mask(PodStatus.PIPELINED)


class Topology(NamedTuple):
    """By node the number of its domain, NO_DOMAIN for none; and how many domains there are."""

    domain: Rows
    size: int


class DomainCounts:
    """How many pods count in each domain: `there`, and `staying`, without those that are leaving.

    Both have one more entry, always 0, for nodes of no domain.
    """

    __slots__ = ("domain", "size", "staying", "there")

    def __init__(self, topology: Topology) -> None:
        self.domain = topology.domain
        self.size = topology.size
        self.there: Amounts = np.zeros(topology.size + 1, dtype=np.int64)
        self.staying: Amounts = np.zeros(topology.size + 1, dtype=np.int64)

    def add_many(self, nodes: Rows, counts: Amounts, are_staying: Mask) -> None:
        domain = self.domain[nodes]
        known = domain >= 0
        np.add.at(self.there, domain[known], counts[known])
        known &= are_staying
        np.add.at(self.staying, domain[known], counts[known])

    def add(self, nodes: Sequence[int], sign: int) -> None:
        for node in nodes:
            domain = self.domain[node]
            if domain >= 0:
                self.there[domain] += sign
                self.staying[domain] += sign

    def leave(self, nodes: Sequence[int], sign: int) -> None:
        for node in nodes:
            domain = self.domain[node]
            if node >= 0 and domain >= 0:
                self.staying[domain] -= sign

    def by_domain(self, *, later: bool) -> Amounts:
        if later:
            return self.staying
        return self.there

    def by_node(self, *, later: bool) -> Amounts:
        """For each node the count in its domain; 0 where it has none."""
        found: Amounts = self.by_domain(later=later)[self.domain]
        return found


class Verdict(NamedTuple):
    """What one rule says of all nodes, and what is wrong with those that it excludes."""

    allowed: Mask
    words: str


@dataclass(slots=True)
class ClassRules:
    """The rules of one class of pods, with the counts that they look at."""

    affinity: list[tuple[PodTerm, DomainCounts]] = field(default_factory=list)
    matches_itself: bool = False
    anti_affinity: list[tuple[PodTerm, DomainCounts]] = field(default_factory=list)
    kept_away_by: list[DomainCounts] = field(default_factory=list)
    spread: list[tuple[Spread, DomainCounts, int]] = field(default_factory=list)

    def verdicts(self, *, later: bool) -> Iterator[Verdict]:
        if self.affinity:
            yield self._affinity_verdict(later)
        for term, counts in self.anti_affinity:
            allowed = counts.by_node(later=later) == 0
            yield Verdict(allowed, _anti_affinity_words(term))
        for counts in self.kept_away_by:
            allowed = counts.by_node(later=later) == 0
            yield Verdict(allowed, "run a pod whose anti-affinity keeps it away")
        for spread, counts, own in self.spread:
            yield Verdict(_within_skew(spread, counts, own), _spread_words(spread))

    def _affinity_verdict(self, later: bool) -> Verdict:
        """The first of pods that want to be together may go anywhere."""
        words = " and ".join(_affinity_words(term) for term, _ in self.affinity)
        has_domains: Mask = np.all([counts.domain >= 0 for _, counts in self.affinity], axis=0)
        is_first = not any(counts.by_domain(later=later).any() for _, counts in self.affinity)
        if is_first and self.matches_itself:
            return Verdict(has_domains, words)
        for _, counts in self.affinity:
            has_domains = has_domains & (counts.by_node(later=later) > 0)
        return Verdict(has_domains, words)


def _within_skew(spread: Spread, counts: DomainCounts, own: int) -> Mask:
    """Pods that are leaving do not count, as in Kubernetes."""
    staying = counts.staying[: counts.size]
    fewest = 0
    if counts.size >= spread.min_domains:
        fewest = int(staying.min(initial=np.iinfo(np.int64).max))
    skew = counts.staying[counts.domain] + own - fewest
    within: Mask = (counts.domain >= 0) & (skew <= spread.max_skew)
    return within


def _affinity_words(term: PodTerm) -> str:
    return f"run no pod of {term.selector.words}{_in_their(term.topology_key)}"


def _anti_affinity_words(term: PodTerm) -> str:
    return f"already run a pod of {term.selector.words}{_in_their(term.topology_key)}"


def _spread_words(spread: Spread) -> str:
    over = spread.topology_key.rpartition("/")[2]
    return (
        f"would spread the pods of {spread.selector.words} unevenly over {over} "
        f"(maxSkew {spread.max_skew})"
    )


def _in_their(topology_key: str) -> str:
    if topology_key == HOSTNAME:
        return ""
    return f" in their {topology_key.rpartition('/')[2]}"


class PodRuleCounts:
    """Made only where some pod has rules; see `of`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._classes = session.snapshot.classes
        self._nodes = session.snapshot.nodes
        self._topologies: dict[str, Topology] = {}
        self._counts: dict[tuple[Any, ...], DomainCounts] = {}
        self._counted: dict[int, list[DomainCounts]] = {}  # by class, where its pods count
        self._rules: dict[int, ClassRules] = {}
        self._anti_terms = self._all_anti_terms()
        self.bound = self._bound_classes()
        self.searches_left = MOST_SEARCHES

    @classmethod
    def of(cls, session: Session) -> PodRuleCounts | None:
        """None where no pod has rules, or where the policy leaves predicates out."""
        if session.plugin("predicates") is None:
            return None
        foreign = session.snapshot.nodes.foreign
        has_foreign_rules = any(pods.anti_affinity for row in foreign for pods in row)
        if not session.snapshot.classes.has_rules and not has_foreign_rules:
            return None
        return cls(session)

    # Who is bound by rules

    def _all_anti_terms(self) -> dict[PodTerm, Mask]:
        """Every anti-affinity of any pod, and which of our classes have it."""
        terms = dict(self._classes.anti_terms)
        for row in self._nodes.foreign:
            for pods in row:
                for term in pods.anti_affinity:
                    terms.setdefault(term, np.zeros(len(self._classes), dtype=np.bool_))
        return terms

    def _bound_classes(self) -> Mask:
        """Classes with rules of their own, and those that somebody wants to keep away."""
        rules = [bool(value.constraint.rules) for value in self._classes.values]
        bound = np.array(rules, dtype=np.bool_)
        for term in self._anti_terms:
            bound |= self._classes.matching(term.selector)
        return bound

    def bind(self, gang: Gang) -> bool:
        """Whether a pod of the gang that has no place is bound by rules."""
        pods = self._session.tasks.pending_pods(gang)
        return bool(self.bound[self._session.pod_classes[pods]].any())

    def want_company(self, gang: Gang) -> bool:
        """Whether a pod of the gang that has no place must run beside others."""
        pods = self._session.tasks.pending_pods(gang)
        return any(self._wants_company(pod) for pod in pods)

    def _wants_company(self, pod: int) -> bool:
        value = self._classes.values[self._session.pod_classes[pod]]
        return bool(value.constraint.rules.affinity)

    def company_last(self, pods: Sequence[int]) -> list[int]:
        """These pods in the same order, but those last that must run beside others."""
        return sorted(pods, key=self._wants_company)

    # Questions

    def allowed(self, pod_class: int, *, later: bool = False) -> Mask:
        """The nodes that the rules allow for a pod of this class, as things are now.

        With `later`, once those who are leaving are gone.
        """
        allowed = np.ones(len(self._nodes), dtype=np.bool_)
        for verdict in self._rules_of(pod_class).verdicts(later=later):
            allowed &= verdict.allowed
        return allowed

    def allow(self, pod_class: int, node: int, *, later: bool = False) -> bool:
        if not self.bound[pod_class]:
            return True
        return bool(self.allowed(pod_class, later=later)[node])

    def excluded(self, pod_class: int, among: Mask) -> tuple[tuple[str, int], ...]:
        """What is wrong with how many of these nodes, each counted once."""
        left = among.copy()
        found: list[tuple[str, int]] = []
        for allowed, words in self._rules_of(pod_class).verdicts(later=False):
            count = int((left & ~allowed).sum())
            if count:
                found.append((words, count))
            left &= allowed
        return tuple(found)

    # Changes

    def prepare(self, pod_classes: Iterable[int]) -> None:
        """Count what these classes look at, from the state of the session as it is now.

        To be called before changes that only these counts are told of.
        """
        for pod_class in pod_classes:
            self._rules_of(pod_class)

    def place(self, pod_class: int, nodes: Sequence[int], sign: int) -> None:
        """Pods of this class take these nodes (sign 1), or no longer do (-1)."""
        for counts in self._counted.get(pod_class, ()):
            counts.add(nodes, sign)

    def release(self, pod_class: int, nodes: Sequence[int], sign: int) -> None:
        """Pods of this class on these nodes are told to go (sign 1), or may stay again (-1)."""
        for counts in self._counted.get(pod_class, ()):
            counts.leave(nodes, sign)

    # What a class has to look at

    def _rules_of(self, pod_class: int) -> ClassRules:
        if pod_class not in self._rules:
            self._rules[pod_class] = self._new_rules(pod_class)
        return self._rules[pod_class]

    def _new_rules(self, pod_class: int) -> ClassRules:
        value = self._classes.values[pod_class]
        rules = value.constraint.rules
        found = ClassRules()
        # Kubernetes counts a pod for an affinity only if it matches all of its terms.
        together = tuple(term.selector.of(value.namespace) for term in rules.affinity)
        for term in rules.affinity:
            found.affinity.append((term, self._pods_of(together, term.topology_key)))
        found.matches_itself = all(self._matches(own, pod_class) for own in together)
        for term in rules.anti_affinity:
            selector = term.selector.of(value.namespace)
            found.anti_affinity.append((term, self._pods_of((selector,), term.topology_key)))
        for term in self._anti_terms:
            if self._matches(term.selector, pod_class):
                found.kept_away_by.append(self._holders_of(term))
        for spread in rules.spread:
            selector = spread.selector.of(value.namespace)
            counts = self._spread_pods(spread, selector, value.constraint)
            found.spread.append((spread, counts, int(self._matches(selector, pod_class))))
        return found

    def _matches(self, selector: PodSelector, pod_class: int) -> bool:
        return bool(self._classes.matching(selector)[pod_class])

    # Counting

    def _pods_of(self, selectors: tuple[PodSelector, ...], topology_key: str) -> DomainCounts:
        """Pods that all of these selectors match."""
        key = ("pods", selectors, topology_key)
        if key not in self._counts:
            topology = self._topology(topology_key)
            self._counts[key] = self._count(topology, self._matching_all(selectors), selectors)
        return self._counts[key]

    def _matching_all(self, selectors: tuple[PodSelector, ...]) -> Mask:
        matching = np.ones(len(self._classes), dtype=np.bool_)
        for selector in selectors:
            matching &= self._classes.matching(selector)
        return matching

    def _spread_pods(
        self, spread: Spread, selector: PodSelector, constraint: Constraint
    ) -> DomainCounts:
        """Pods of the selector on the nodes that count for this spread."""
        keys = tuple(item.topology_key for item in constraint.rules.spread)
        place = (constraint.node_selector, constraint.required, constraint.tolerations)
        key = ("spread", selector, spread.topology_key, spread.any_node, spread.minds_taints, keys)
        if (*key, place) not in self._counts:
            topology = self._topology(spread.topology_key)
            counting = self._nodes_that_count(spread, keys, constraint)
            domain = np.where(counting, topology.domain, NO_DOMAIN)
            self._counts[*key, place] = self._count(
                _renumbered(domain), self._classes.matching(selector), (selector,)
            )
        return self._counts[*key, place]

    def _nodes_that_count(
        self, spread: Spread, keys: tuple[str, ...], constraint: Constraint
    ) -> Mask:
        counting = np.ones(len(self._nodes), dtype=np.bool_)
        for key in keys:
            counting &= self._topology(key).domain >= 0
        if not spread.any_node:
            counting &= selected_nodes(constraint, self._nodes)
        if spread.minds_taints:
            counting &= tolerated_nodes(constraint, self._nodes)
        return counting

    def _holders_of(self, term: PodTerm) -> DomainCounts:
        """Pods that have this anti-affinity."""
        key = ("holders", term)
        if key not in self._counts:
            counts = self._count(self._topology(term.topology_key), self._anti_terms[term])
            for node, row in enumerate(self._nodes.foreign):
                for pods in row:
                    if term in pods.anti_affinity:
                        counts.there[counts.domain[node]] += pods.count
                        counts.staying[counts.domain[node]] += pods.count
            counts.there[NO_DOMAIN] = 0
            counts.staying[NO_DOMAIN] = 0
            self._counts[key] = counts
        return self._counts[key]

    def _count(
        self, topology: Topology, classes: Mask, selectors: tuple[PodSelector, ...] = ()
    ) -> DomainCounts:
        """Pods of these classes as things are now, and foreign pods of these selectors."""
        session = self._session
        counts = DomainCounts(topology)
        is_counted = _TAKES_A_PLACE[session.status] & (session.nodes >= 0)
        is_counted &= classes[session.pod_classes]
        pods = np.flatnonzero(is_counted)
        are_staying = session.status[pods] != StatusCode.RELEASING
        nodes = session.nodes[pods].astype(np.intp)
        counts.add_many(nodes, np.ones(len(pods), dtype=np.int64), are_staying)
        if selectors:
            self._count_foreign(counts, selectors)
        for pod_class in np.flatnonzero(classes).tolist():
            self._counted.setdefault(pod_class, []).append(counts)
        return counts

    def _count_foreign(self, counts: DomainCounts, selectors: tuple[PodSelector, ...]) -> None:
        kinds, kind, nodes, numbers = self._foreign
        if not kinds:
            return
        matching = np.zeros(len(kinds), dtype=np.bool_)
        for number, (namespace, labels) in enumerate(kinds):
            matching[number] = all(item.matches(namespace, labels) for item in selectors)
        chosen = matching[kind]
        is_staying = np.ones(int(chosen.sum()), dtype=np.bool_)
        counts.add_many(nodes[chosen], numbers[chosen], is_staying)

    @cached_property
    def _foreign(self) -> tuple[list[tuple[str, dict[str, str]]], Rows, Rows, Amounts]:
        """The kinds of foreign pods; then for each entry its kind, its node and its number."""
        known: dict[tuple[Any, ...], int] = {}
        entries: list[tuple[int, int, int]] = []
        for node, row in enumerate(self._nodes.foreign):
            for pods in row:
                kind = known.setdefault((pods.namespace, pods.labels), len(known))
                entries.append((kind, node, pods.count))
        columns = np.array(entries, dtype=np.int64).reshape(len(entries), 3)
        kinds = [(namespace, dict(labels)) for namespace, labels in known]
        return kinds, columns[:, 0], columns[:, 1], columns[:, 2]

    def _topology(self, key: str) -> Topology:
        if key not in self._topologies:
            numbers: dict[str, int] = {}
            domain: list[int] = []
            for name, labels in zip(self._nodes.names, self._nodes.labels, strict=True):
                value = labels.get(key)
                if value is None and key == HOSTNAME:
                    value = name  # every kubelet sets it; a simulated node may lack it
                if value is None:
                    domain.append(NO_DOMAIN)
                else:
                    domain.append(numbers.setdefault(value, len(numbers)))
            self._topologies[key] = Topology(np.array(domain, dtype=np.intp), len(numbers))
        return self._topologies[key]


def _renumbered(domain: Rows) -> Topology:
    """Only the domains that are left, numbered anew."""
    known = domain >= 0
    values, numbers = np.unique(domain[known], return_inverse=True)
    found = np.full(len(domain), NO_DOMAIN, dtype=np.intp)
    found[known] = numbers
    return Topology(found, len(values))


class RuledNodeScores(NodeScores):
    """All nodes against a class that is bound by rules: one pod at a time.

    Where each pod goes decides where the next one may go.
    """

    rules: PodRuleCounts

    def best_node(self) -> int:
        return self.best_node_among(self.suitable)

    def best_node_among(self, nodes: Mask) -> int:
        return super().best_node_among(nodes & self.rules.allowed(self.pod_class))

    def nodes_for(self, wanted: int) -> list[int]:
        return super().nodes_for(min(wanted, 1))

    def count_places(self, most: int) -> int:
        return len(self.nodes_for(most))

    def _suitable_later(self) -> Mask:
        return self.suitable & self.rules.allowed(self.pod_class, later=True)

    def excluded_with_room(self) -> tuple[tuple[str, int], ...]:
        """What the rules have against how many of the suitable nodes.

        Nothing, if they exclude none that has room now.
        """
        has_room = self.by_node > -np.inf
        if not (has_room & ~self.rules.allowed(self.pod_class)).any():
            return ()
        return self.rules.excluded(self.pod_class, self.suitable)
