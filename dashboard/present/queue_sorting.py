"""The order of queues on a page: by any figure, in the whole table or among siblings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from scheduler.domain.queues import ROOT
from scheduler.domain.resources import Resources
from scheduler.selectors.queues.listing import QueueBoard, QueueRow

Row = Mapping[str, Any]
PLAIN: Final = ("name", "state", "weight", "priority", "running", "waiting")
FIGURES: Final = ("allocated", "promised", "deserved", "guarantee", "limit", "pending")
_UNKNOWN: Final = -1  # below every amount
_ENDLESS: Final = 2**63  # above every amount


def is_sortable(wanted: str, resources: Iterable[str]) -> bool:
    field = wanted.removeprefix("-")
    figure, colon, resource = field.partition(":")
    if colon:
        return figure in FIGURES and resource in set(resources)
    return field in PLAIN or field in set(resources)


def sorted_rows(board: QueueBoard, rows: list[Row], wanted: str) -> list[Row]:
    """By a plain field, by a resource (what is allocated of it) or by `figure:resource`.

    A minus in front reverses it. Equals stay in the order of their names.
    """
    value_of = _value_reader(board, wanted.removeprefix("-"))
    by_name = sorted(rows, key=lambda row: row["name"])
    if wanted.removeprefix("-") == "name":
        return by_name[:: -1 if wanted.startswith("-") else 1]
    return sorted(by_name, key=value_of, reverse=wanted.startswith("-"))


def sorted_tree(board: QueueBoard, rows: list[Row], wanted: str) -> list[Row]:
    """Siblings in that order, each with what is below it behind it."""
    names = {row["name"] for row in rows}
    children: dict[str, list[Row]] = {}
    for row in sorted_rows(board, rows, wanted):
        parent = row["parent"]
        if parent not in names or row["name"] == ROOT:
            parent = ""
        children.setdefault(parent, []).append(row)
    ordered: list[Row] = []
    waiting = children.get("", [])[::-1]
    while waiting:
        row = waiting.pop()
        ordered.append(row)
        waiting += children.pop(row["name"], [])[::-1]
    return ordered


def _value_reader(board: QueueBoard, field: str) -> Callable[[Row], Any]:
    plain: dict[str, Callable[[Row], Any]] = {
        "state": lambda row: row["state"],
        "weight": lambda row: row["weight"],
        "priority": lambda row: row["priority"],
        "running": lambda row: row["subtree"]["running"],
        "waiting": lambda row: row["subtree"]["pending"] + row["subtree"]["inqueue"],
    }
    if field in plain:
        return plain[field]
    figure, colon, resource = field.partition(":")
    if not colon:
        figure, resource = "allocated", field
    amounts = {row.name: amount_of(row, figure, resource) for row in board.rows}
    return lambda row: amounts[row["name"]]


def amount_of(row: QueueRow, figure: str, resource: str) -> int:
    """In base units, -1 where it is not known. A queue without a limit of its own comes last."""
    if figure == "guarantee":
        return row.guarantee.get(resource, 0)
    if figure == "limit":
        return row.capability.get(resource, _ENDLESS)
    now = row.figures
    if now is None:
        return _UNKNOWN
    amounts: Mapping[str, Resources] = {
        "allocated": now.allocated,
        "promised": now.promised,
        "deserved": now.deserved,
        "pending": now.asked,
    }
    return amounts[figure].amount(resource)
