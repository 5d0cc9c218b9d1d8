"""What all objects have: metadata, moments, amounts, conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from scheduler.clusters.kubernetes.values import Condition, ObjectMeta, Owner
from scheduler.domain.resources import NOTHING, Resources, round_up_quantity

Raw = Mapping[str, Any]

_NONE: Final[dict[str, Any]] = {}
_known_amount = lru_cache(maxsize=65_536)(round_up_quantity)
"""A cluster has few distinct quantities, and a pod has several."""


def section(raw: Raw, key: str) -> Raw:
    """A part of an object; empty where it is left out or null."""
    return raw.get(key) or _NONE


def read_meta(raw: Raw) -> ObjectMeta:
    metadata = raw["metadata"]
    return ObjectMeta(
        name=metadata["name"],
        uid=metadata["uid"],
        namespace=metadata.get("namespace", ""),
        resource_version=metadata.get("resourceVersion", ""),
        generation=metadata.get("generation", 0),
        created=read_moment(metadata.get("creationTimestamp")),
        deleted=read_moment(metadata.get("deletionTimestamp")),
        labels=section(metadata, "labels"),
        annotations=section(metadata, "annotations"),
        owner=_controller(metadata.get("ownerReferences") or ()),
    )


def _controller(references: Iterable[Raw]) -> Owner | None:
    """The owner that manages it. Others only keep it from being collected."""
    for reference in references:
        if reference.get("controller"):
            return Owner(
                reference["kind"],
                reference["name"],
                reference["uid"],
                reference.get("apiVersion", ""),
            )
    return None


def read_moment(text: str | None) -> datetime | None:
    """From RFC 3339, which the server always writes in UTC."""
    if not text:
        return None
    return datetime.fromisoformat(text)


def read_amounts(quantities: Raw | None) -> Resources:
    if not quantities:
        return NOTHING
    amounts: dict[str, int] = {}
    for name, text in quantities.items():
        amounts[name] = _known_amount(name, text)
    return Resources(amounts)


def read_conditions(status: Raw) -> tuple[Condition, ...]:
    return tuple(read_condition(item) for item in status.get("conditions") or ())


def read_condition(item: Raw) -> Condition:
    return Condition(
        item["type"],
        item["status"],
        item.get("reason", ""),
        item.get("message", ""),
        read_moment(item.get("lastTransitionTime")),
    )


def whole_number(text: object) -> int | None:
    """From an annotation; None where it is no whole number from 0 up."""
    if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 9:
        return int(text)
    return None
