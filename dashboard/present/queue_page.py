"""The figures of a queue's page: its resources, its loans, and how its deserved is divided."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from dashboard.http.visibility import Visibility
from dashboard.present.amounts import short_name, shown, with_unit
from dashboard.present.bars import Span, bar_html, rectangles, scaled
from dashboard.present.loans import Loan, ledger
from dashboard.present.queues import page_resources
from scheduler.selectors.queues.listing import QueueBoard, QueueRow

Context = dict[str, Any]
Names = Collection[str] | None  # the queues that the reader may see; None for all
_MOST_COLUMNS = 40  # as many as the style sheet lays out; one by one each can be chosen
_SHADES = 6  # colours that the style sheet has for queues side by side
_SEAM = 3  # between two of them
_ALL_SHOWN = 4
"""With more resources, tables show the first ones, and a page folds those that its queue lacks."""


def chosen_resource(wanted: str, resources: list[str]) -> str:
    """By its name or by what people call it, ?resource=gpu; "" for all."""
    return next(
        (
            name
            for name in resources
            if wanted and wanted.lower() in (name.lower(), short_name(name).lower())
        ),
        "",
    )


def columns(wanted: str, resources: list[str]) -> tuple[str, ...]:
    """The resources that a table shows: the chosen one, the first few, or all (?resource=all)."""
    chosen = chosen_resource(wanted, resources)
    if chosen:
        return (chosen,)
    return tuple(resources[:_MOST_COLUMNS] if wanted == "all" else resources[:_ALL_SHOWN])


def resource_lines(
    board: QueueBoard, row: Mapping[str, Any], chosen: str = "", visible: Names = None
) -> Context:
    """A line for each resource with its bar, figures and loans; `idle` ones have none here."""
    resources = page_resources(board)
    loans = ledger(board, resources)
    lines = [
        {
            "name": name,
            "title": short_name(name),
            "loans": _loan_words(name, row, loans.get((row["parent"], name), ()), visible),
        }
        | row["resources"][name]
        for name in resources
    ]
    shown_lines = [line for line in lines if chosen in ("", line["name"])]
    idle = [
        line
        for line in shown_lines
        if not chosen and len(resources) > _ALL_SHOWN and _is_idle(line)
    ]
    return {
        "resources": lines,
        "resource": chosen,
        "lines": [line for line in shown_lines if line not in idle],
        "idle_lines": idle,
    }


def _is_idle(line: Mapping[str, Any]) -> bool:
    figures = (line["allocated"], line["deserved"], line["guarantee"], line["pending"])
    return bool(line["limitFrom"]) and all(
        figure in ("0", "unset", "unknown") for figure in figures
    )


def _loan_words(
    resource: str, row: Mapping[str, Any], loans: Iterable[Loan], visible: Names
) -> str:
    """ "lending 76 to batch (52), archive (24)"; "borrowing 18 from team-a".

    What belongs to no sibling is the parent's.
    """
    seen = Visibility(visible)
    lent = seen.visible_shares(
        (loan.borrower, loan.amount) for loan in loans if loan.lender == row["name"]
    )
    borrowed = seen.visible_shares(
        (loan.lender or row["parent"], loan.amount)
        for loan in loans
        if loan.borrower == row["name"]
    )
    if lent:
        return f"lending {_with_parts(resource, 'to', lent)}"
    if borrowed:
        return f"borrowing {_with_parts(resource, 'from', borrowed)}"
    return ""


def _with_parts(resource: str, word: str, parts: list[tuple[str, int]]) -> str:
    whole = shown(resource, sum(amount for _, amount in parts))
    if len(parts) == 1:
        return f"{whole} {word} {parts[0][0]}"
    return f"{whole} {word} " + ", ".join(
        f"{name} ({shown(resource, amount)})" for name, amount in parts
    )


def idle_words(board: QueueBoard, queue: str, visible: Names = None) -> str:
    """For an empty queue: what it deserves is at work elsewhere, or waits for it."""
    row = next(row for row in board.rows if row.name == queue)
    deserved = [
        with_unit(name, amount)
        for name, amount in _deserved(row).items()
        if amount and name != "pods"
    ]
    if not deserved:
        return ""
    loans = [
        loan
        for (parent, _), found in ledger(board, page_resources(board)).items()
        if parent == row.parent
        for loan in found
    ]
    lent = [(loan.borrower, loan.amount) for loan in loans if loan.lender == queue]
    borrowers = sorted({name for name, _ in Visibility(visible).visible_shares(lent)})
    where = ", ready for it"
    if borrowers:
        where = f", lent to {', '.join(borrowers)} meanwhile"
    return f"It deserves {', '.join(deserved)}{where}."


def _deserved(row: QueueRow) -> Mapping[str, int]:
    if row.figures:
        return row.figures.deserved
    return row.deserved


def division(board: QueueBoard, name: str, resource: str) -> Context:
    """How the parent's deserved is divided among its children, and what nobody has."""
    parent = next(row for row in board.rows if row.name == name)
    whole = _deserved(parent).get(resource, 0)
    parts = [
        (row.name, _deserved(row).get(resource, 0)) for row in board.rows if row.parent == name
    ]
    given = sum(amount for _, amount in parts)
    shares = [
        {"name": child, "amount": with_unit(resource, amount), "shade": place % _SHADES}
        for place, (child, amount) in enumerate(part for part in parts if part[1])
    ]
    rest = max(0, whole - given)
    words = [f"{share['name']} {share['amount']}" for share in shares]
    if rest:
        words.append(f"{with_unit(resource, rest)} not assigned")
    title = short_name(resource)
    return {
        "title": title,
        "whole": with_unit(resource, whole),
        "spans": shares,
        "rest": with_unit(resource, rest) if rest else "",
        "over": with_unit(resource, given - whole) if given > whole else "",
        "bar": bar_html(
            _divided([amount for _, amount in parts if amount], shares, max(whole, given)),
            label=f"{title}: {', '.join(words)}.",
            style="stacked",
        ),
    }


def _divided(amounts: list[int], shares: list[Context], whole: int) -> str:
    spans = []
    start = 0
    for amount, share in zip(amounts, shares, strict=True):
        width = scaled(amount, whole)
        title = f"{share['name']}: {share['amount']}"
        spans.append(Span(f"shade-{share['shade']}", start, width - _SEAM, title))
        start += width
    return rectangles(spans)
