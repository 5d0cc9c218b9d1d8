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
from scheduler.domain.queue_fields import TREE_FIELDS

_FIGURES = ("allocated", "promised", "deserved", "guarantee", "limit", "pending")


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What a table of queues shows."""

    resources: tuple[str, ...]
    """The resources that have a column."""
    selectable: bool = False
    """With a box to tick in each row."""
    detailed: bool = False
    """With a cell for each figure of the one resource that is shown."""
    absolute: bool = False
    """With all bars to one scale, not each to its own limit."""


def queue_table_rows(
    rows: Iterable[Mapping[str, Any]],
    options: TableOptions,
    folded: Collection[str] = (),
    hidden: Collection[str] = (),
) -> SafeString:
    """`folded` are the queues whose children are hidden, `hidden` those that are hidden."""
    drawn = []
    for row in rows:
        text = _row_html(row, options)
        drawn.append(_with_marks(text, row["name"], folded, hidden))
    return mark_safe("".join(drawn))  # noqa: S308 - every value is escaped below


def _with_marks(text: str, name: str, folded: Collection[str], hidden: Collection[str]) -> str:
    if name in hidden:
        text = text.replace("<tr ", "<tr hidden ", 1)
    if name in folded:
        text = text.replace('aria-expanded="true"', 'aria-expanded="false"', 1)
    return text


def below_folds(rows: Iterable[Mapping[str, Any]], folded: Collection[str]) -> set[str]:
    """The queues that folds hide. Rows are in tree order: parents come before their children."""
    hidden: set[str] = set()
    for row in rows:
        if row["parent"] in hidden or row["parent"] in folded:
            hidden.add(row["name"])
    return hidden


def _row_html(row: Mapping[str, Any], options: TableOptions) -> str:
    """From the row's own memory where it was drawn with these options before."""
    if not isinstance(row, PresentedRow):
        return queue_row(row, options)
    text = row.drawn.get(options)
    if text is None:
        text = row.drawn[options] = queue_row(row, options)
    return text


def blank_queue_row(options: TableOptions) -> SafeString:
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
        **{field.name: "" for field in TREE_FIELDS},
        "subtree": zeros,
    }
    return queue_table_rows(
        [{**row, "resources": dict.fromkeys(options.resources, quota)}], options
    )


def queue_row(row: Mapping[str, Any], options: TableOptions) -> str:
    name = escape(row["name"])
    url = queue_url(row["name"])
    depth = row["depth"]
    expanded = ' aria-expanded="true"'
    if row["leaf"]:
        expanded = ""
    box = ""
    if options.selectable:
        box = (
            f'<input type="checkbox" form="bulk" name="queue" value="{name}"'
            f' aria-label="Select {name}">'
        )
    quotas = row["resources"]
    shown = [resource for resource in options.resources if resource in quotas]
    cells = []
    for resource in shown:
        cells.append(quota_cell(resource, quotas[resource], absolute=options.absolute))
    if options.detailed:
        for resource in shown:
            cells.append(figure_cells(resource, quotas[resource]))
    return (
        f'<tr role="row" data-key="{name}" data-parent="{escape(row["parent"])}"'
        f' data-is="{" ".join(row["is"])}" aria-level="{depth + 1}"{expanded}'
        f' class="level-{depth}">'
        f'<td role="rowheader" class="c-name">{box}<span class="twisty"></span>'
        f'<a href="{url}">{name}</a>{warning_mark(row["warnings"])}'
        f"{row_texts(row)}</td>"
        f'<td role="gridcell" class="c-state">{state_badge(row["state"])}'
        f'<small data-f="stateNote">{escape(row["stateNote"])}</small></td>'
        f'<td role="gridcell" class="c-weight"><span class="key">weight </span>'
        f'<span data-f="weight">{row["weight"]}</span></td>'
        f"{''.join(cells)}"
        f'<td role="gridcell" class="c-gangs">{gang_counts(row["subtree"])}</td>'
        f'<td role="gridcell" class="c-act">'
        f'<a class="row-act" href="{url}actions/" aria-label="Actions for {name}">⋯</a>'
        f"</td></tr>"
    )


def row_texts(row: Mapping[str, Any]) -> str:
    """What people wrote about the queue. The element is there without a text too: one may come."""
    texts = []
    for field in TREE_FIELDS:
        text = escape(row[field.name])
        texts.append(f'<small class="row-text" data-text="{field.name}">{text}</small>')
    return "".join(texts)


def figure_cells(resource: str, quota: Mapping[str, Any]) -> str:
    return "".join(_figure_cell(resource, field, quota[field]) for field in _FIGURES)


def _figure_cell(resource: str, field: str, figure: str) -> str:
    return (
        f'<td role="gridcell" class="c-num" data-r="{escape(resource)}" data-n="{field}">'
        f'<span class="key">{field} </span><span data-v>{escape(figure)}</span></td>'
    )


def queue_url(name: str) -> str:
    """As `reverse("queue")` gives it, but quicker: every row needs it."""
    return f"/queues/{quote(name, safe='')}/"


def state_badge(state: str) -> str:
    return f'<span class="state" data-f="state" data-state="{escape(state)}">{escape(state)}</span>'


def warning_mark(warnings: list[str]) -> str:
    """How many there are, with their text on hover. The element is always there, for later ones."""
    hidden = " hidden"
    if warnings:
        hidden = ""
    title = escape(" · ".join(warnings))
    return f'<span class="warn" data-f="warnings" title="{title}"{hidden}>{len(warnings)}</span>'


def gang_counts(subtree: Mapping[str, int]) -> str:
    waiting = subtree["pending"] + subtree["inqueue"]
    return (
        f'<span data-f="running">{subtree["running"]}</span> running'
        f'<small><span data-f="waiting">{waiting}</span> waiting</small>'
    )


def quota_cell(resource: str, quota: Mapping[str, Any], *, absolute: bool = False) -> str:
    kind = "c-res nil"
    if is_in_use(quota):
        kind = "c-res"
    bar = quota_bar(quota, absolute=absolute)
    return (
        f'<td role="gridcell" class="{kind}" data-r="{escape(resource)}">{bar}'
        f'<div class="line"><span class="figure" data-f="text">{escape(quota["text"])}</span>'
        f' <span class="note" data-f="note">{escape(quota["note"])}</span></div>'
        f'<small>deserved <span data-f="deserved">{escape(quota["deserved"])}</span>'
        f' · pending <span data-f="pending">{escape(quota["pending"])}</span></small></td>'
    )


def is_in_use(quota: Mapping[str, Any]) -> bool:
    """Something is allocated, promised or asked for. Other figures are shown paler."""
    return (quota["allocated"], quota["promised"], quota["pending"]) != ("0", "0", "0")
