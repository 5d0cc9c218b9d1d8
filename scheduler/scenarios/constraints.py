"""Node selectors, node affinity and tolerations as pods write them, and back."""

from __future__ import annotations

from typing import Any, Final

from scheduler.domain.requirements import Requirement
from scheduler.domain.workloads import Constraint, NodeTerm, PreferredTerm, Toleration
from scheduler.scenarios.fields import FieldError, Fields, shown

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def read_constraint(fields: Fields) -> Constraint:
    """From `nodeSelector`, `affinity` and `tolerations` of a pod."""
    required, preferred = _read_affinity(fields)
    return Constraint(
        node_selector=tuple(sorted(fields.texts("nodeSelector").items())),
        required=required,
        preferred=preferred,
        tolerations=tuple(
            _read_toleration(toleration) for toleration in fields.items("tolerations")
        ),
    )


def _read_affinity(fields: Fields) -> tuple[tuple[NodeTerm, ...], tuple[PreferredTerm, ...]]:
    """Affinity between pods is not part of scheduling here.

    It may stand in a file and has no effect.
    """
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
        operator=fields.choice("operator", ("Equal", "Exists"), "Equal"),
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
    }
    return _without_empty(written)


def _write_affinity(constraint: Constraint) -> dict[str, Any]:
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
    if affinity:
        return {"nodeAffinity": affinity}
    return {}


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
