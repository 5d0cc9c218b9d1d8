"""The map of shares: each level of the tree is a row, each queue as wide as what it deserves of its parent's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString, mark_safe

from dashboard.present.amounts import shown, with_unit
from dashboard.present.row_html import queue_url
from scheduler.selectors.queues.listing import QueueBoard, QueueRow

WIDTH, LEVEL = 1200, 64
_GAP = 2
_WORD = 8.4  # about how wide a letter is where fonts are wide, to know whether a name fits


@dataclass(frozen=True, slots=True)
class Cell:
    """`level` counts from the topmost queue that is shown, which need not be root."""

    row: QueueRow
    x: float
    width: float
    level: int


def icicle(board: QueueBoard, resource: str) -> SafeString:
    cells = list(place(board, resource))
    height = (max((cell.level for cell in cells), default=0) + 1) * LEVEL
    drawn = "".join(_draw(cell, resource) for cell in cells)
    return mark_safe(  # noqa: S308 - every value is escaped below
        f'<svg class="icicle" viewBox="0 0 {WIDTH} {height}" role="group" aria-label="Shares of {escape(resource)}">{drawn}</svg>'
    )


def place(board: QueueBoard, resource: str) -> Iterator[Cell]:
    """The topmost queues share the whole width; children divide their parent's by what they deserve, by weight where nothing is."""
    names = {row.name for row in board.rows}
    children: dict[str, list[QueueRow]] = {}
    for row in board.rows:
        children.setdefault(row.parent if row.parent in names else "", []).append(row)
    stack = list(_divide(0, WIDTH, 0, 0, children.get("", []), resource))
    while stack:
        cell = stack.pop()
        yield cell
        below = children.get(cell.row.name, [])
        stack.extend(
            _divide(
                cell.x, cell.width, cell.level + 1, _deserved(cell.row, resource), below, resource
            )
        )


def _divide(
    x: float, width: float, level: int, whole: int, queues: list[QueueRow], resource: str
) -> Iterator[Cell]:
    """`whole` is what the parent deserves: what its children do not add up to stays empty."""
    sizes = [_deserved(queue, resource) for queue in queues]
    if not any(sizes):
        sizes, whole = [queue.weight for queue in queues], 0
    whole = max(sum(sizes), whole)
    for queue, size in zip(queues, sizes, strict=True):
        share = width * size / whole if whole else 0
        yield Cell(queue, x, share, level)
        x += share


def _deserved(row: QueueRow, resource: str) -> int:
    return row.figures.deserved.amount(resource) if row.figures else row.deserved.amount(resource)


def _draw(cell: Cell, resource: str) -> str:
    row, y = cell.row, cell.level * LEVEL
    if cell.width < 1:
        return ""
    deserved = _deserved(row, resource)
    allocated = row.figures.allocated.amount(resource) if row.figures else None
    used = 0.0 if not allocated else min(1.0, allocated / deserved) if deserved else 1.0
    text, title = (
        _words(cell, resource, allocated, deserved),
        escape(_sentence(row, resource, allocated, deserved)),
    )
    width = max(1.0, cell.width - _GAP)
    over = " over" if allocated and allocated > deserved else ""
    return (
        f'<a href="{queue_url(row.name)}" data-key="{escape(row.name)}"><title>{title}</title>'
        f'<rect class="cell" x="{cell.x:.1f}" y="{y}" width="{width:.1f}" height="{LEVEL - _GAP}" rx="4"/>'
        f'<rect class="used{over}" x="{cell.x:.1f}" y="{y + LEVEL - _GAP - 10}" width="{width * used:.1f}" height="10" rx="2"/>{text}</a>'
    )


def _words(cell: Cell, resource: str, allocated: int | None, deserved: int) -> str:
    room = int((cell.width - 16) / _WORD)
    if room < 3:
        return ""
    name = cell.row.name if len(cell.row.name) <= room else cell.row.name[: room - 1] + "…"
    figures = f"{'unknown' if allocated is None else shown(resource, allocated)} of {with_unit(resource, deserved)} deserved"
    second = (
        f'<text class="figures" x="{cell.x + 8:.1f}" y="{cell.level * LEVEL + 40}">{escape(figures)}</text>'
        if len(figures) <= room
        else ""
    )
    return f'<text x="{cell.x + 8:.1f}" y="{cell.level * LEVEL + 22}">{escape(name)}</text>{second}'


def _sentence(row: QueueRow, resource: str, allocated: int | None, deserved: int) -> str:
    used = (
        "not evaluated yet" if allocated is None else f"{with_unit(resource, allocated)} allocated"
    )
    promised = row.figures.promised.amount(resource) if row.figures else 0
    used += f", {with_unit(resource, promised)} promised" if promised else ""
    return f"{row.name} ({row.state}): {used}, {with_unit(resource, deserved)} deserved, weight {row.weight}."
