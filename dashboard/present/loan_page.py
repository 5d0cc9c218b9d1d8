"""The page of loans: sentences, bars of how exposed a queue is, and the matrix, folded."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from django.utils.safestring import SafeString

from dashboard.http.visibility import OTHER_QUEUES
from dashboard.present.amounts import short_name, shown, with_unit
from dashboard.present.bars import Span, bar_html, rectangles, scaled
from dashboard.present.ledger import Borrower, Lender, SeenLedger, kept_words
from dashboard.present.loans import NO_QUEUE, with_parts
from dashboard.templatetags.times import in_words
from scheduler.domain.loans import Loan
from scheduler.domain.plans import counted

FIRST_ROWS: Final = 50
"""Of each list; the others are folded."""
MOST_COLUMNS: Final = 10
MOST_LINES: Final = 20
_PARTS: Final = {
    "asked": ("over", "can be taken back now: its lender lacks it"),
    "open": ("borrow", "can be taken back when its lender asks"),
    "protected": ("promise", "protected for now"),
    "kept": ("use", "cannot be taken back"),
}
_BORROWERS: Final = {
    "word": "borrower",
    "amount": "Borrowed",
    "others": "From",
    "last": "Exposed to reclaim",
    "row": "insights/_loan_borrower.html",
}
_LENDERS: Final = {
    "word": "lender",
    "amount": "Lent",
    "others": "To",
    "last": "Lacks",
    "row": "insights/_loan_lender.html",
}


def present_ledger(ledger: SeenLedger) -> dict[str, Any]:
    borrowers = [_borrower(ledger, row) for row in ledger.borrowers]
    lenders = [_lender(ledger, row) for row in ledger.lenders]
    pairs = [_pair(ledger, loan) for loan in ledger.pairs]
    return {
        "title": short_name(ledger.resource),
        "totals": _totals(ledger),
        "has_loans": bool(borrowers or lenders),
        "tables": [_table(_BORROWERS, borrowers), _table(_LENDERS, lenders)],
        "pairs": pairs[:FIRST_ROWS],
        "more_pairs": pairs[FIRST_ROWS:],
        "matrix": matrix(ledger),
    }


def _table(heads: dict[str, str], rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {**heads, "entries": rows[:FIRST_ROWS], "more": rows[FIRST_ROWS:]}


def _totals(ledger: SeenLedger) -> list[dict[str, str]]:
    whole = {"title": "Borrowed", "amount": with_unit(ledger.resource, ledger.borrowed)}
    rows = [{**whole, "note": counted(len(ledger.borrowers), "queue")}]
    titles = {
        "asked": ("Asked back", "lenders lack it, and could take it now"),
        "open": ("Open to reclaim", "if lenders asked"),
        "protected": ("Protected", "for a while"),
        "kept": ("Not reclaimable", ""),
    }
    for part, (title, note) in titles.items():
        amount = with_unit(ledger.resource, ledger.total(part))
        rows.append({"title": title, "amount": amount, "note": note})
    return rows


def _borrower(ledger: SeenLedger, row: Borrower) -> dict[str, Any]:
    parts = with_parts(ledger.resource, "from", list(row.lenders))
    return {
        "queue": row.queue,
        "amount": with_unit(ledger.resource, row.exposure.borrowed),
        "sentence": f"borrows {parts}",
        "bar": _bar(ledger, row),
        "exposure": exposure_words(ledger.resource, row),
    }


def exposure_words(resource: str, row: Borrower) -> str:
    """ "4 asked back, 6 open, 5 protected for another 2 min, 3 kept: …"."""
    exposure = row.exposure
    words = []
    if exposure.asked:
        words.append(f"{shown(resource, exposure.asked)} asked back")
    if exposure.open:
        words.append(f"{shown(resource, exposure.open)} open to reclaim")
    if exposure.protected:
        protected = f"{shown(resource, exposure.protected)} protected"
        if exposure.seconds:
            protected += f" for up to {in_words(exposure.seconds)}"
        words.append(protected)
    if exposure.kept:
        words.append(f"{shown(resource, exposure.kept)} not reclaimable: {kept_words(exposure)}")
    return ", ".join(words)


def _bar(ledger: SeenLedger, row: Borrower) -> SafeString:
    spans = []
    start = 0
    for part, (style, words) in _PARTS.items():
        amount = getattr(row.exposure, part)
        width = scaled(amount, row.exposure.borrowed)
        title = f"{with_unit(ledger.resource, amount)} {words}"
        spans.append(Span(style, start, width, title))
        start += width
    return bar_html(rectangles(spans))


def _lender(ledger: SeenLedger, row: Lender) -> dict[str, Any]:
    lacks = ""
    if row.lacks:
        lacks = with_unit(ledger.resource, row.lacks)
    return {
        "queue": row.queue,
        "amount": with_unit(ledger.resource, row.lent),
        "sentence": f"lends {with_parts(ledger.resource, 'to', list(row.borrowers))}",
        "is_unassigned": row.is_unassigned,
        "lacks": lacks,
    }


def _pair(ledger: SeenLedger, loan: Loan) -> dict[str, Any]:
    return {
        "lender": loan.lender,
        "borrower": loan.borrower,
        "is_linked": loan.borrower != OTHER_QUEUES,
        "lacks": with_unit(ledger.resource, ledger.gaps[loan.lender]),
        "amount": with_unit(ledger.resource, loan.amount),
    }


def matrix(ledger: SeenLedger) -> dict[str, Any] | None:
    """Borrowers down, lenders across: only those with a loan, the largest first.

    What does not fit is the last line and the last column. None where a list says it all.
    """
    down = _ranks([(loan.borrower, loan.amount) for loan in ledger.loans], MOST_LINES)
    across = _ranks([(loan.lender, loan.amount) for loan in ledger.loans], MOST_COLUMNS)
    if len(down) < 2 or len(across) < 2:
        return None
    cells: defaultdict[tuple[int, int], int] = defaultdict(int)
    for loan in ledger.loans:
        place = (down[loan.borrower], across[loan.lender])
        cells[place] += loan.amount
    heads = _heads(across, MOST_COLUMNS)
    lines = []
    for number, name in enumerate(_heads(down, MOST_LINES)):
        amounts = [cells[number, column] for column in range(len(heads))]
        row = [shown(ledger.resource, amount) if amount else "" for amount in amounts]
        lines.append({"name": name, "cells": row, "sum": shown(ledger.resource, sum(amounts))})
    sums = []
    for column in range(len(heads)):
        amount = sum(cells[number, column] for number in range(len(lines)))
        sums.append(shown(ledger.resource, amount))
    return {
        "lenders": heads,
        "lines": lines,
        "sums": sums,
        "sum": shown(ledger.resource, ledger.borrowed),
    }


def _ranks(parts: list[tuple[str, int]], most: int) -> dict[str, int]:
    """The place of each name, the largest first; all beyond the most share the last place."""
    sums: defaultdict[str, int] = defaultdict(int)
    for name, amount in parts:
        sums[name] += amount
    ordered = sorted(sums, key=lambda name: (-sums[name], name))
    if len(ordered) <= most:
        return {name: place for place, name in enumerate(ordered)}
    return {name: min(place, most - 1) for place, name in enumerate(ordered)}


def _heads(ranks: dict[str, int], most: int) -> list[dict[str, Any]]:
    heads: list[dict[str, Any]] = []
    names = list(ranks)
    for name in names[:most]:
        heads.append({"name": name, "is_queue": name not in (OTHER_QUEUES, NO_QUEUE)})
    if len(names) > most:
        heads[-1] = {"name": f"{len(names) - most + 1} others", "is_queue": False}
    return heads
