"""Affinity between pods and topology spread, read to the last expression.

What only is preferred is kept as it came: nothing here looks at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scheduler.admission.reading.reader import Reader
from scheduler.domain.pod_rules import REQUIRED

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES: Final = ("Honor", "Ignore")


def check_pod_affinity(reader: Reader, value: object, path: str) -> None:
    """`podAffinity` or `podAntiAffinity`."""
    given = reader.mapping(value, path)
    for index, item in enumerate(reader.items(given.get(REQUIRED), f"{path}.{REQUIRED}")):
        here = f"{path}.{REQUIRED}[{index}]"
        term = reader.mapping(item, here)
        _check_topology_key(reader, term, here)
        _check_selector(reader, term.get("labelSelector"), f"{here}.labelSelector")
        _check_selector(reader, term.get("namespaceSelector"), f"{here}.namespaceSelector")
        for field in ("namespaces", "matchLabelKeys", "mismatchLabelKeys"):
            _check_texts(reader, term.get(field), f"{here}.{field}")


def read_spread(reader: Reader, value: object, path: str) -> tuple[dict[str, object], ...]:
    """As it came; nothing of it where a part cannot be read."""
    before = len(reader.violations)
    found: list[dict[str, object]] = []
    for index, item in enumerate(reader.items(value, path)):
        here = f"{path}[{index}]"
        given = dict(reader.mapping(item, here))
        _check_topology_key(reader, given, here)
        reader.number(given.get("maxSkew"), f"{here}.maxSkew", 1, least=1)
        reader.number(given.get("minDomains"), f"{here}.minDomains", 1, least=1)
        for field, allowed in (
            ("whenUnsatisfiable", _UNSATISFIABLE),
            ("nodeAffinityPolicy", _POLICIES),
            ("nodeTaintsPolicy", _POLICIES),
        ):
            reader.choice(given.get(field), f"{here}.{field}", allowed, "", "invalid_value")
        _check_selector(reader, given.get("labelSelector"), f"{here}.labelSelector")
        _check_texts(reader, given.get("matchLabelKeys"), f"{here}.matchLabelKeys")
        found.append(given)
    if len(reader.violations) > before:
        return ()
    return tuple(found)


def _check_topology_key(reader: Reader, given: Mapping[str, object], path: str) -> None:
    here = f"{path}.topologyKey"
    if not reader.text(given.get("topologyKey"), here) and not given.get("topologyKey"):
        reader.refuse("invalid_value", here, f"{here} must be given.", "name a label of nodes")


def _check_selector(reader: Reader, value: object, path: str) -> None:
    selector = reader.mapping(value, path)
    reader.texts(selector.get("matchLabels"), f"{path}.matchLabels")
    expressions = f"{path}.matchExpressions"
    for index, item in enumerate(reader.items(selector.get("matchExpressions"), expressions)):
        _check_expression(reader, reader.mapping(item, f"{expressions}[{index}]"), expressions)


def _check_expression(reader: Reader, given: Mapping[str, object], path: str) -> None:
    if not reader.text(given.get("key"), f"{path}.key") and not given.get("key"):
        reader.refuse("invalid_value", f"{path}.key", f"{path}.key must be given.", "name a label")
    here = f"{path}.operator"
    if not given.get("operator"):
        choices = ", ".join(_OPERATORS)
        reader.refuse("invalid_value", here, f"{here} must be given.", f"write one of {choices}")
    reader.choice(given.get("operator"), here, _OPERATORS, "", "invalid_value")
    _check_texts(reader, given.get("values"), f"{path}.values")


def _check_texts(reader: Reader, value: object, path: str) -> None:
    for index, item in enumerate(reader.items(value, path)):
        reader.text(item, f"{path}[{index}]")
