"""The map of shares: each level of the tree is a row, each queue as wide as its deserved share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString, mark_safe

from dashboard.present.amounts import shown, with_unit
from dashboard.present.row_html import queue_url
from scheduler.selectors.queues.listing import QueueBoard, QueueRow

WIDTH = 1200
LEVEL = 64
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
    label = f"Shares of {escape(resource)}"
    view = f"0 0 {WIDTH} {height}"
    return mark_safe(  # noqa: S308 - every value is escaped below
        f'<svg class="icicle" viewBox="{view}" role="group" aria-label="{label}">{drawn}</svg>'
    )


def place(board: QueueBoard, resource: str) -> Iterator[Cell]:
    """The topmost queues share the whole width.

    Children divide their parent's by what they deserve, or by weight where nothing is set.
    """
    names = {row.name for row in board.rows}
    children: dict[str, list[QueueRow]] = {}
    for row in board.rows:
        parent = row.parent if row.parent in names else ""
        children.setdefault(parent, []).append(row)
    stack = list(_divide(0, WIDTH, 0, 0, children.get("", []), resource))
    while stack:
        cell = stack.pop()
        yield cell
        below = children.get(cell.row.name, [])
        whole = _deserved(cell.row, resource)
        stack.extend(_divide(cell.x, cell.width, cell.level + 1, whole, below, resource))


def _divide(
    x: float,
    width: float,
    level: int,
    whole: int,
    queues: list[QueueRow],
    resource: str,
) -> Iterator[Cell]:
    """`whole` is what the parent deserves: what its children do not add up to stays empty."""
    sizes = [_deserved(queue, resource) for queue in queues]
    if not any(sizes):
        sizes = [queue.weight for queue in queues]
        whole = 0
    whole = max(sum(sizes), whole)
    for queue, size in zip(queues, sizes, strict=True):
        share = 0.0
        if whole:
            share = width * size / whole
        yield Cell(queue, x, share, level)
        x += share


def _deserved(row: QueueRow, resource: str) -> int:
    if row.figures is None:
        return row.deserved.amount(resource)
    return row.figures.deserved.amount(resource)


def _allocated(row: QueueRow, resource: str) -> int | None:
    """None where no session has looked at the queue yet."""
    if row.figures is None:
        return None
    return row.figures.allocated.amount(resource)


def _used_share(allocated: int | None, deserved: int) -> float:
    if not allocated:
        return 0.0
    if not deserved:
        return 1.0
    return min(1.0, allocated / deserved)


def _draw(cell: Cell, resource: str) -> str:
    if cell.width < 1:
        return ""
    row = cell.row
    deserved = _deserved(row, resource)
    allocated = _allocated(row, resource)
    text = _cell_text(cell, resource, allocated, deserved)
    title = escape(_cell_title(row, resource, allocated, deserved))
    width = max(1.0, cell.width - _GAP)
    used_width = width * _used_share(allocated, deserved)
    over = ""
    if allocated and allocated > deserved:
        over = " over"
    y = cell.level * LEVEL
    height = LEVEL - _GAP
    return (
        f'<a href="{queue_url(row.name)}" data-key="{escape(row.name)}"><title>{title}</title>'
        f'<rect class="cell" x="{cell.x:.1f}" y="{y}"'
        f' width="{width:.1f}" height="{height}" rx="4"/>'
        f'<rect class="used{over}" x="{cell.x:.1f}" y="{y + height - 10}"'
        f' width="{used_width:.1f}" height="10" rx="2"/>{text}</a>'
    )


def _cell_text(cell: Cell, resource: str, allocated: int | None, deserved: int) -> str:
    """The name and the figures, as far as there is room for them."""
    room = int((cell.width - 16) / _WORD)
    if room < 3:
        return ""
    name = cell.row.name
    if len(name) > room:
        name = name[: room - 1] + "…"
    if allocated is None:
        used = "unknown"
    else:
        used = shown(resource, allocated)
    figures = f"{used} of {with_unit(resource, deserved)} deserved"
    x = f"{cell.x + 8:.1f}"
    y = cell.level * LEVEL
    text = f'<text x="{x}" y="{y + 22}">{escape(name)}</text>'
    if len(figures) <= room:
        text += f'<text class="figures" x="{x}" y="{y + 40}">{escape(figures)}</text>'
    return text


def _cell_title(row: QueueRow, resource: str, allocated: int | None, deserved: int) -> str:
    words = []
    if allocated is None:
        words.append("not evaluated yet")
    else:
        words.append(f"{with_unit(resource, allocated)} allocated")
    if row.figures and row.figures.promised.amount(resource):
        words.append(f"{with_unit(resource, row.figures.promised.amount(resource))} promised")
    words.append(f"{with_unit(resource, deserved)} deserved")
    words.append(f"weight {row.weight}")
    return f"{row.name} ({row.state}): {', '.join(words)}."
