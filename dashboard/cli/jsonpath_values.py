"""Values as Go writes and compares them, which is how kubectl does."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def go_json(value: Any) -> str:
    """Keys in order, no blanks, and three letters escaped."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def go_text(value: Any) -> str:
    """As `%v` writes it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        parts = (f"{key}:{go_text(value[key])}" for key in sorted(value))
        return f"map[{' '.join(parts)}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)


def compare(left: Any, sign: str, right: Any) -> bool | None:
    """None where the two have no order."""
    if sign == "==":
        return _are_equal(left, right)
    if sign == "!=":
        return not _are_equal(left, right)
    both_text = isinstance(left, str) and isinstance(right, str)
    if both_text or (_is_number(left) and _is_number(right)):
        return _ORDERS[sign](left, right)
    return None


def _are_equal(left: Any, right: Any) -> bool:
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    return bool(left == right)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
