"""Who uses whose idle share: the ledger of one resource, found from the tree of queues alone.

A queue borrows what it has above its deserved. It lends the part of its deserved that it leaves
idle and that others use. A loan is booked where borrower and lender meet in the tree:

1. Each queue without queues below it is a borrower, a lender, or neither.
2. At each queue from the leaves up, what queues below it borrow is taken from what it has not
   assigned to any of them (then the queue itself is the lender), and then from what others below it
   leave idle: the largest borrower from the largest lender, so that devices stay whole.
3. What a queue as a whole has above its deserved is left to the levels above it.
4. What remains at the root is nobody's: more is in use than the cluster has.

A queue of which no deserved is known neither borrows nor lends; what it uses counts for the queue
above it, which is then the borrower. So what all borrow across the edge of a subtree is exactly
what the subtree has above its deserved, in whole base units, and each unit that is borrowed from a
queue is one that it lends.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

NOBODY: Final = ""
"""The lender of what is above all that the cluster has."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What a queue with all below it has, and deserves; None where that is not known."""

    queue: str
    parent: str
    allocated: int
    deserved: int | None

    @property
    def balance(self) -> int:
        """Above its deserved; negative for what it leaves idle."""
        if self.deserved is None:
            return 0
        return self.allocated - self.deserved


@dataclass(frozen=True, slots=True)
class Loan:
    """`level` is the queue where both meet. Borrower and lender are queues without queues below
    them, or a queue that acts for itself.
    """

    lender: str
    borrower: str
    level: str
    amount: int


_Entry = tuple[str, int]  # a queue, and what it still has to borrow or to lend


@dataclass(slots=True)
class _Side:
    """What a child of a queue brings to it: one who borrows has nothing to lend."""

    name: str
    borrows: list[_Entry]
    lends: list[_Entry]


def loans_of(holdings: Iterable[Holding]) -> tuple[Loan, ...]:
    """All loans of the tree. Parents come before their children, as everywhere."""
    rows = list(holdings)
    if not any(row.balance > 0 for row in rows):
        return ()
    children: dict[str, list[Holding]] = {}
    tops = []
    for row in rows:
        children[row.queue] = []
        if row.parent in children:
            children[row.parent].append(row)
        else:
            tops.append(row)
    sides: dict[str, _Side] = {}
    found: list[Loan] = []
    for row in reversed(rows):
        below = children[row.queue]
        if below:
            sides[row.queue] = _settle(row, below, sides, found)
        else:
            sides[row.queue] = _of_leaf(row)
    for top in tops:
        for borrower, amount in sides[top.queue].borrows:
            found.append(Loan(NOBODY, borrower, top.queue, amount))
    return tuple(sorted(found, key=_order))


def _order(loan: Loan) -> tuple[int, str, str, str]:
    return -loan.amount, loan.borrower, loan.lender, loan.level


def _of_leaf(row: Holding) -> _Side:
    if row.balance > 0:
        return _Side(row.queue, [(row.queue, row.balance)], [])
    if row.balance < 0:
        return _Side(row.queue, [], [(row.queue, -row.balance)])
    return _Side(row.queue, [], [])


def _settle(
    row: Holding, below: Sequence[Holding], sides: Mapping[str, _Side], found: list[Loan]
) -> _Side:
    """Book the loans that meet at this queue. What it brings to the level above is the answer."""
    borrowers = _pools((sides[child.queue].name, sides[child.queue].borrows) for child in below)
    lenders = _pools((sides[child.queue].name, sides[child.queue].lends) for child in below)
    from_above = max(0, row.balance)
    acts_itself = _own_borrowing(row, below, from_above, borrowers)
    unassigned = 0
    if acts_itself:
        borrowers.append(_Pool(row.queue, [(row.queue, acts_itself)]))
    else:
        unassigned = _unassigned(row, below)
    above = _Pool(NOBODY, [(NOBODY, from_above)])
    nearest = _Pool(row.queue, [(row.queue, unassigned)])
    line = deque([nearest, above, *sorted(lenders, key=_largest_first)])
    upwards: list[_Entry] = []
    for borrower in sorted(borrowers, key=_largest_first):
        for lender, name, whom, amount in _taken(borrower, line):
            if lender is above:
                upwards.append((name, amount))
            else:
                found.append(Loan(whom, name, row.queue, amount))
        upwards += borrower.entries()  # no account here, or figures that do not add up
    idle = _first_of([*nearest.entries(), *_entries_of(lenders)], _idle(row))
    return _Side(row.queue, _added(upwards), idle)


def _taken(borrower: _Pool, line: deque[_Pool]) -> Iterator[tuple[_Pool, str, str, int]]:
    """From the first in the line, then from the next."""
    while borrower.left and line:
        for name, whom, amount in borrower.take_from(line[0]):
            yield line[0], name, whom, amount
        if not line[0].left:
            line.popleft()


def _own_borrowing(
    row: Holding, below: Sequence[Holding], from_above: int, borrowers: Iterable[_Pool]
) -> int:
    """What the queue borrows for queues below it that have no account."""
    wanted = sum(pool.left for pool in borrowers)
    return max(0, _own_use(row, below), from_above - wanted)


