"""Where pods may run, as they write it, and back: selectors, affinity, tolerations, spread."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from scheduler.admission.reading.pod import read_template
from scheduler.admission.reading.reader import Reader
from scheduler.domain.pod_rules import (
    NO_RULES,
    ForeignPods,
    PodRules,
    PodSelector,
    PodTerm,
    Spread,
    read_rules,
    unsupported_rules,
)
from scheduler.domain.requirements import Requirement
from scheduler.domain.workloads import Constraint, NodeTerm, PreferredTerm, Toleration
from scheduler.scenarios.fields import FieldError, Fields, shown

_SPREAD: Final = "topologySpreadConstraints"
_BETWEEN_PODS: Final = frozenset({"podAffinity", "podAntiAffinity"})
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def read_constraint(fields: Fields) -> Constraint:
    """From `nodeSelector`, `affinity`, `tolerations` and `topologySpreadConstraints` of a pod."""
    required, preferred = _read_affinity(fields)
    return Constraint(
        node_selector=tuple(sorted(fields.texts("nodeSelector").items())),
        required=required,
        preferred=preferred,
        tolerations=tuple(
            _read_toleration(toleration) for toleration in fields.items("tolerations")
        ),
        rules=_read_rules(fields),
        unsupported=tuple(str(name) for name, _ in fields.values("unsupported")),
    )


def _read_rules(fields: Fields) -> PodRules:
    """Rules between pods are read as a job's are, by admission."""
    affinity = fields.take("affinity")
    spread = fields.take(_SPREAD)
    if not spread and not (isinstance(affinity, dict) and _BETWEEN_PODS & affinity.keys()):
        return NO_RULES
    given = {"affinity": affinity, _SPREAD: spread}
    reader = Reader()
    template = read_template(reader, {"spec": given}, "")
    if reader.violations:
        raise FieldError(fields.at("affinity"), reader.violations[0].message)
    if unsupported := unsupported_rules(template.affinity):
        raise FieldError(fields.at("affinity"), f"{unsupported[0]} is not supported")
    return read_rules(template.affinity, template.spread)


def _read_affinity(fields: Fields) -> tuple[tuple[NodeTerm, ...], tuple[PreferredTerm, ...]]:
    """Of nodes; rules between pods are read elsewhere."""
    affinity = fields.mapping("affinity")
    if affinity is None:
        return (), ()
    affinity.ignore("podAffinity", "podAntiAffinity")
    node = affinity.mapping("nodeAffinity")
    affinity.finish()
    if node:
        return _read_node_affinity(node)
    return ((), ())


def _read_node_affinity(fields: Fields) -> tuple[tuple[NodeTerm, ...], tuple[PreferredTerm, ...]]:
    required = fields.mapping(_REQUIRED)
    if required:
        terms = tuple(_read_term(term) for term in required.items("nodeSelectorTerms"))
    else:
        terms = ()
    if required:
        required.finish()
    preferred = tuple(_read_preferred(term) for term in fields.items(_PREFERRED))
    fields.finish()
    return terms, preferred


def _read_preferred(fields: Fields) -> PreferredTerm:
    weight = fields.whole("weight", default=1, least=1, most=100)
    preference = fields.mapping("preference")
    fields.finish()
    if preference is None:
        raise fields.problem("preference", "must be given")
    return PreferredTerm(weight, _read_term(preference))


def _read_term(fields: Fields) -> NodeTerm:
    expressions = tuple(_read_requirement(entry) for entry in fields.items("matchExpressions"))
    on_fields = tuple(_read_requirement(entry) for entry in fields.items("matchFields"))
    fields.finish()
    return NodeTerm(expressions, on_fields)


def _read_requirement(fields: Fields) -> Requirement:
    operator = fields.choice("operator", _OPERATORS, "")
    values = tuple(_read_word(value, place) for value, place in fields.values("values"))
    requirement = Requirement(fields.name("key"), operator, values)
    if operator in ("Gt", "Lt") and not (len(values) == 1 and values[0].lstrip("-").isdecimal()):
        raise fields.problem("values", f"must be one whole number for {operator}")
    fields.finish()
    return requirement


