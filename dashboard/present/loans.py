"""Who uses what others deserve: among the children of one queue, who lends how much to whom.

What a queue has above its deserved comes first from what is nobody's (not assigned to any child, or
borrowed by the parent itself from further up). The rest comes from what its siblings leave unused:
the largest borrower borrows from the largest lender, so that devices stay whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from scheduler.selectors.queues.listing import QueueBoard, QueueRow

NOBODY = ""  # the lender of what is nobody's


@dataclass(frozen=True, slots=True)
class Loan:
    lender: str
    borrower: str
    amount: int


Ledger = dict[tuple[str, str], tuple[Loan, ...]]
"""(parent, resource) -> the loans among its children."""


def ledger(board: QueueBoard, resources: Iterable[str]) -> Ledger:
    """All loans of the tree; where nobody borrows there is no entry."""
    names = tuple(resources)
    parents = {row.name: row for row in board.rows}
    families: dict[str, list[QueueRow]] = {}
    for row in board.rows:
        if row.figures is not None:
            families.setdefault(row.parent, []).append(row)
    found: Ledger = {}
    for parent, children in families.items():
        for resource in names:
            balances = _balances(children, resource)
            if any(balance > 0 for balance in balances.values()):
                found[parent, resource] = tuple(
                    loans(balances, _free(parents.get(parent), children, resource))
                )
    return found


def _balances(children: list[QueueRow], resource: str) -> dict[str, int]:
    """What each has above its deserved; negative for what it leaves unused.

    Queues without a deserved neither lend nor borrow.
    """
    balances = {}
    for row in children:
        figures = row.figures
        if figures is not None and resource in figures.deserved:
            balances[row.name] = figures.allocated.amount(resource) - figures.deserved[resource]
    return balances


def _free(parent: QueueRow | None, children: list[QueueRow], resource: str) -> int:
    """What the children may use that is not each other's.

    It is what the parent has not assigned, and what the parent itself borrows.
    """
    if parent is None or parent.figures is None:
        return 0
    given = sum(row.figures.deserved.amount(resource) for row in children if row.figures)
    deserved = parent.figures.deserved.amount(resource)
    allocated = parent.figures.allocated.amount(resource)
    return max(0, deserved - given) + max(0, allocated - deserved)


def loans(balances: Mapping[str, int], free: int) -> Iterator[Loan]:
    left = {NOBODY: free, **dict(_largest_first(balances, -1))}  # what each lender still has
    for borrower, wanted in _largest_first(balances, 1):
        for lender, has in list(left.items()):
            amount = min(wanted, has)
            if amount:
                left[lender] -= amount
                wanted -= amount
                yield Loan(lender, borrower, amount)


def _largest_first(balances: Mapping[str, int], sign: int) -> list[tuple[str, int]]:
    """The balances of this sign, as amounts; by name where they are equal."""
    amounts = []
    for name, balance in balances.items():
        if balance * sign > 0:
            amounts.append((name, balance * sign))
    return sorted(amounts, key=lambda pair: (-pair[1], pair[0]))
