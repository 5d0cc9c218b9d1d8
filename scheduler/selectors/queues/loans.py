"""Who uses whose idle share now: the ledger of each resource, from the rows of all queues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from scheduler.domain.loans import Account, Holding, Loan, accounts_of, loans_of
from scheduler.selectors.queues.listing import QueueBoard, QueueRow


@dataclass(frozen=True)
class Ledger:
    """All loans of one resource, the largest first."""

    resource: str
    loans: tuple[Loan, ...]
    parents: Mapping[str, str]

    @cached_property
    def accounts(self) -> dict[str, Account]:
        """By queue, of it and all below it; only of those that borrow or lend."""
        return accounts_of(self.loans, self.parents)


def ledgers_of(board: QueueBoard, resources: Iterable[str]) -> dict[str, Ledger]:
    """By resource. The board must be whole: what a reader may not see is left out afterwards."""
    parents = {row.name: row.parent for row in board.rows}
    found = {}
    for resource in resources:
        found[resource] = Ledger(resource, _loans(board, resource), parents)
    return found


def _loans(board: QueueBoard, resource: str) -> tuple[Loan, ...]:
    return loans_of(_holding(row, resource) for row in board.rows)


def _holding(row: QueueRow, resource: str) -> Holding:
    """A queue that no session has looked at has no account."""
    if row.figures is None:
        return Holding(row.name, row.parent, 0, None)
    allocated = row.figures.allocated.amount(resource)
    return Holding(row.name, row.parent, allocated, row.figures.deserved.get(resource))