def _own_use(row: Holding, below: Sequence[Holding]) -> int:
    """What queues without a deserved use beyond what is not assigned to the others."""
    if row.deserved is None:
        return 0
    return _without_share(row, below) - max(0, row.deserved - _assigned(below))


def _unassigned(row: Holding, below: Sequence[Holding]) -> int:
    """Of its deserved, what no queue below it deserves, and none without a deserved uses."""
    if row.deserved is None:
        return 0
    return max(0, row.deserved - _assigned(below) - _without_share(row, below))


def _assigned(below: Sequence[Holding]) -> int:
    return sum(child.deserved or 0 for child in below)


def _without_share(row: Holding, below: Sequence[Holding]) -> int:
    """What runs in the queue, but in none below it that has an account of its own."""
    booked = sum(child.allocated for child in below if child.deserved is not None)
    return max(0, row.allocated - booked)


def _idle(row: Holding) -> int | None:
    """How much it can lend to others; None if all that its queues have to lend."""
    if row.deserved is None:
        return None
    return max(0, -row.balance)


class _Pool:
    """Queues of one side with what each has left, the largest first."""

    def __init__(self, name: str, entries: Iterable[_Entry]) -> None:
        self.name = name
        # The first is at the end, where it is cheap to take away.
        self._entries = sorted(entries, key=lambda entry: (-entry[1], entry[0]), reverse=True)
        self.left = sum(amount for _, amount in self._entries)

    def entries(self) -> list[_Entry]:
        return [entry for entry in reversed(self._entries) if entry[1]]

    def take_from(self, lender: _Pool) -> Iterator[tuple[str, str, int]]:
        """Who takes how much from whom, until one of both has nothing left."""
        while self.left and lender.left:
            name, wanted = self._entries[-1]
            whom, has = lender._entries[-1]
            amount = min(wanted, has)
            self._spend(amount)
            lender._spend(amount)
            yield name, whom, amount

    def _spend(self, amount: int) -> None:
        name, has = self._entries.pop()
        self.left -= amount
        if has > amount:
            self._entries.append((name, has - amount))


def _pools(sides: Iterable[tuple[str, list[_Entry]]]) -> list[_Pool]:
    return [_Pool(name, entries) for name, entries in sides if entries]


def _largest_first(pool: _Pool) -> tuple[int, str]:
    return -pool.left, pool.name


def _entries_of(pools: Iterable[_Pool]) -> Iterator[_Entry]:
    for pool in sorted(pools, key=_largest_first):
        yield from pool.entries()


def _first_of(entries: Iterable[_Entry], most: int | None) -> list[_Entry]:
    """As many as add up to this."""
    found = []
    for name, amount in entries:
        part = amount if most is None else min(amount, most)
        if most is not None:
            most -= part
        if part:
            found.append((name, part))
    return found


def _added(entries: Iterable[_Entry]) -> list[_Entry]:
    """One entry for each queue."""
    sums: defaultdict[str, int] = defaultdict(int)
    for name, amount in entries:
        sums[name] += amount
    return list(sums.items())


# What follows from them


@dataclass(frozen=True, slots=True)
class Account:
    """What a queue and all below it borrow from others, and lend to others."""

    borrowed: int = 0
    lent: int = 0


@dataclass(frozen=True, slots=True)
class Partners:
    """From whom a queue and all below it borrow how much, and to whom they lend."""

    lenders: Counter[str] = field(default_factory=Counter)
    borrowers: Counter[str] = field(default_factory=Counter)


def accounts_of(loans: Iterable[Loan], parents: Mapping[str, str]) -> dict[str, Account]:
    """By queue; those that neither borrow nor lend are left out."""
    found = {}
    for name, partners in sorted(partners_of(loans, parents).items()):
        found[name] = Account(partners.lenders.total(), partners.borrowers.total())
    return found


def partners_of(loans: Iterable[Loan], parents: Mapping[str, str]) -> dict[str, Partners]:
    """The same by the queue on the other side."""
    found: defaultdict[str, Partners] = defaultdict(Partners)
    for loan in loans:
        for name in _crossed(loan.borrower, loan, parents):
            found[name].lenders[loan.lender] += loan.amount
        for name in _crossed(loan.lender, loan, parents):
            found[name].borrowers[loan.borrower] += loan.amount
    return dict(found)


def loans_across(
    loans: Iterable[Loan], queue: str, parents: Mapping[str, str]
) -> tuple[list[Loan], list[Loan]]:
    """The loans that the queue and all below it take from others, and those that they give."""
    taken = []
    given = []
    for loan in loans:
        if queue in _crossed(loan.borrower, loan, parents):
            taken.append(loan)
        if queue in _crossed(loan.lender, loan, parents):
            given.append(loan)
    return taken, given


def _crossed(name: str, loan: Loan, parents: Mapping[str, str]) -> list[str]:
    """The queue and those above it whose edge the loan crosses: up to where it is booked.

    For that queue it is an inner matter. What is nobody's comes from outside of the whole tree.
    """
    found = []
    while name and (name != loan.level or loan.lender == NOBODY):
        found.append(name)
        name = parents.get(name, "")
    return found
