"""One queue row as shown: the page, the API's browsable tables and the websocket all take it from here.

Everything a reader sees is worked out once, on the server: texts, figures and the geometry of the bar. The page's script only puts
values into their places, so there is one set of rules and the first paint looks exactly like the hundredth update.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.present.amounts import in_page_order, short_name, shown, with_unit
from dashboard.present.loans import NOBODY, ledger
from dashboard.present.starvation import is_starved
from scheduler.selectors.queues.listing import PHASES, Counts, QueueBoard, QueueFiguresRow, QueueRow

BAR_WIDTH = 1000  # the bar's own units; how wide it is on the screen is the style sheet's business
_THIN, _THICK = 6, 14


@dataclass(frozen=True, slots=True)
class Limit:
    """The most a queue may use of a resource, and whose limit it is: "" its own, else an ancestor's name or "the cluster"."""

    amount: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Quota:
    """One queue's figures for one resource, in base units; None is unset or not yet known, which is never shown as 0.

    `allocated` is what pods hold on nodes, `leaving` the part of it that is on its way out; `promised` is kept for pods that wait and is
    no part of it.
    """

    resource: str
    allocated: int | None
    deserved: int | None
    guarantee: int | None
    pending: int | None
    limit: Limit
    lent: int = 0  # of what it deserves and does not use, the part that a sibling uses
    promised: int = 0
    leaving: int = 0

    @property
    def borrowed(self) -> int:
        if self.allocated is None or self.deserved is None:
            return 0
        return max(0, self.allocated - self.deserved)

    @property
    def over_limit(self) -> int:
        if self.allocated is None or self.limit.amount is None:
            return 0
        return max(0, self.allocated - self.leaving - self.limit.amount)

    @property
    def taken(self) -> int:
        """What is in use and what is promised. Promised room may be what others are leaving: no more than the limit is taken then."""
        both = (self.allocated or 0) + self.promised
        return (
            both
            if self.limit.amount is None
            else max(self.allocated or 0, min(both, self.limit.amount))
        )

    @property
    def reach(self) -> int:
        """The amount that the whole bar stands for. Without a limit the largest figure fills nine tenths: the end stays visibly open."""
        if self.limit.amount is not None:
            return self.limit.amount
        known = (self.allocated, self.deserved, self.guarantee, self.taken + (self.pending or 0))
        return max(figure or 0 for figure in known) * 10 // 9


CLUSTER = "the cluster"


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


