"""Manifests on their way in: merged with what is stored, and refused with everything that is wrong with them."""

from __future__ import annotations

from typing import TypeVar

from scheduler.admission.manifests import Reading
from scheduler.admission.violations import Rejected, Violation
from scheduler.services.queues import merge_patch

__all__ = ["merge_patch", "readable"]

T = TypeVar("T")


def readable(reading: Reading[T], name: str = "", namespace: str = "") -> T:
    """The value read. Raises `Rejected` with every flaw of shape, and where the name is not that of the object to change."""
    violations = list(reading.violations)
    metadata = getattr(reading.value, "metadata", None)
    if name and metadata is not None and metadata.name != name:
        violations.append(_renamed("metadata.name", metadata.name, name))
    if namespace and metadata is not None and metadata.namespace and metadata.namespace != namespace:
        violations.append(_renamed("metadata.namespace", metadata.namespace, namespace))
    if violations or reading.value is None:
        raise Rejected(violations, reading.notices)
    return reading.value


def _renamed(field: str, given: str, stored: str) -> Violation:
    message = f"{field} is {given}, but the object to change is {stored}: it can not be renamed."
    return Violation("immutable_field_changed", "", field, message, f"write {stored}")
