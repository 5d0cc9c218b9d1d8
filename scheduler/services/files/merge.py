"""Manifests on their way in: merged with what is stored, and refused with everything that is wrong
with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from scheduler.admission.reading.queue import Reading
from scheduler.admission.violations import Rejected, Violation

T = TypeVar("T")


def merge_patch(target: object, patch: object) -> object:
    """JSON merge patch: null removes, objects are merged, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged: dict[str, Any]
    if isinstance(target, Mapping):
        merged = dict(target)
    else:
        merged = {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def readable(reading: Reading[T], name: str = "", namespace: str = "") -> T:
    """The value read.

    Raises `Rejected` with every flaw of shape, and where the name is not that of the object to
    change.
    """
    violations = list(reading.violations)
    metadata = getattr(reading.value, "metadata", None)
    if name and metadata is not None and metadata.name != name:
        violations.append(_renamed_violation("metadata.name", metadata.name, name))
    if (
        namespace
        and metadata is not None
        and metadata.namespace
        and metadata.namespace != namespace
    ):
        violations.append(_renamed_violation("metadata.namespace", metadata.namespace, namespace))
    if violations or reading.value is None:
        raise Rejected(violations, reading.notices)
    return reading.value


def _renamed_violation(field: str, given: str, stored: str) -> Violation:
    message = f"{field} is {given}, but the object to change is {stored}: it cannot be renamed."
    return Violation("immutable_field_changed", "", field, message, f"write {stored}")
