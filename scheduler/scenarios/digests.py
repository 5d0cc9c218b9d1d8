"""A fingerprint of everything that a session decided: equal for two outcomes that are the same bit
for bit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from scheduler.domain.snapshot import Snapshot
from scheduler.engine.decisions import Outcome

_ROWS = frozenset({"row"})
"""Where something stands in the tables is no part of the outcome: a table that was read again may
have another order.
"""


def outcome_digest(outcome: Outcome, snapshot: Snapshot) -> str:
    return hashlib.sha256(
        json.dumps(plain_outcome(outcome, snapshot), sort_keys=True).encode()
    ).hexdigest()


def plain_outcome(outcome: Outcome, snapshot: Snapshot) -> dict[str, Any]:
    """Every part of the outcome as plain data.

    Decisions keep their order; what is said about objects is in the order of their names.
    """
    plain = {item.name: _plain_value(getattr(outcome, item.name)) for item in fields(outcome)}
    plain["starving"] = {snapshot.groups.key[row]: since for row, since in outcome.starving.items()}
    for name in ("reservations", "phase_changes", "said", "conditions", "pod_conditions", "events"):
        plain[name] = sorted(plain[name], key=lambda item: json.dumps(item, sort_keys=True))
    return plain


def _plain_value(value: Any) -> Any:
    names = _names_of_fields(value)
    if names:
        return {name: _plain_value(getattr(value, name)) for name in names if name not in _ROWS}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        result = {}
        for key, item in value.items():
            result[str(key)] = _plain_value(item)
        return result
    if isinstance(value, (tuple, list)):
        return [_plain_value(item) for item in value]
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    if hasattr(value, "item"):
        return value.item()
    return str(value)


def _names_of_fields(value: Any) -> tuple[str, ...]:
    """Of a dataclass or a tuple with names; none of any other value."""
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(item.name for item in fields(value))
    return getattr(value, "_fields", ())
