"""What jobs are counted and grouped by, and the shape of a gang as one word."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from scheduler.domain.resources import NOTHING, Resources, parse_quantity


class JobField(StrEnum):
    STATE = "state"
    QUEUE = "queue"
    USER = "user"
    REASON = "reason"
    NAMESPACE = "namespace"
    PRIORITY = "priority"
    SHAPE = "shape"


FACETS: Final = tuple(field for field in JobField if field is not JobField.SHAPE)
"""Those that are counted beside every list. Shapes are too many for that."""

_BETWEEN: Final = ";"


@dataclass(frozen=True, slots=True)
class JobGroup:
    """Jobs that have one value in common.

    `pods` and `request` are what their gangs need to start, together; `oldest` is when the one
    that waits longest was submitted.
    """

    value: str
    jobs: int
    waiting: int
    pods: int
    request: Resources
    oldest: datetime | None


def shape_word(pods: int, request: Resources | None) -> str:
    """ "8;cpu=64;nvidia.com/gpu=8": the pods that a gang needs to start, and what they ask for."""
    parts = [str(pods)]
    quantities = (request or NOTHING).to_quantities()
    for name in sorted(quantities):
        parts.append(f"{name}={quantities[name]}")
    return _BETWEEN.join(parts)


def read_shape(word: str) -> tuple[int, Resources]:
    """Raises `ValueError` for what is no shape."""
    pods, *amounts = word.split(_BETWEEN)
    if not (pods.isascii() and pods.isdigit() and len(pods) < 10):
        raise ValueError(word)
    request = {}
    for part in amounts:
        name, equals, quantity = part.partition("=")
        if not name or not equals:
            raise ValueError(word)
        request[name] = parse_quantity(name, quantity)
    return int(pods), Resources(request)
