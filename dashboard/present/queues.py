"""One queue row as shown on pages, in the API's browsable tables and over the websocket.

Everything a reader sees is worked out once, on the server: texts, figures and the geometry of the
bar. The page's script only puts values into their places. So there is one set of rules, and the
first paint looks exactly like the hundredth update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.present.amounts import in_page_order
from dashboard.present.quotas import CLUSTER, Limit, Quota, present_quota, quota_of
from dashboard.present.starvation import is_starved
from scheduler.domain.plans import counted
from scheduler.domain.queue_fields import TEXT_FIELDS, FieldKind
from scheduler.models import Queue
from scheduler.selectors.queues.listing import PHASES, Counts, QueueBoard, QueueRow
from scheduler.selectors.queues.loans import ledgers_of


def page_resources(board: QueueBoard) -> list[str]:
    """The resources that a page has columns for: what the cluster has and what any queue names."""
    names: set[str] = set(board.total)
    for row in board.rows:
        names.update(row.capability, row.deserved, row.guarantee)
    return in_page_order(names)


class PresentedRow(dict[str, Any]):
    """A row as shown. It remembers its HTML and JSON: an unchanged row is not written again."""

    __slots__ = ("drawn", "encoded", "source")

    def __init__(self, values: dict[str, Any], source: object) -> None:
        super().__init__(values)
        self.source = source
        self.encoded: str | None = None
        self.drawn: dict[object, str] = {}


_last: tuple[QueueBoard | None, dict[str, PresentedRow]] = (None, {})
"""The board of the last call, and its rows by queue. Most of them are the same in the next one."""


def present_queues(board: QueueBoard) -> dict[str, PresentedRow]:
    """Every queue's row by name, in tree order. An unchanged row is the same object as before."""
    global _last
    last_board, last_rows = _last
    if board == last_board:
        return last_rows
    rows = _present_board(board, last_rows)
    _last = (board, rows)
    return rows


def _present_board(
    board: QueueBoard, before: Mapping[str, PresentedRow]
) -> dict[str, PresentedRow]:
    resources = tuple(page_resources(board))
    limits = _limits(board, resources)
    largest = _largest_limits(limits, len(resources))
    lent = _lent(board, resources)
    nothing = (0,) * len(resources)
    fresh = {}
    for row in board.rows:
        source = (row, limits[row.name], lent.get(row.name, nothing), resources, largest)
        presented = before.get(row.name)
        if presented is None or presented.source != source:
            presented = PresentedRow(_present_queue(*source), source)
        fresh[row.name] = presented
    return fresh


def _limits(board: QueueBoard, resources: tuple[str, ...]) -> dict[str, tuple[Limit, ...]]:
    """Each queue's own capability. Where it is unset, the nearest limit above, or the cluster's."""
    cluster = tuple(Limit(board.total.get(name), CLUSTER) for name in resources)
    limits: dict[str, tuple[Limit, ...]] = {}
    inherited_from: dict[str, tuple[Limit, ...]] = {}  # what all children of a queue inherit
    for row in board.rows:
        inherited = inherited_from.get(row.parent, cluster)
        limits[row.name] = inherited
        inherited_from[row.name] = inherited
        if row.capability:
            limits[row.name] = _own_limits(row, resources, inherited, "")
            inherited_from[row.name] = _own_limits(row, resources, inherited, row.name)
    return limits


def _own_limits(
    row: QueueRow,
    resources: tuple[str, ...],
    inherited: tuple[Limit, ...],
    source: str,
) -> tuple[Limit, ...]:
    """The queue's capability, which has this source, and what it inherits where that is unset."""
    limits = []
    for name, limit in zip(resources, inherited, strict=True):
        if name in row.capability:
            limits.append(Limit(row.capability[name], source))
        else:
            limits.append(limit)
    return tuple(limits)


def _largest_limits(limits: Mapping[str, tuple[Limit, ...]], width: int) -> tuple[int, ...]:
    """The largest limit of each resource: the longest bar where all are drawn to one scale."""
    largest = [0] * width
    for own in set(limits.values()):
        for place, limit in enumerate(own):
            largest[place] = max(largest[place], limit.amount or 0)
    return tuple(largest)


