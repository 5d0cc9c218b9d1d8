"""What queues borrow and lend over time: a sample each minute of each queue of which it changed."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Final

from scheduler.domain.loans import partners_of
from scheduler.models import LoanSample, QueueSample
from scheduler.selectors.queues.listing import QueueBoard, queue_rows
from scheduler.selectors.queues.loans import ledgers_of
from scheduler.services.records.rollup import Level, standing_at

MOST_PARTNERS: Final = 5
"""So many other queues are kept by name, for each resource; the rest is one sum."""
WHOLE: Final = ""
_MINUTES: Final = Level(QueueSample.MINUTE, QueueSample.MINUTE, 1, 3600, LoanSample)

Data = dict[str, dict[str, int]]


def note_loans(now: datetime) -> None:
    """Once a minute. At each whole hour all that borrow or lend are noted, changed or not."""
    minute = datetime.fromtimestamp(int(now.timestamp()) // 60 * 60, tz=UTC)
    if LoanSample.objects.filter(queue_name=WHOLE, seconds=QueueSample.MINUTE, at=minute).exists():
        return
    found = _data_by_queue(queue_rows())
    standing = standing_at(minute, _MINUTES)
    is_key = int(minute.timestamp()) % _MINUTES.key == 0
    rows = []
    for name in sorted({*found, *standing, WHOLE}):
        data = found.get(name, {})
        is_same = data == standing.get(name, {})
        if name == WHOLE or not is_same or (is_key and data):
            rows.append(
                LoanSample(queue_name=name, seconds=QueueSample.MINUTE, at=minute, data=data)
            )
    LoanSample.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)


def _data_by_queue(board: QueueBoard) -> dict[str, Data]:
    """`from` and `to` are by resource and queue, as "cpu team-a"; the rest of many has no name."""
    found: dict[str, Data] = {}
    resources = sorted(set(board.total) - {"pods"})
    for resource, ledger in ledgers_of(board, resources).items():
        if ledger.loans:
            whole = found.setdefault(WHOLE, {}).setdefault("borrowed", {})
            whole[resource] = sum(loan.amount for loan in ledger.loans)
        for name, partners in partners_of(ledger.loans, ledger.parents).items():
            data = found.setdefault(name, {})
            _add(data, "borrowed", "from", resource, partners.lenders)
            _add(data, "lent", "to", resource, partners.borrowers)
    return found


def _add(data: Data, figure: str, side: str, resource: str, others: Counter[str]) -> None:
    if not others:
        return
    data.setdefault(figure, {})[resource] = others.total()
    named: dict[str, int] = data.setdefault(side, {})
    ordered: list[tuple[str, int]] = sorted(others.items(), key=lambda part: (-part[1], part[0]))
    for name, amount in ordered[:MOST_PARTNERS]:
        named[f"{resource} {name}"] = amount
    rest = sum(amount for _, amount in ordered[MOST_PARTNERS:])
    if rest:
        key = f"{resource} "
        named[key] = named.get(key, 0) + rest
