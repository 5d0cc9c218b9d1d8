"""Where a pod may run: affinity and tolerations, read to the last expression.

Sessions take what is stored as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scheduler.admission.reading import known_fields
from scheduler.admission.reading.pod_rules import check_pod_affinity
from scheduler.admission.reading.reader import Reader

KEPT: Final = "kept as it came, but nothing here looks at it"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_TOLERATION_FIELDS: Final = ("key", "operator", "value", "effect")
_TOLERATION_CHOICES: Final = {
    "operator": ("Equal", "Exists", "Gt", "Lt"),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
}


def read_affinity(reader: Reader, value: object, path: str) -> dict[str, object]:
    """As it came; nothing of it where a part that scheduling looks at cannot be read."""
    given = dict(reader.mapping(value, path))
    reader.unknown_fields(given, known_fields.AFFINITY, path, KEPT)
    before = len(reader.violations)
    _check_node_affinity(
        reader,
        reader.mapping(given.get("nodeAffinity"), f"{path}.nodeAffinity"),
        f"{path}.nodeAffinity",
    )
    for kind in ("podAffinity", "podAntiAffinity"):
        check_pod_affinity(reader, given.get(kind), f"{path}.{kind}")
    if len(reader.violations) == before:
        return given
    return {}


def _check_node_affinity(reader: Reader, given: Mapping[str, object], path: str) -> None:
    reader.unknown_fields(given, (_REQUIRED, _PREFERRED), path, KEPT)
    required = reader.mapping(given.get(_REQUIRED), f"{path}.{_REQUIRED}")
    terms = f"{path}.{_REQUIRED}.nodeSelectorTerms"
    for index, term in enumerate(reader.items(required.get("nodeSelectorTerms"), terms)):
        _check_term(reader, term, f"{terms}[{index}]")
    for index, item in enumerate(reader.items(given.get(_PREFERRED), f"{path}.{_PREFERRED}")):
        here = f"{path}.{_PREFERRED}[{index}]"
        preferred = reader.mapping(item, here)
        reader.number(preferred.get("weight"), f"{here}.weight", 1, least=1, most=100)
        _check_term(reader, preferred.get("preference"), f"{here}.preference")


def _check_term(reader: Reader, value: object, path: str) -> None:
    term = reader.mapping(value, path)
    for part in ("matchExpressions", "matchFields"):
        for index, item in enumerate(reader.items(term.get(part), f"{path}.{part}")):
            _check_requirement(
                reader, reader.mapping(item, f"{path}.{part}[{index}]"), f"{path}.{part}[{index}]"
            )


def _check_requirement(reader: Reader, given: Mapping[str, object], path: str) -> None:
    if not reader.text(given.get("key"), f"{path}.key") and not given.get("key"):
        reader.refuse(
            "invalid_value", f"{path}.key", f"{path}.key must be given.", "name the label"
        )
    if not given.get("operator"):
        reader.refuse(
            "invalid_value",
            f"{path}.operator",
            f"{path}.operator must be given.",
            f"write one of {', '.join(_OPERATORS)}",
        )
    operator = reader.choice(
        given.get("operator"),
        f"{path}.operator",
        _OPERATORS,
        "",
        "invalid_value",
    )
    values = []
    for index, item in enumerate(reader.items(given.get("values"), f"{path}.values")):
        values.append(reader.text(item, f"{path}.values[{index}]"))
    if operator in ("Gt", "Lt") and not (len(values) == 1 and _is_whole_number(values[0])):
        reader.refuse(
            "invalid_value",
            f"{path}.values",
            f"{path}.values must be one whole number for {operator}.",
            'write ["8"]',
        )


def _is_whole_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 18


def read_toleration(reader: Reader, value: object, path: str) -> dict[str, str]:
    given = reader.mapping(value, path)
    reader.unknown_fields(given, known_fields.TOLERATION, path, KEPT)
    for key, allowed in _TOLERATION_CHOICES.items():
        reader.choice(given.get(key), f"{path}.{key}", allowed, "", "invalid_value")
    toleration: dict[str, str] = {}
    for key in _TOLERATION_FIELDS:
        if given.get(key) is not None:
            toleration[key] = reader.text(given[key], f"{path}.{key}")
    return toleration
