"""Gangs that wait and ask for the same: as long as nothing changes, all of them find room or none.

Where many wait, nearly all of them are settled by a few that were tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Ints, Rows

if TYPE_CHECKING:
    from scheduler.engine.session import Session
    from scheduler.engine.state.gang import Gang

NO_KIND: Final = -1
"""Of a gang that is not compared with others."""
_MOST_NUMBERS: Final = 2**62
_LOOKED_AT: Final = 256
"""So many rows of a line are looked at in one go."""

MustBeTried = Callable[[Rows, Rows], Mask]
"""Which of these podgroups could have room though the one beside it, of the same kind, had none."""


class SettledGangs:
    """The gangs that were tried in vain, by their kind: queue, class and number of the pods that
    wait, minimum, number of all pods.

    Only gangs of alike pods that have no place and no promise of one have a kind.
    """

    def __init__(self, session: Session, rows: Rows, waiting_classes: Rows) -> None:
        self._session = session
        self._kinds, count = _kinds_by_row(session, rows, waiting_classes)
        self._failed: dict[int, Gang] = {}
        # By kind, the last entry for NO_KIND: what queues used when a gang of it failed, and which.
        self._states: Rows = np.full(count + 1, -1, dtype=np.intp)
        self._rows: Rows = np.zeros(count + 1, dtype=np.intp)

    def add(self, gang: Gang) -> None:
        """This gang was tried, and others like it would fail, too."""
        kind = int(self._kinds[gang.row])
        if kind != NO_KIND:
            self._failed[kind] = gang
            self._states[kind] = self._session.queue_usage.state
            self._rows[kind] = gang.row

    def like(self, row: int) -> Gang | None:
        """A gang like this one that has failed, and nothing has changed since."""
        if not self._failed:
            return None
        kind = int(self._kinds[row])
        if self._states[kind] != self._session.queue_usage.state:
            return None
        return self._failed[kind]

    def count_first(self, rows: Rows, must_be_tried: MustBeTried | None = None) -> int:
        """How many at the beginning of these podgroups need not be tried."""
        if not len(rows) or self.like(int(rows[0])) is None:
            return 0

        def are_settled(part: Rows) -> Mask:
            kinds = self._kinds[part]
            settled: Mask = self._states[kinds] == self._session.queue_usage.state
            if must_be_tried is not None:
                settled &= ~must_be_tried(part, self._rows[kinds])
            return settled

        return count_first_by_parts(rows, are_settled)


def _kinds_by_row(session: Session, rows: Rows, classes: Rows) -> tuple[Rows, int]:
    """The kind of each podgroup, and how many kinds there are."""
    groups = session.snapshot.groups
    rows = rows[are_comparable(session, rows, classes)]
    columns: tuple[Ints | Rows, ...] = (
        groups.queue,
        classes,
        session.pending_counts,
        groups.min_member,
        session.task_counts,
    )
    kinds: Rows = np.full(len(groups), NO_KIND, dtype=np.intp)
    kinds[rows], count = numbered([column[rows] for column in columns])
    return kinds, count


def numbered(columns: Sequence[Ints | Rows]) -> tuple[Rows, int]:
    """A number for each row, the same where all columns are; and how many there are."""
    if not len(columns[0]):
        return np.zeros(0, dtype=np.intp), 0
    widths = [int(column.max()) + 1 for column in columns]
    if math.prod(widths) > _MOST_NUMBERS:
        _, which = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        return which.reshape(-1), int(which.max()) + 1
    joined = np.zeros(len(columns[0]), dtype=np.int64)
    for column, width in zip(columns, widths, strict=True):
        joined = joined * width + column
    found, which = np.unique(joined, return_inverse=True)
    return which, len(found)


def are_comparable(session: Session, rows: Rows, classes: Rows) -> Mask:
    """Pods of one class that asks for something, none with a place, and no minimums of roles."""
    comparable: Mask = (classes[rows] >= 0) & (session.placed_counts[rows] == 0)
    comparable &= ~session.snapshot.classes.best_effort[classes[rows]]
    return comparable & without_roles(session, rows)


def without_roles(session: Session, rows: Rows) -> Mask:
    """Which of these podgroups have no minimums of roles."""
    if not session.has_role_minimums:
        return np.ones(len(rows), dtype=np.bool_)
    role_minimums = session.snapshot.groups.role_minimums
    return np.array([not role_minimums[row] for row in rows.tolist()], dtype=np.bool_)


class AlikeNeeds:
    """What gangs of alike pods need to start: how many pods, and of which class.

    Of `rows` those are told of that have no place yet, and of which as many pods wait as are
    needed, or more. The others need 0.
    """

    def __init__(self, session: Session, rows: Rows, waiting_classes: Rows) -> None:
        self._request = session.request
        self.classes = waiting_classes
        self.counts: Rows = np.zeros(len(session.snapshot.groups), dtype=np.intp)
        told = rows[_have_plain_needs(session, rows, waiting_classes)]
        self.counts[told] = session.snapshot.groups.min_member[told]

    def amounts(self, rows: Rows) -> Amounts:
        """What the pods that each of these podgroups needs ask for together."""
        amounts: Amounts = self._request[self.classes[rows]] * self.counts[rows][:, None]
        return amounts


def _have_plain_needs(session: Session, rows: Rows, classes: Rows) -> Mask:
    minimum = session.snapshot.groups.min_member[rows]
    enough: Mask = (minimum > 0) & (session.pending_counts[rows] >= minimum)
    return enough & are_comparable(session, rows, classes)


def count_first_by_parts(rows: Rows, are_marked: Callable[[Rows], Mask]) -> int:
    """How many at the beginning of these rows are marked. Not more are asked about than needed."""
    for start in range(0, len(rows), _LOOKED_AT):
        is_marked = are_marked(rows[start : start + _LOOKED_AT])
        if not is_marked.all():
            return start + int(is_marked.argmin())
    return len(rows)
