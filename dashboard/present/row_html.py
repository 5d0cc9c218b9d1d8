"""Rows of live tables as HTML, put together from prepared pieces.

A template loop over a thousand queues takes seventy times as long. The page's script finds its
places by `data-f` and puts values into them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import quote

from django.utils.safestring import SafeString, mark_safe

from dashboard.present.bars import BAR_WIDTH
from dashboard.present.queues import PresentedRow
from dashboard.present.quotas import quota_bar

_FIGURES = ("allocated", "promised", "deserved", "guarantee", "limit", "pending")


@dataclass(frozen=True, slots=True)
class Manner:
    """How rows are drawn: which resources have a column, with a box to tick or not, with a cell for each figure of the one resource that
    is shown, and with all bars to one scale or each to its own limit."""

    resources: tuple[str, ...]
    selectable: bool = False
    detailed: bool = False
    absolute: bool = False


def queue_table_rows(
    rows: Iterable[Mapping[str, Any]],
    manner: Manner,
    folded: Collection[str] = (),
    hidden: Collection[str] = (),
) -> SafeString:
    """`folded` are the queues whose children are not to be seen, `hidden` those that are not to be seen themselves."""
    drawn = [_marked(_drawn(row, manner), row["name"], folded, hidden) for row in rows]
    return mark_safe("".join(drawn))  # noqa: S308 - every value is escaped below


def _marked(text: str, name: str, folded: Collection[str], hidden: Collection[str]) -> str:
    if name in hidden:
        text = text.replace("<tr ", "<tr hidden ", 1)
    return (
        text.replace('aria-expanded="true"', 'aria-expanded="false"', 1) if name in folded else text
    )


def below_folds(rows: Iterable[Mapping[str, Any]], folded: Collection[str]) -> set[str]:
    """What folds hide. Rows stand in the order of the tree, so that a parent is known to be hidden before its children come."""
    hidden: set[str] = set()
    for row in rows:
        if row["parent"] in hidden or row["parent"] in folded:
            hidden.add(row["name"])
    return hidden


def _drawn(row: Mapping[str, Any], manner: Manner) -> str:
    """From the row's own memory where it was drawn in this manner before."""
    if not isinstance(row, PresentedRow):
        return queue_row(row, manner)
    text = row.drawn.get(manner)
    if text is None:
        text = row.drawn[manner] = queue_row(row, manner)
    return text


def blank_queue_row(manner: Manner) -> SafeString:
    """A row without values, for queues that appear while the page is open."""
    zeros = dict.fromkeys(("pending", "inqueue", "running", "unknown", "completed"), 0)
    texts = ("text", "note", "label", "figures", "limitFrom", "bar", *_FIGURES)
    quota = {**dict.fromkeys(texts, ""), "scale": BAR_WIDTH}
    row = {
        "name": "-",
        "parent": "",
        "depth": 0,
        "leaf": True,
        "state": "",
        "stateNote": "",
        "is": [],
        "weight": "",
        "warnings": [],
        "subtree": zeros,
    }
    return queue_table_rows([{**row, "resources": dict.fromkeys(manner.resources, quota)}], manner)


def queue_row(row: Mapping[str, Any], manner: Manner) -> str:
    name = escape(row["name"])
    expanded = "" if row["leaf"] else ' aria-expanded="true"'
    box = (
        f'<input type="checkbox" form="bulk" name="queue" value="{name}" aria-label="Select {name}">'
        if manner.selectable
        else ""
    )
    quotas = row["resources"]
    shown = [resource for resource in manner.resources if resource in quotas]
    cells = "".join(
        quota_cell(resource, quotas[resource], absolute=manner.absolute) for resource in shown
    )
    if manner.detailed:
        cells += "".join(figure_cells(resource, quotas[resource]) for resource in shown)
    return (
        f'<tr role="row" data-key="{name}" data-parent="{escape(row["parent"])}"'
        f' data-is="{" ".join(row["is"])}" aria-level="{row["depth"] + 1}"{expanded} class="level-{row["depth"]}">'
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


def quota_cell(resource: str, quota: Mapping[str, Any], *, absolute: bool = False) -> str:
    kind = "c-res" if is_in_use(quota) else "c-res nil"
    bar = quota_bar(quota, absolute=absolute)
    return (
        f'<td role="gridcell" class="{kind}" data-r="{escape(resource)}">{bar}'
        f'<div class="line"><span class="figure" data-f="text">{escape(quota["text"])}</span>'
        f' <span class="note" data-f="note">{escape(quota["note"])}</span></div>'
        f'<small>deserved <span data-f="deserved">{escape(quota["deserved"])}</span>'
        f' · pending <span data-f="pending">{escape(quota["pending"])}</span></small></td>'
    )


def is_in_use(quota: Mapping[str, Any]) -> bool:
    """Something is allocated, promised or asked for: what is none of these steps back."""
    return (quota["allocated"], quota["promised"], quota["pending"]) != ("0", "0", "0")
