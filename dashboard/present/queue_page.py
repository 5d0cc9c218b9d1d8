"""The figures of a queue's page: its resources, its loans, and how its deserved is divided."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dashboard.http.visibility import Visibility
from dashboard.present.amounts import short_name, with_unit
from dashboard.present.bars import Span, bar_html, rectangles, scaled
from dashboard.present.loans import borrowers_of, loan_sentence
from dashboard.present.queues import page_resources
from scheduler.selectors.queues.listing import QueueBoard, QueueRow
from scheduler.selectors.queues.loans import ledgers_of

Context = dict[str, Any]
Names = Collection[str] | None  # the queues that the reader may see; None for all
_MOST_COLUMNS = 40  # as many as the style sheet lays out; one by one each can be chosen
_SHADES = 6  # colours that the style sheet has for queues side by side
_SEAM = 3  # between two of them
_ALL_SHOWN = 4
"""With more resources, tables show the first ones, and a page folds those that its queue lacks."""


def chosen_resource(wanted: str, resources: list[str]) -> str:
    """By its name or by what people call it, ?resource=gpu; "" for all."""
    for name in resources:
        if wanted.lower() in (name.lower(), short_name(name).lower()):
            return name
    return ""


def columns(wanted: str, resources: list[str]) -> tuple[str, ...]:
    """The resources that a table shows: the chosen one, the first few, or all (?resource=all)."""
    chosen = chosen_resource(wanted, resources)
    if chosen:
        return (chosen,)
    if wanted == "all":
        return tuple(resources[:_MOST_COLUMNS])
    return tuple(resources[:_ALL_SHOWN])


def resource_lines(
    board: QueueBoard,
    row: Mapping[str, Any],
    chosen: str = "",
    visible: Names = None,
) -> Context:
    """A line for each resource with its bar, figures and loans; `idle` ones have none here."""
    resources = page_resources(board)
    ledgers = ledgers_of(board, resources)
    seen = Visibility(visible)
    lines = []
    for name in resources:
        words = loan_sentence(ledgers[name], row["name"], seen)
        line = {"name": name, "title": short_name(name), "loans": words}
        lines.append(line | row["resources"][name])
    shown_lines = lines
    idle = []
    if chosen:
        shown_lines = [line for line in lines if line["name"] == chosen]
    elif len(resources) > _ALL_SHOWN:
        idle = [line for line in lines if _is_idle(line)]
    return {
        "resources": lines,
        "resource": chosen,
        "lines": [line for line in shown_lines if line not in idle],
        "idle_lines": idle,
    }


def _is_idle(line: Mapping[str, Any]) -> bool:
    if not line["limitFrom"]:
        return False
    figures = (line["allocated"], line["deserved"], line["guarantee"], line["pending"])
    return set(figures) <= {"0", "unset", "unknown"}


def idle_words(board: QueueBoard, queue: str, visible: Names = None) -> str:
    """For an empty queue: what it deserves is at work elsewhere, or waits for it."""
    row = board.row(queue)
    deserved = []
    for name, amount in _deserved(row).items():
        if amount and name != "pods":
            deserved.append(with_unit(name, amount))
    if not deserved:
        return ""
    borrowers: set[str] = set()
    for ledger in ledgers_of(board, page_resources(board)).values():
        borrowers.update(name for name, _ in borrowers_of(ledger, queue, Visibility(visible)))
    where = ", ready for it"
    if borrowers:
        where = f", lent to {', '.join(sorted(borrowers))} meanwhile"
    return f"It deserves {', '.join(deserved)}{where}."


def _deserved(row: QueueRow) -> Mapping[str, int]:
    if row.figures:
        return row.figures.deserved
    return row.deserved


def division(board: QueueBoard, name: str, resource: str) -> Context:
    """How the parent's deserved is divided among its children, and what nobody has."""
    parent = board.row(name)
    whole = _deserved(parent).get(resource, 0)
    parts: dict[str, int] = {}
    for row in board.rows:
        amount = _deserved(row).get(resource, 0)
        if row.parent == name and amount:
            parts[row.name] = amount
    given = sum(parts.values())
    shares = []
    for place, (child, amount) in enumerate(parts.items()):
        share = {"name": child, "amount": with_unit(resource, amount), "shade": place % _SHADES}
        shares.append(share)
    words = [f"{share['name']} {share['amount']}" for share in shares]
    rest = ""
    over = ""
    if given < whole:
        rest = with_unit(resource, whole - given)
        words.append(f"{rest} not assigned")
    if given > whole:
        over = with_unit(resource, given - whole)
    title = short_name(resource)
    return {
        "title": title,
        "whole": with_unit(resource, whole),
        "spans": shares,
        "rest": rest,
        "over": over,
        "bar": bar_html(
            _divided(list(parts.values()), shares, max(whole, given)),
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
