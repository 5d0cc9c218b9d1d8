"""Rows of live tables as HTML, put together from prepared pieces: a template loop over a thousand queues takes seventy times as long.

The page's script finds its places by `data-f` and draws the bar's rectangles in the same order, so what is drawn here and what is patched
there must agree; tests/browser compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any
from urllib.parse import quote

from django.utils.safestring import SafeString, mark_safe

from dashboard.presenters import PresentedRow

_FIGURES = ("allocated", "deserved", "guarantee", "limit", "pending")
_RECTANGLES = ("ask", "use", "borrow", "lend", "over", "guarantee", "deserved")


def queue_table_rows(
    rows: Iterable[Mapping[str, Any]], resources: Iterable[str], *, selectable: bool = False, detailed: bool = False
) -> SafeString:
    """`selectable` gives each row a box to tick; `detailed` adds a cell for each figure of the one resource that is shown."""
    manner = (tuple(resources), selectable, detailed)
    return mark_safe("".join([_drawn(row, manner) for row in rows]))  # noqa: S308 - every value is escaped below


def _drawn(row: Mapping[str, Any], manner: tuple[tuple[str, ...], bool, bool]) -> str:
    """From the row's own memory where it was drawn in this manner before."""
    if not isinstance(row, PresentedRow):
        return queue_row(row, *manner)
    text = row.drawn.get(manner)
    if text is None:
        text = row.drawn[manner] = queue_row(row, *manner)
    return text


def blank_queue_row(resources: Iterable[str], *, selectable: bool = False, detailed: bool = False) -> SafeString:
    """A row without values, for queues that appear while the page is open."""
    zeros = dict.fromkeys(("pending", "inqueue", "running", "unknown", "completed"), 0)
    quota = dict.fromkeys(("text", "note", "label", "limitFrom", *_FIGURES), "") | {"bar": [0] * 2 * len(_RECTANGLES)}
    row = {
        "name": "-",
        "parent": "",
        "depth": 0,
        "leaf": True,
        "state": "",
        "stateNote": "",
        "weight": "",
        "warnings": [],
        "subtree": zeros,
    }
    shown = list(resources)
    return queue_table_rows([{**row, "resources": dict.fromkeys(shown, quota)}], shown, selectable=selectable, detailed=detailed)


def queue_row(row: Mapping[str, Any], resources: tuple[str, ...], selectable: bool, detailed: bool) -> str:
    name = escape(row["name"])
    expanded = "" if row["leaf"] else ' aria-expanded="true"'
    box = f'<input type="checkbox" form="bulk" name="queue" value="{name}" aria-label="Select {name}">' if selectable else ""
    quotas = row["resources"]
    cells = "".join(quota_cell(resource, quotas[resource]) for resource in resources if resource in quotas)
    if detailed:
        cells += "".join(figure_cells(resource, quotas[resource]) for resource in resources if resource in quotas)
    return (
        f'<tr role="row" data-key="{name}" data-parent="{escape(row["parent"])}"'
        f' aria-level="{row["depth"] + 1}"{expanded} class="level-{row["depth"]}">'
        f'<td role="rowheader" class="c-name">{box}<span class="twisty"></span>'
        f'<a href="{queue_url(row["name"])}">{name}</a>{warning_mark(row["warnings"])}</td>'
        f'<td role="gridcell" class="c-state">{state_badge(row["state"])}<small data-f="stateNote">{escape(row["stateNote"])}</small></td>'
        f'<td role="gridcell" class="c-weight"><span class="key">weight </span><span data-f="weight">{row["weight"]}</span></td>'
        f'{cells}<td role="gridcell" class="c-gangs">{gang_counts(row["subtree"])}</td>'
        f'<td role="gridcell" class="c-act">'
        f'<a class="row-act" href="{queue_url(row["name"])}actions/" aria-label="Actions for {name}">⋯</a></td></tr>'
    )


def figure_cells(resource: str, quota: Mapping[str, Any]) -> str:
    return "".join(
        f'<td role="gridcell" class="c-num" data-r="{escape(resource)}" data-n="{field}"><span class="key">{field} </span>'
        f"<span data-v>{escape(quota[field])}</span></td>"
        for field in _FIGURES
    )


def queue_url(name: str) -> str:
    """As `reverse("queue")` gives it, without the price: it is asked twice a row."""
    return f"/queues/{quote(name, safe='')}/"


def state_badge(state: str) -> str:
    return f'<span class="state" data-f="state" data-state="{escape(state)}">{escape(state)}</span>'


def warning_mark(warnings: list[str]) -> str:
    """A count that can be read and hovered; there is always an element, so that a warning can appear later."""
    hidden = "" if warnings else " hidden"
    return f'<span class="warn" data-f="warnings" title="{escape(" · ".join(warnings))}"{hidden}>{len(warnings)}</span>'


def gang_counts(subtree: Mapping[str, int]) -> str:
    waiting = subtree["pending"] + subtree["inqueue"]
    return f'<span data-f="running">{subtree["running"]}</span> running<small><span data-f="waiting">{waiting}</span> waiting</small>'


def quota_cell(resource: str, quota: Mapping[str, Any]) -> str:
    return (
        f'<td role="gridcell" class="c-res" data-r="{escape(resource)}">{bar(quota)}'
        f'<div class="line"><span class="figure" data-f="text">{escape(quota["text"])}</span>'
        f' <span class="note" data-f="note">{escape(quota["note"])}</span></div>'
        f'<small>deserved <span data-f="deserved">{escape(quota["deserved"])}</span>'
        f' · pending <span data-f="pending">{escape(quota["pending"])}</span></small></td>'
    )


def bar(quota: Mapping[str, Any]) -> str:
    """The bar of one resource. Its rectangles are styled by class and placed by attributes: the page allows no inline style."""
    inherited = " inherited" if quota["limitFrom"] else ""
    numbers = quota["bar"]
    rectangles = "".join(
        [
            f'<rect class="{kind}" x="{numbers[2 * place]}" width="{numbers[2 * place + 1]}"/>'
            for place, kind in enumerate(_RECTANGLES)
            if numbers[2 * place + 1]
        ]
    )
    return (
        f'<svg class="bar{inherited}" viewBox="0 0 1000 16" preserveAspectRatio="none" role="img" aria-label="{escape(quota["label"])}">'
        f"{rectangles}</svg>"
    )