def _read_word(value: object, place: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise FieldError(place, f"must be a text, not {shown(value)}")
    return str(value)


def _read_toleration(fields: Fields) -> Toleration:
    toleration = Toleration(
        key=fields.text("key"),
        operator=fields.choice("operator", ("Equal", "Exists", "Gt", "Lt"), "Equal"),
        value=fields.text("value"),
        effect=fields.choice("effect", ("", "NoSchedule", "PreferNoSchedule", "NoExecute"), ""),
    )
    fields.ignore("tolerationSeconds")
    fields.finish()
    return toleration


def write_constraint(constraint: Constraint) -> dict[str, Any]:
    """The keys of a pod that read back as this constraint."""
    written = {
        "nodeSelector": dict(constraint.node_selector),
        "affinity": _write_affinity(constraint),
        "tolerations": [_write_toleration(toleration) for toleration in constraint.tolerations],
        _SPREAD: [_write_spread(spread) for spread in constraint.rules.spread],
        "unsupported": list(constraint.unsupported),
    }
    return _without_empty(written)


def _write_affinity(constraint: Constraint) -> dict[str, Any]:
    rules = constraint.rules
    written = {
        "nodeAffinity": _write_node_affinity(constraint),
        "podAffinity": _write_pod_terms(rules.affinity),
        "podAntiAffinity": _write_pod_terms(rules.anti_affinity),
    }
    return _without_empty(written)


def _write_pod_terms(terms: Iterable[PodTerm]) -> dict[str, Any]:
    written = [_write_pod_term(term) for term in terms]
    if not written:
        return {}
    return {_REQUIRED: written}


def _write_pod_term(term: PodTerm) -> dict[str, Any]:
    selector = term.selector
    written: dict[str, Any] = {
        "labelSelector": _write_selector(selector),
        "topologyKey": term.topology_key,
    }
    if selector.namespaces:
        written["namespaces"] = list(selector.namespaces)
    if selector.everywhere:
        written["namespaceSelector"] = {}
    return written


def _write_selector(selector: PodSelector) -> dict[str, Any] | None:
    """None selects no pod, an empty one all of them."""
    if selector.selects_nothing:
        return None
    expressions = [_write_requirement(item) for item in selector.requirements]
    return _without_empty({"matchExpressions": expressions})


def _write_spread(spread: Spread) -> dict[str, Any]:
    return {
        "maxSkew": spread.max_skew,
        "minDomains": spread.min_domains,
        "topologyKey": spread.topology_key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _write_selector(spread.selector),
        "nodeAffinityPolicy": "Ignore" if spread.any_node else "Honor",
        "nodeTaintsPolicy": "Honor" if spread.minds_taints else "Ignore",
    }


def _write_node_affinity(constraint: Constraint) -> dict[str, Any]:
    affinity: dict[str, Any] = {}
    if constraint.required:
        affinity[_REQUIRED] = {
            "nodeSelectorTerms": [_write_term(term) for term in constraint.required]
        }
    if constraint.preferred:
        affinity[_PREFERRED] = []
        for preferred in constraint.preferred:
            term = _write_term(preferred.term)
            affinity[_PREFERRED].append({"weight": preferred.weight, "preference": term})
    return affinity


def _write_term(term: NodeTerm) -> dict[str, Any]:
    written = {"matchExpressions": term.expressions, "matchFields": term.fields}
    found: dict[str, Any] = {}
    for key, entries in written.items():
        if entries:
            found[key] = [_write_requirement(entry) for entry in entries]
    return found


def _write_requirement(requirement: Requirement) -> dict[str, Any]:
    written = {
        "key": requirement.key,
        "operator": requirement.operator,
        "values": list(requirement.values),
    }
    return _without_empty(written)


def _write_toleration(toleration: Toleration) -> dict[str, str]:
    written = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
    }
    return _without_empty(written)


def _without_empty(written: dict[str, Any]) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for key, value in written.items():
        if value:
            filled[key] = value
    return filled


# Pods of others on a node


def read_foreign_pods(fields: Fields) -> ForeignPods:
    namespace = fields.text("namespace")
    rules = _read_rules(fields)
    fields.ignore("affinity")
    found = ForeignPods(
        namespace=namespace,
        labels=tuple(sorted(fields.texts("labels").items())),
        count=fields.whole("count", default=1),
        anti_affinity=rules.anti_affinity,
    )
    fields.finish()
    return found


def write_foreign_pods(pods: ForeignPods) -> dict[str, Any]:
    written = {
        "namespace": pods.namespace,
        "labels": dict(pods.labels),
        "count": pods.count,
        "affinity": _without_empty({"podAntiAffinity": _write_pod_terms(pods.anti_affinity)}),
    }
    return _without_empty(written)
