"""Requirements on labels, of node selectors and of label selectors alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """One expression of a selector. `operator`: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, value: str | None) -> bool:
        """Whether this value of the label will do; None where the label is not there."""
        return _OPERATORS[self.operator](value, self.values)


def read_requirement(given: Mapping[str, Any]) -> Requirement:
    """From the shape that Kubernetes gives it."""
    values = tuple(str(value) for value in given.get("values") or ())
    return Requirement(given["key"], given["operator"], values)


def is_greater(left: str, right: str) -> bool:
    """Compared as whole numbers; never true of anything else."""
    first = _whole_number(left)
    second = _whole_number(right)
    return first is not None and second is not None and first > second


def _whole_number(text: str) -> int | None:
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal():
        return int(text)
    return None


def _is_greater_than_first(value: str | None, values: tuple[str, ...]) -> bool:
    return value is not None and len(values) == 1 and is_greater(value, values[0])


def _is_less_than_first(value: str | None, values: tuple[str, ...]) -> bool:
    return value is not None and len(values) == 1 and is_greater(values[0], value)


_OPERATORS: Final[Mapping[str, Callable[[str | None, tuple[str, ...]], bool]]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": _is_greater_than_first,
    "Lt": _is_less_than_first,
}
