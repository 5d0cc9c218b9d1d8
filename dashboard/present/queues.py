"""One queue row as shown: the page, the API's browsable tables and the websocket all take it from here.

Everything a reader sees is worked out once, on the server: texts, figures and the geometry of the bar. The page's script only puts
values into their places, so there is one set of rules and the first paint looks exactly like the hundredth update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.present.amounts import in_page_order
from dashboard.present.loans import NOBODY, ledger
from dashboard.present.quotas import CLUSTER, Limit, Quota, present_quota, quota_of
from dashboard.present.starvation import is_starved
from scheduler.selectors.queues.listing import PHASES, Counts, QueueBoard, QueueRow


def page_resources(board: QueueBoard) -> list[str]:
    """The resources that a page has columns for: what the cluster has and what any queue names."""
    names: set[str] = set(board.total)
    for row in board.rows:
        names.update(row.capability, row.deserved, row.guarantee)
    return in_page_order(names)


class PresentedRow(dict[str, Any]):
    """A row as shown. Remembers how it was written last, so that what did not change is not written again."""

    __slots__ = ("drawn", "encoded", "source")

    def __init__(self, values: dict[str, Any], source: object) -> None:
        super().__init__(values)
        self.source = source
        self.encoded: str | None = None
        self.drawn: dict[object, str] = {}


_last: dict[
    str, PresentedRow
] = {}  # the rows of the last presentation, by queue; most of them are the same in the next


def present_queues(board: QueueBoard) -> dict[str, PresentedRow]:
    """Every queue's row by name, in the order of the tree. A row that is as it was is the same object as the last time."""
    global _last
    resources = tuple(page_resources(board))
    limits = _limits(board, resources)
    largest = _largest_limits(limits, len(resources))
    lent = _lent(board, resources)
    nothing = (0,) * len(resources)
    known, fresh = _last, {}
    for row in board.rows:
        source = (row, limits[row.name], lent.get(row.name, nothing), resources, largest)
        before = known.get(row.name)
        fresh[row.name] = (
            before
            if before is not None and before.source == source
            else PresentedRow(_present(*source), source)
        )
    _last = fresh
    return fresh


def _limits(board: QueueBoard, resources: tuple[str, ...]) -> dict[str, tuple[Limit, ...]]:
    """Each queue's own capability, or where it is unset the nearest limit above it, at the top what the cluster has."""
    cluster = tuple(Limit(board.total.get(name), CLUSTER) for name in resources)
    limits: dict[str, tuple[Limit, ...]] = {}
    handed_down: dict[str, tuple[Limit, ...]] = {}  # what all children of a queue inherit
    for row in board.rows:
        inherited = handed_down.get(row.parent, cluster)
        own = row.capability
        mine = (
            tuple(
                Limit(own[name], "") if name in own else limit
                for name, limit in zip(resources, inherited, strict=True)
            )
            if own
            else inherited
        )
        limits[row.name] = mine
        handed_down[row.name] = (
            tuple(limit if limit.source else Limit(limit.amount, row.name) for limit in mine)
            if own
            else mine
        )
    return limits


def _largest_limits(limits: Mapping[str, tuple[Limit, ...]], width: int) -> tuple[int, ...]:
    """For each resource the largest limit of all: the length of the longest bar where all are drawn to one scale."""
    distinct = set(limits.values())
    return tuple(
        max((own[place].amount or 0 for own in distinct), default=0) for place in range(width)
    )


def _lent(board: QueueBoard, resources: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """For each queue that lends, how much of each resource; others are left out."""
    sums: dict[str, list[int]] = {}
    for (_, resource), loans in ledger(board, resources).items():
        for loan in loans:
            if loan.lender != NOBODY:
                sums.setdefault(loan.lender, [0] * len(resources))[resources.index(resource)] += (
                    loan.amount
                )
    return {name: tuple(amounts) for name, amounts in sums.items()}


def _quota(row: QueueRow, resource: str, limit: Limit, lent: int) -> Quota:
    now = row.figures
    deserved = now.deserved.get(resource) if now else row.deserved.get(resource)
    return quota_of(
        now, resource, limit, deserved=deserved, guarantee=row.guarantee.get(resource), lent=lent
    )


def _present(
    row: QueueRow,
    limits: tuple[Limit, ...],
    lent: tuple[int, ...],
    resources: tuple[str, ...],
    largest: tuple[int, ...],
) -> dict[str, Any]:
    starved = is_starved(row)
    quotas = [
        _quota(row, name, limit, given)
        for name, limit, given in zip(resources, limits, lent, strict=True)
    ]
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
        **counts(row.own),
        "subtree": counts(row.subtree),
        "starved": starved,
        "is": qualities(row, quotas, starved=starved),
        "warnings": [warning_text(warning) for warning in row.warnings],
        "resources": {
            quota.resource: present_quota(quota, widest)
            for quota, widest in zip(quotas, largest, strict=True)
        },
    }


def qualities(row: QueueRow, quotas: Sequence[Quota], *, starved: bool) -> list[str]:
    """What can be asked for with `is:` in a search; `queue_query.QUALITIES` says what each means."""
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
    states = [
        state for state in ("open", "closing", "closed", "unknown") if state == row.state.lower()
    ]
    return [quality for quality, holds in claims.items() if holds] + states


def counts(numbers: Counts) -> dict[str, int]:
    return {phase.lower(): number for phase, number in zip(PHASES, numbers, strict=True)}


def warning_text(warning: Any) -> str:
    return str(warning.get("message", "")) if isinstance(warning, dict) else str(warning)


def state_note(row: QueueRow) -> str:
    """The few words beside the state: how far a drain has come, from whom the state is inherited, what comes then."""
    words = [_drained_words(row)] if row.state == "Closing" else []
    if row.closed_by:
        words.append(f"closed by {row.closed_by}")
    elif row.suspended_by:
        words.append(f"suspended by {row.suspended_by}")
    if row.is_doomed:
        words.append("then deleted")
    return ", ".join(words)


def _drained_words(row: QueueRow) -> str:
    left = sum(row.subtree[:4])
    whole = f" of {row.drain_total}" if row.drain_total and row.drain_total >= left else ""
    return f"{left}{whole} {'gang' if left == 1 and not whole else 'gangs'} left"