def quota_of(
    now: QueueFiguresRow | None,
    resource: str,
    limit: Limit,
    *,
    deserved: int | None = None,
    guarantee: int | None = None,
    lent: int = 0,
) -> Quota:
    """From what the last session found."""
    if now is None:
        return Quota(resource, None, deserved, guarantee, None, limit, lent)
    return Quota(
        resource=resource,
        allocated=now.allocated.amount(resource),
        deserved=deserved,
        guarantee=guarantee,
        pending=now.asked.amount(resource),
        limit=limit,
        lent=lent,
        promised=now.promised.amount(resource),
        leaving=now.leaving.amount(resource),
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


def present_quota(quota: Quota, largest: int = 0) -> dict[str, Any]:
    """`scale` is how many of the bar's units fill the column where all bars are drawn to one scale, the longest being `largest`."""
    resource = quota.resource
    return {
        "allocated": _or_unknown(resource, quota.allocated),
        "promised": shown(resource, quota.promised),
        "deserved": _or_unset(resource, quota.deserved),
        "guarantee": _or_unset(resource, quota.guarantee),
        "pending": _or_unknown(resource, quota.pending),
        "limit": "unlimited" if quota.limit.amount is None else shown(resource, quota.limit.amount),
        "limitFrom": quota.limit.source,
        "text": bar_text(quota),
        "note": bar_note(quota),
        "label": bar_sentence(quota),
        "bar": bar_geometry(quota),
        "scale": max(BAR_WIDTH, largest * BAR_WIDTH // quota.reach) if quota.reach else BAR_WIDTH,
    }


def _or_unknown(resource: str, amount: int | None) -> str:
    return "unknown" if amount is None else shown(resource, amount)


def _or_unset(resource: str, amount: int | None) -> str:
    return "unset" if amount is None else shown(resource, amount)


def bar_text(quota: Quota) -> str:
    """ "22 of 32 GPU": the figure with its denominator and unit."""
    if quota.allocated is None:
        return "not evaluated yet"
    if quota.limit.amount is None:
        return f"{with_unit(quota.resource, quota.allocated)}, no capability set"
    return f"{shown(quota.resource, quota.allocated)} of {with_unit(quota.resource, quota.limit.amount)}"


def bar_note(quota: Quota) -> str:
    """What is remarkable about it, in a few words."""
    notes = [_share_note(quota)]
    notes += [f"{shown(quota.resource, quota.promised)} promised"] if quota.promised else []
    notes.append(_leaving_note(quota))
    return ", ".join(note for note in notes if note)


def _leaving_note(quota: Quota) -> str:
    return f"{shown(quota.resource, quota.leaving)} leaving" if quota.leaving else ""


def _share_note(quota: Quota) -> str:
    if quota.over_limit:
        return f"{shown(quota.resource, quota.over_limit)} over its capability"
    if quota.borrowed:
        return f"{shown(quota.resource, quota.borrowed)} borrowed"
    return f"{shown(quota.resource, quota.lent)} lent" if quota.lent else ""


def bar_sentence(quota: Quota) -> str:
    """The whole bar in words, figure by figure: for those who do not see it, and for the small table beside the pointer."""
    name, resource = short_name(quota.resource), quota.resource
    parts = [
        f"allocated {bar_text(quota)}"
        if quota.allocated is not None
        else "not evaluated yet by a session"
    ]
    parts += [f"promised {shown(resource, quota.promised)}"] if quota.promised else []
    parts.append(f"deserved {_or_unset(resource, quota.deserved)}")
    parts.append(f"guarantee {_or_unset(resource, quota.guarantee)}")
    parts.append(_limit_words(quota))
    if quota.pending is not None:
        parts.append(f"pending {shown(resource, quota.pending)}")
    parts += [note for note in (_share_note(quota), _leaving_note(quota)) if note]
    return f"{name}: {', '.join(parts)}."


def _limit_words(quota: Quota) -> str:
    if quota.limit.amount is None:
        return "capability none"
    words = f"capability {shown(quota.resource, quota.limit.amount)}"
    if not quota.limit.source:
        return words
    return (
        f"{words}: all that the cluster has"
        if quota.limit.source == CLUSTER
        else f"{words} inherited from {quota.limit.source}"
    )


def bar_geometry(quota: Quota) -> list[int]:
    """Start and width of: asked for, allocated, borrowed, promised, lent, over the capability, the guarantee's tick, the deserved tick.

    What is promised follows what is allocated; where others have to leave first, it lies over their part.
    """
    scale = _scale(quota)
    allocated = scale(quota.allocated)
    deserved = scale(quota.deserved)
    solid = allocated if quota.deserved is None else min(allocated, deserved)
    taken = scale(quota.taken)
    promised = scale(quota.promised)
    asked = scale(quota.taken + (quota.pending or 0))
    spans = [
        (taken, asked - taken),
        (0, solid),
        (solid, allocated - solid),
        (taken - min(promised, taken), min(promised, taken)),
        (taken, scale(quota.taken + quota.lent) - taken),
        (BAR_WIDTH - 2 * _THICK, 2 * _THICK if quota.over_limit else 0),
        _tick(scale(quota.guarantee), _THIN if quota.guarantee else 0),
        _tick(deserved, _THICK if quota.deserved else 0),
    ]
    return [number for span in spans for number in span]


def _tick(at: int, width: int) -> tuple[int, int]:
    return min(max(0, at - width // 2), BAR_WIDTH - width), width


def _scale(quota: Quota) -> Callable[[int | None], int]:
    """From amounts to the bar's units."""
    whole = quota.reach

    def place(amount: int | None) -> int:
        return min(BAR_WIDTH, amount * BAR_WIDTH // whole) if amount and whole else 0

    return place
