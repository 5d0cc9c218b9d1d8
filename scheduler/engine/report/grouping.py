"""Podgroups so alike that one answer serves all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.tables import Rows
from scheduler.engine.session import Session
from scheduler.engine.state.tasks import MIXED


def groups_of_alike(session: Session, rows: Rows) -> list[list[int]]:
    """These podgroups, which the session has not dealt with, in groups with the same reason."""
    found: dict[bytes, list[int]] = {}
    for row, traits in zip(rows.tolist(), _as_bytes(_traits(session, rows)), strict=True):
        found.setdefault(traits, []).append(row)
    return list(found.values())


def _traits(session: Session, rows: Rows) -> Amounts:
    """One line of numbers for each podgroup: all that `explain.signature` asks for."""
    groups = session.snapshot.groups
    classes = session.tasks.waiting_classes()[rows]
    has_roles = [bool(groups.role_minimums[row]) for row in rows.tolist()]
    is_unlike_others = np.array(has_roles, dtype=np.bool_) | (classes == MIXED)
    columns = [
        groups.queue[rows],
        groups.phase[rows],
        groups.min_member[rows],
        groups.has_min_resources[rows],
        session.ready_counts[rows],
        session.pending_counts[rows],
        session.task_counts[rows],
        classes,
        np.where(is_unlike_others, rows, -1),
        _numbered(groups.on_hold, rows),
        _numbered(groups.not_permitted, rows),
        groups.min_resources[rows],
    ]
    table: Amounts = np.column_stack(columns).astype(np.int64)
    return table


def _numbered(texts: Sequence[str], rows: Rows) -> Amounts:
    """The same number for the same text."""
    numbers: dict[str, int] = {"": 0}
    return np.array(
        [numbers.setdefault(texts[row], len(numbers)) for row in rows.tolist()], dtype=np.int64
    )


def _as_bytes(table: Amounts) -> list[bytes]:
    lines = np.ascontiguousarray(table)
    width = lines.shape[1] * lines.itemsize
    found: list[bytes] = lines.view(f"V{width}").ravel().tolist()
    return found