def _lent(board: QueueBoard, resources: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """For each queue that lends, how much of each resource; others are left out."""
    sums: dict[str, list[int]] = {}
    for place, ledger in enumerate(ledgers_of(board, resources).values()):
        for name, account in ledger.accounts.items():
            if account.lent:
                amounts = sums.setdefault(name, [0] * len(resources))
                amounts[place] = account.lent
    return {name: tuple(amounts) for name, amounts in sums.items()}


def _quota(row: QueueRow, resource: str, limit: Limit, lent: int) -> Quota:
    now = row.figures
    if now:
        deserved = now.deserved.get(resource)
    else:
        deserved = row.deserved.get(resource)
    return quota_of(
        now,
        resource,
        limit,
        deserved=deserved,
        guarantee=row.guarantee.get(resource),
        lent=lent,
    )


def _present_queue(
    row: QueueRow,
    limits: tuple[Limit, ...],
    lent: tuple[int, ...],
    resources: tuple[str, ...],
    largest: tuple[int, ...],
) -> dict[str, Any]:
    starved = is_starved(row)
    quotas = []
    for name, limit, given in zip(resources, limits, lent, strict=True):
        quotas.append(_quota(row, name, limit, given))
    presented = {}
    for quota, widest in zip(quotas, largest, strict=True):
        presented[quota.resource] = present_quota(quota, widest)
    return {
        "key": row.name,
        "name": row.name,
        "parent": row.parent,
        "depth": row.depth,
        "leaf": row.is_leaf,
        "state": row.state,
        "closedBy": row.closed_by,
        "suspendedBy": row.suspended_by,
        "stateNote": state_note(row),
        "weight": row.weight,
        "priority": row.priority,
        "reclaimable": row.reclaimable,
        **row.texts,
        **counts(row.own),
        "subtree": counts(row.subtree),
        "starved": starved,
        "is": qualities(row, quotas, starved=starved),
        "warnings": [warning_text(warning) for warning in row.warnings],
        "resources": presented,
    }


def page_texts(queue: Queue) -> list[dict[str, Any]]:
    """What people wrote about the queue, for its page; fields without a text are left out."""
    plain = (FieldKind.LINE, FieldKind.PARAGRAPH)
    texts = []
    for field in TEXT_FIELDS:
        value = getattr(queue, field.name)
        if value and field.kind in plain:
            is_long = field.kind is FieldKind.PARAGRAPH
            texts.append({"label": field.label, "value": value, "is_long": is_long})
    return texts


def qualities(row: QueueRow, quotas: Sequence[Quota], *, starved: bool) -> list[str]:
    """What `is:` finds in a search; `queue_query.QUALITIES` says what each word means."""
    pending, inqueue, running, unknown, _ = row.subtree
    claims = {
        "waiting": pending + inqueue > 0,
        "running": running + unknown > 0,
        "idle": not any((pending, inqueue, running, unknown)),
        "borrowing": any(quota.borrowed for quota in quotas),
        "lending": any(quota.lent for quota in quotas),
        "starved": starved,
        "warned": bool(row.warnings),
        "overlimit": any(quota.over_limit for quota in quotas),
        "reclaimable": row.reclaimable,
        "leaf": row.is_leaf,
        "parent": not row.is_leaf,
        "suspended": row.state == "Suspended" or bool(row.suspended_by),
    }
    found = []
    for quality, holds in claims.items():
        if holds:
            found.append(quality)
    state = row.state.lower()
    if state in ("open", "closing", "closed", "unknown"):
        found.append(state)
    return found


def counts(numbers: Counts) -> dict[str, int]:
    by_phase: dict[str, int] = {}
    for phase, number in zip(PHASES, numbers, strict=True):
        by_phase[phase.lower()] = number
    return by_phase


def warning_text(warning: Any) -> str:
    if isinstance(warning, dict):
        return str(warning.get("message", ""))
    return str(warning)


def state_note(row: QueueRow) -> str:
    """The few words beside the state.

    How far it has drained, from which queue the state is inherited, and whether it is deleted then.
    """
    words = []
    if row.state == "Closing":
        words.append(_drained_words(row))
    if row.closed_by:
        words.append(f"closed by {row.closed_by}")
    elif row.suspended_by:
        words.append(f"suspended by {row.suspended_by}")
    if row.is_doomed:
        words.append("then deleted")
    return ", ".join(words)


def _drained_words(row: QueueRow) -> str:
    left = sum(row.subtree[:4])
    if row.drain_total and row.drain_total >= left:
        return f"{left} of {row.drain_total} gangs left"
    return f"{counted(left, 'gang')} left"
