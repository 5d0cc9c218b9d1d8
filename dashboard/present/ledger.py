"""Who uses whose idle share, as one reader may see it: for the page, the API and CSV."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, StreamingHttpResponse

from dashboard.http.exports import as_csv, streamed
from dashboard.http.visibility import OTHER_QUEUES, Visibility
from dashboard.present.loans import NO_QUEUE
from dashboard.present.starvation import gaps
from scheduler.domain.exposure import KEPT_WORDS, Exposure, Reach, Reaches, exposures_of
from scheduler.domain.loans import NOBODY, Loan
from scheduler.domain.resources import format_quantity
from scheduler.selectors.queues.listing import QueueBoard
from scheduler.selectors.queues.loans import ledgers_of

CSV_COLUMNS: Final = ("resource", "borrower", "lender", "level", "amount", "lenderLacks")


@dataclass(frozen=True, slots=True)
class Borrower:
    """`lenders` are from whom it has how much, the largest first."""

    queue: str
    exposure: Exposure
    lenders: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Lender:
    """`lacks` is what it deserves, does not have, and has jobs waiting for."""

    queue: str
    lent: int
    lacks: int
    borrowers: tuple[tuple[str, int], ...]
    is_unassigned: bool
    """It has queues below it, and lends what it has not assigned to any."""


@dataclass(frozen=True, slots=True)
class SeenLedger:
    """`loans` have names that may be told only; loans between two queues of others are left out.

    `pairs` are the loans of lenders that lack it, the widest gap first.
    """

    resource: str
    loans: tuple[Loan, ...]
    borrowers: tuple[Borrower, ...]
    lenders: tuple[Lender, ...]
    gaps: Mapping[str, int]

    @property
    def pairs(self) -> list[Loan]:
        found = [loan for loan in self.loans if self.gaps.get(loan.lender)]
        found.sort(key=lambda loan: (-self.gaps[loan.lender], loan.lender, -loan.amount))
        return found

    @property
    def borrowed(self) -> int:
        return sum(loan.amount for loan in self.loans)

    def total(self, part: str) -> int:
        """Of all borrowers that the reader sees: asked, open, protected or kept."""
        return sum(getattr(row.exposure, part) for row in self.borrowers)


def seen_ledger(
    board: QueueBoard, resource: str, reaches: Reaches, seen: Visibility, queue: str = ""
) -> SeenLedger:
    """With a queue: only the loans that it or one below it takes or gives."""
    ledger = ledgers_of(board, [resource])[resource]
    lacking = _gaps(board, resource)
    exposures = exposures_of(ledger.loans, lacking, _of_resource(reaches, resource))
    about = _below(ledger.parents, queue)
    loans = []
    for loan in ledger.loans:
        if about is None or loan.lender in about or loan.borrower in about:
            loans.append(loan)
    visible = tuple(_visible_loans(loans, seen))
    inner = set(ledger.parents.values())
    return SeenLedger(
        resource,
        visible,
        tuple(_borrowers(visible, exposures)),
        tuple(_lenders(visible, lacking, inner)),
        {name: amount for name, amount in lacking.items() if seen.sees(name)},
    )


def _gaps(board: QueueBoard, resource: str) -> dict[str, int]:
    lacking = {}
    for row in board.rows:
        if row.is_leaf:
            for gap in gaps(row):
                if gap.resource == resource:
                    lacking[row.name] = gap.amount
    return lacking


def _of_resource(reaches: Reaches, resource: str) -> dict[str, Reach]:
    found = {}
    for (queue, name), reach in reaches.items():
        if name == resource:
            found[queue] = reach
    return found


def _below(parents: Mapping[str, str], queue: str) -> set[str] | None:
    """The queue and all below it; None for all queues."""
    if not queue:
        return None
    found = {queue}
    for name, parent in parents.items():  # parents come first
        if parent in found:
            found.add(name)
    return found


def _visible_loans(loans: Iterable[Loan], seen: Visibility) -> Iterator[Loan]:
    """One for each pair that can be told apart."""
    sums: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    for loan in loans:
        lender = _name(loan.lender, seen)
        borrower = _name(loan.borrower, seen)
        if {lender, borrower} <= {OTHER_QUEUES, NO_QUEUE}:
            continue
        sums[lender, borrower, seen.visible_queue(loan.level)] += loan.amount
    pairs = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))
    for (lender, borrower, level), amount in pairs:
        yield Loan(lender, borrower, level, amount)


def _name(queue: str, seen: Visibility) -> str:
    if queue == NOBODY:
        return NO_QUEUE
    return seen.visible_queue(queue) or OTHER_QUEUES


def _borrowers(loans: Iterable[Loan], exposures: Mapping[str, Exposure]) -> list[Borrower]:
    lenders: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for loan in loans:
        if loan.borrower != OTHER_QUEUES:
            lenders[loan.borrower].append((loan.lender, loan.amount))
    rows = [Borrower(name, exposures[name], tuple(parts)) for name, parts in lenders.items()]
    return sorted(rows, key=lambda row: (-row.exposure.borrowed, row.queue))


def _lenders(
    loans: Iterable[Loan], lacking: Mapping[str, int], inner: Iterable[str]
) -> list[Lender]:
    borrowers: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for loan in loans:
        if loan.lender not in (OTHER_QUEUES, NO_QUEUE):
            borrowers[loan.lender].append((loan.borrower, loan.amount))
    rows = []
    for name, parts in borrowers.items():
        lent = sum(amount for _, amount in parts)
        rows.append(Lender(name, lent, lacking.get(name, 0), tuple(parts), name in inner))
    return sorted(rows, key=lambda row: (-row.lent, row.queue))


# For the API and CSV


def ledger_object(ledger: SeenLedger) -> dict[str, Any]:
    return {
        "resource": ledger.resource,
        "borrowed": _quantity(ledger, ledger.borrowed),
        "loans": [_loan_object(ledger, loan) for loan in ledger.loans],
        "borrowers": [_borrower_object(ledger, row) for row in ledger.borrowers],
        "lenders": [_lender_object(ledger, row) for row in ledger.lenders],
        "starved": [_loan_object(ledger, loan) for loan in ledger.pairs],
    }


def _quantity(ledger: SeenLedger, amount: int) -> str:
    return format_quantity(ledger.resource, amount)


def _loan_object(ledger: SeenLedger, loan: Loan) -> dict[str, str]:
    return {
        "borrower": loan.borrower,
        "lender": loan.lender,
        "level": loan.level,
        "amount": _quantity(ledger, loan.amount),
        "lenderLacks": _quantity(ledger, ledger.gaps.get(loan.lender, 0)),
    }


def _borrower_object(ledger: SeenLedger, row: Borrower) -> dict[str, Any]:
    exposure = row.exposure
    return {
        "queue": row.queue,
        "borrowed": _quantity(ledger, exposure.borrowed),
        "askedBack": _quantity(ledger, exposure.asked),
        "open": _quantity(ledger, exposure.open),
        "protected": _quantity(ledger, exposure.protected),
        "protectedSeconds": round(exposure.seconds),
        "kept": _quantity(ledger, exposure.kept),
        "keptBecause": exposure.why or "",
        "message": kept_words(exposure),
    }


def kept_words(exposure: Exposure) -> str:
    if exposure.why is None:
        return ""
    return KEPT_WORDS[exposure.why]


def _lender_object(ledger: SeenLedger, row: Lender) -> dict[str, Any]:
    return {
        "queue": row.queue,
        "lent": _quantity(ledger, row.lent),
        "lacks": _quantity(ledger, row.lacks),
        "isUnassigned": row.is_unassigned,
    }


def ledger_as_csv(request: HttpRequest, ledger: SeenLedger) -> StreamingHttpResponse:
    rows = []
    for loan in ledger.loans:
        rows.append({"resource": ledger.resource, **_loan_object(ledger, loan)})
    return streamed(request, as_csv(rows, CSV_COLUMNS), "text/csv", "loans.csv")
