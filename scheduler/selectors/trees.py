"""All queues as values, read fast: JSON columns come as the text they are stored as, and each text is read once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast

from scheduler.domain.lifecycle import Standing
from scheduler.domain.queues import DequeueStrategy, QueueSpec, QueueState, QueueTree
from scheduler.domain.resources import NOTHING, Resources
from scheduler.models import Queue

_LIFE = ("id", "name", "parent_id", "wish", "state", "closed_by", "suspended_by", "held_by", "is_unknown", "state_since")
_REST = ("weight", "reclaimable", "priority", "dequeue_strategy", "type")
_LIFE_TEXTS = ("conditions", "warnings")
_REST_TEXTS = ("capability", "deserved", "guarantee", "labels", "annotations")


@dataclass(frozen=True, slots=True)
class StoredQueue:
    """One queue as it is stored. What came out of JSON is shared between readers and must not be changed."""

    pk: int
    parent_pk: int | None
    spec: QueueSpec
    standing: Standing
    is_unknown: bool
    state_since: Any
    conditions: list[dict[str, Any]]
    warnings: list[dict[str, Any]]

    @property
    def name(self) -> str:
        return self.spec.name


def stored_queues(*, only_life: bool = False) -> dict[str, StoredQueue]:
    """Every queue by name, in one query; with `only_life` their specifications hold name, parent and wish, and nothing else."""
    texts = {f"{name}_text": Cast(name, TextField()) for name in (_LIFE_TEXTS if only_life else _LIFE_TEXTS + _REST_TEXTS)}
    columns = _LIFE if only_life else _LIFE + _REST
    rows = list(Queue.objects.order_by("name").annotate(**texts).values_list(*columns, *texts, named=True))
    names = {row.id: row.name for row in rows}
    specified = _only_life if only_life else _specified
    return {row.name: _stored(row, specified(row, names.get(row.parent_id, ""))) for row in rows}


def tree_of(queues: dict[str, StoredQueue]) -> QueueTree:
    return QueueTree(queue.spec for queue in queues.values())


def _stored(row: Any, spec: QueueSpec) -> StoredQueue:
    return StoredQueue(
        pk=row.id,
        parent_pk=row.parent_id,
        spec=spec,
        standing=Standing(QueueState(row.state), row.closed_by, row.suspended_by, row.held_by),
        is_unknown=row.is_unknown,
        state_since=row.state_since,
        conditions=value_in(row.conditions_text),
        warnings=value_in(row.warnings_text),
    )


def _only_life(row: Any, parent: str) -> QueueSpec:
    return QueueSpec(row.name, parent=parent, state=QueueState(row.wish))


def _specified(row: Any, parent: str) -> QueueSpec:
    return QueueSpec(
        name=row.name,
        parent=parent,
        weight=row.weight,
        capability=amounts_in(row.capability_text),
        deserved=amounts_in(row.deserved_text),
        guarantee=amounts_in(row.guarantee_text),
        reclaimable=row.reclaimable,
        priority=row.priority,
        dequeue_strategy=DequeueStrategy(row.dequeue_strategy),
        state=QueueState(row.wish),
        type=row.type,
        labels=value_in(row.labels_text),
        annotations=value_in(row.annotations_text),
    )


@lru_cache(maxsize=16_384)
def amounts_in(text: str | None) -> Resources:
    return Resources(json.loads(text)) if text and text not in ("{}", "null") else NOTHING


@lru_cache(maxsize=4_096)
def value_in(text: str) -> Any:
    return json.loads(text)
