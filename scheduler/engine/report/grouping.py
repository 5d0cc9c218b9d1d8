"""Many podgroups at once: which of them nobody needs to try, and which are so alike that one answer
serves all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.queues import DequeueStrategy
from scheduler.domain.tables import Rows
from scheduler.domain.workloads import PodStatus

if TYPE_CHECKING:
    from scheduler.engine.session import Session

_NONE = -1
_MIXED = -2
"""In the place of a class of pods: no pod waits; pods of more than one class wait."""


def beyond_all_nodes(session: Session) -> Mask:
    """Podgroups short of their gang, none of whose waiting pods would fit on any node if it were
    empty: no action can do a thing for them.

    Left out are those that are tried for another's sake: in a queue that is strictly first in,
    first out they stop the line, and what was promised to them must be given back.
    """
    groups = session.snapshot.groups
    pods = session.snapshot.pods
    found: Mask = (
        session.may_be_served
        & (session.pending_counts > 0)
        & (session.placed_counts < groups.min_member)
    )
    if not session.needs_whole_gangs or not found.any():
        return np.zeros(len(groups), dtype=np.bool_)
    found &= ~_strict_queues(session)[groups.queue]
    waiting = np.flatnonzero(pods.status == PodStatus.PENDING)
    found[pods.group[waiting[_fits_somewhere(session, waiting)]]] = False
    found[pods.group[waiting[pods.reserved_node[waiting] >= 0]]] = False
    return found


def _strict_queues(session: Session) -> Mask:
    """The last entry stands for "no queue"."""
    strict = (
        queue.spec.dequeue_strategy is DequeueStrategy.FIFO for queue in session.queue_tree.queues
    )
    return np.array([*strict, False], dtype=np.bool_)


def _fits_somewhere(session: Session, waiting: Rows) -> Mask:
    """For each of these pods; each class is looked at once."""
    pod_classes = session.pod_classes[waiting]
    fits = np.zeros(len(session.request), dtype=np.bool_)
    for pod_class in np.unique(pod_classes).tolist():
        fits[pod_class] = session.node_scores(pod_class).fits_an_empty_node
    found: Mask = fits[pod_classes]
    return found


def alike(session: Session, rows: Rows) -> list[list[int]]:
    """These podgroups, which the session had nothing to do with, put together where whatever is
    said of one can be said of all.
    """
    found: dict[bytes, list[int]] = {}
    for row, traits in zip(rows.tolist(), _as_bytes(_traits(session, rows)), strict=True):
        found.setdefault(traits, []).append(row)
    return list(found.values())


def _traits(session: Session, rows: Rows) -> Amounts:
    """One line of numbers for each podgroup: those that `explain.signature` asks for, as they stand
    in the snapshot.
    """
    groups = session.snapshot.groups
    pod_classes = waiting_classes(session)[rows]
    own = np.array([bool(groups.role_minimums[row]) for row in rows.tolist()], dtype=np.bool_) | (
        pod_classes == _MIXED
    )
    columns = (
        groups.queue[rows], groups.phase[rows], groups.min_member[rows], groups.has_min_resources[rows], session.ready_counts[rows],
        session.pending_counts[rows], session.task_counts[rows], pod_classes, np.where(own, rows, -1),
        _numbered(groups.on_hold, rows), _numbered(groups.not_permitted, rows),
    )  # fmt: skip
    table: Amounts = np.column_stack([*columns, groups.min_resources[rows]]).astype(np.int64)
    return table


def waiting_classes(session: Session) -> Rows:
    """By podgroup, the class of its pods without a place."""
    pods = session.snapshot.pods
    waiting = np.flatnonzero(session.status == PodStatus.PENDING)
    group = pods.group[waiting]
    pod_class = session.pod_classes[waiting]
    pod_classes = np.full(len(session.snapshot.groups), _NONE, dtype=np.int64)
    pod_classes[group] = pod_class
    pod_classes[group[pod_classes[group] != pod_class]] = _MIXED
    return pod_classes


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
