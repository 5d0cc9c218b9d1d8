"""All queues as values, read fast.

JSON columns come as the text they are stored as, and each text is read once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from scheduler.domain.lifecycle import DerivedState
from scheduler.domain.queue_fields import (
    AMOUNT_FIELDS,
    METADATA_FIELDS,
    PLAIN_FIELDS,
    names_of,
    with_choices,
)
from scheduler.domain.queues import QueueSpec, QueueState, QueueTree
from scheduler.domain.resources import NOTHING, Resources
from scheduler.models import Queue
from scheduler.models.prepared import Prepared

_LIFE = (
    "id",
    "name",
    "parent_id",
    "wish",
    "state",
    "closed_by",
    "suspended_by",
    "held_by",
    "is_unknown",
    "state_since",
)
_AMOUNTS = names_of(AMOUNT_FIELDS)
_REST = tuple(name for name in names_of(PLAIN_FIELDS) if name not in _AMOUNTS)
_LIFE_TEXTS = ("conditions", "warnings")
_REST_TEXTS = (*_AMOUNTS, *METADATA_FIELDS)


@dataclass(frozen=True, slots=True)
class StoredQueue:
    """One queue as it is stored.

    What came out of JSON is shared between readers and must not be changed.
    """

    pk: int
    parent_pk: int | None
    spec: QueueSpec
    standing: DerivedState
    is_unknown: bool
    state_since: Any
    conditions: list[dict[str, Any]]
    warnings: list[dict[str, Any]]

    @property
    def name(self) -> str:
        return self.spec.name


def stored_queues(*, only_life: bool = False) -> dict[str, StoredQueue]:
    """Every queue by name, in one query.

    With `only_life` their specifications hold name, parent and requested state, and nothing else.
    """
    query = _WHOLE
    if only_life:
        query = _LIVES
    return queues_of_rows(query.rows())


def queues_of_rows(found: Iterable[tuple[Any, ...]]) -> dict[str, StoredQueue]:
    """By name; the rows are of `life_columns` or of `whole_columns`, parents among them."""
    rows = [(row[: len(_LIFE)], row[len(_LIFE) :]) for row in found]
    names = {life[0]: life[1] for life, _ in rows}
    return {life[1]: _stored(life, rest, names.get(life[2], "")) for life, rest in rows}


def _columns(plain: tuple[str, ...], texts: tuple[str, ...]) -> QuerySet[Any, Any]:
    cast = {f"{name}_text": Cast(name, TextField()) for name in texts}
    return Queue.objects.order_by("name").annotate(**cast).values_list(*plain, *cast)


def life_columns() -> QuerySet[Any, Any]:
    return _columns(_LIFE, _LIFE_TEXTS)


def whole_columns() -> QuerySet[Any, Any]:
    return _columns(_LIFE + _REST, _LIFE_TEXTS + _REST_TEXTS)


_LIVES = Prepared(life_columns)
_WHOLE = Prepared(whole_columns)


def tree_of(queues: dict[str, StoredQueue]) -> QueueTree:
    return QueueTree(queue.spec for queue in queues.values())


def _parted(rest: Sequence[Any]) -> tuple[Sequence[Any], str, str, Sequence[str]]:
    """Plain columns of the specification, conditions and warnings, and its texts.

    Of a life alone there are only the two in the middle.
    """
    first = 0
    if len(rest) > len(_LIFE_TEXTS):
        first = len(_REST)
    return rest[:first], rest[first], rest[first + 1], rest[first + 2 :]


def _stored(life: Sequence[Any], rest: Sequence[Any], parent: str) -> StoredQueue:
    key, name, parent_key, wish, state, closed_by, suspended_by, held_by, is_unknown, since = life
    plain, conditions, warnings, texts = _parted(rest)
    if plain:
        spec = _specified(name, parent, _STATES[wish], plain, texts)
    else:
        spec = QueueSpec(name, parent=parent, state=_STATES[wish])
    standing = _standing(state, closed_by, suspended_by, held_by)
    return StoredQueue(
        key,
        parent_key,
        spec,
        standing,
        is_unknown,
        since,
        value_in(conditions),
        value_in(warnings),
    )


def _specified(
    name: str,
    parent: str,
    requested: QueueState,
    plain: Sequence[Any],
    texts: Sequence[str],
) -> QueueSpec:
    labels, annotations = texts[len(_AMOUNTS) :]
    values = with_choices(dict(zip(_REST, plain, strict=True)))
    for field, text in zip(_AMOUNTS, texts, strict=False):
        values[field] = amounts_in(text)
    return QueueSpec(
        name=name,
        parent=parent,
        state=requested,
        labels=value_in(labels),
        annotations=value_in(annotations),
        **values,
    )


_STATES = {state.value: state for state in QueueState}


@lru_cache(maxsize=4_096)
def _standing(state: str, closed_by: str, suspended_by: str, held_by: str) -> DerivedState:
    return DerivedState(_STATES[state], closed_by, suspended_by, held_by)


@lru_cache(maxsize=16_384)
def amounts_in(text: str | None) -> Resources:
    if text and text not in ("{}", "null"):
        return Resources(json.loads(text))
    return NOTHING


@lru_cache(maxsize=4_096)
def value_in(text: str) -> Any:
    return json.loads(text)
