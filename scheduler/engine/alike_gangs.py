"""Gangs that wait and ask for the same: as long as nothing changes, all of them find room or none.

Where many wait, nearly all of them are settled by a few that were tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows

if TYPE_CHECKING:
    from scheduler.engine.session import Session
    from scheduler.engine.state.gang import Gang

Traits = tuple[int, ...]
"""Queue, class and number of the pods that wait, minimum, number of all pods."""


class SettledGangs:
    """The gangs that were tried in vain, by their traits.

    Only gangs of alike pods that have no place and no promise of one are kept.
    """

    def __init__(self, session: Session, rows: Rows) -> None:
        self._session = session
        self._traits = _traits_by_row(session, rows)
        self._failed: dict[Traits, tuple[int, Gang]] = {}

    def add(self, gang: Gang) -> None:
        """This gang was tried, and others like it would fail, too."""
        traits = self._traits.get(gang.row)
        if traits is not None:
            self._failed[traits] = (self._session.queue_usage.state, gang)

    def like(self, row: int) -> Gang | None:
        """A gang like this one that has failed, and nothing has changed since."""
        found = self._failed.get(self._traits.get(row, ()))
        if found is None or found[0] != self._session.queue_usage.state:
            return None
        return found[1]


def _traits_by_row(session: Session, rows: Rows) -> dict[int, Traits]:
    groups = session.snapshot.groups
    classes = session.tasks.waiting_classes()
    rows = rows[_are_comparable(session, rows, classes)]
    columns = (
        groups.queue,
        classes,
        session.pending_counts,
        groups.min_member,
        session.task_counts,
    )
    values = [column[rows].tolist() for column in columns]
    return dict(zip(rows.tolist(), zip(*values, strict=True), strict=True))


def _are_comparable(session: Session, rows: Rows, classes: Rows) -> Mask:
    """Pods of one class that asks for something, none with a place, and no minimums of roles."""
    comparable: Mask = (classes[rows] >= 0) & (session.placed_counts[rows] == 0)
    comparable &= ~session.snapshot.classes.best_effort[classes[rows]]
    role_minimums = session.snapshot.groups.role_minimums
    has_roles = [bool(role_minimums[row]) for row in rows.tolist()]
    return comparable & ~np.array(has_roles, dtype=np.bool_)
