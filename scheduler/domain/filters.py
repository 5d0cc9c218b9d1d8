"""A condition on a list, as a value: made from what somebody typed, understood by the selectors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Comparison(StrEnum):
    IS = ":"
    EQUAL = "="
    AT_LEAST = ">="
    AT_MOST = "<="
    MORE = ">"
    LESS = "<"


@dataclass(frozen=True, slots=True)
class Condition:
    """`field` is one that the list knows.

    With IS one of `values` must match, else `number` is compared: base units, seconds or plain.
    """

    field: str
    comparison: Comparison = Comparison.IS
    values: tuple[str, ...] = ()
    number: float = 0
    negated: bool = False
