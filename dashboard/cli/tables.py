"""Tables: Volcano's padded columns in a pipe, the same columns with colour on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dashboard.cli import output

if TYPE_CHECKING:
    import rich.table

_GAP = 3
_TERMINAL_GAP = 2
# a column wider than the first may be folded, down to the second
_FOLDED_FROM = 40
_FOLDED_TO = 24


@dataclass(slots=True)
class Table:
    """`widths` are those of Volcano's layout where it has one.

    Else columns are as wide as what is in them.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]] = ()
    widths: Sequence[int] = ()
    empty: str = "No resources found"

    def lines(self) -> list[str]:
        widths = self.widths or self._column_widths()
        padded: list[str] = []
        for row in (self.columns, *self.rows):
            padded.append(_pad_row(row, widths, bool(self.widths)))
        return padded

    def _column_widths(self, gap: int = _GAP) -> list[int]:
        cells = [[cell_text(cell) for cell in row] for row in (self.columns, *self.rows)]
        widths: list[int] = []
        for index in range(len(self.columns)):
            widths.append(max(len(row[index]) for row in cells) + gap)
        return widths

    def print(self) -> None:
        if not self.rows:
            output.line(self.empty)
        elif output.on_terminal():
            output.console(at_least=self.least_width()).print(self.coloured())
        else:
            output.line("\n".join(self.lines()))

    def least_width(self) -> int:
        """On a terminal: long texts are folded, names and figures never.

        Where that is too much, the terminal breaks the lines.
        """
        least = 0
        for width in self._column_widths(_TERMINAL_GAP):
            if width > _FOLDED_FROM:
                width = min(width, _FOLDED_TO)
            least += width
        return least

    def coloured(self) -> rich.table.Table:
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            box=None,
            pad_edge=False,
            header_style="bold",
            padding=(0, _TERMINAL_GAP, 0, 0),
        )
        widths = self._column_widths(_TERMINAL_GAP)
        for index, column in enumerate(self.columns):
            side: Literal["left", "right"] = "left"
            if all(_is_number(row[index]) for row in self.rows):
                side = "right"
            is_narrow = widths[index] <= _FOLDED_FROM
            table.add_column(column, justify=side, overflow="fold", no_wrap=is_narrow)
        for row in self.rows:
            cells = []
            for cell in row:
                style = output.STATE_STYLES.get(str(cell), "")
                cells.append(Text(cell_text(cell), style=style))
            table.add_row(*cells)
        return table


def cell_text(cell: object) -> str:
    """One line, whatever is in it."""
    if not str(cell).isprintable():
        return " ".join(output.harmless(str(cell)).split())
    return str(cell)


def _pad_row(row: Sequence[object], widths: Sequence[int], volcano: bool) -> str:
    """Volcano pads the last cell too.

    A cell that fills its column keeps one blank behind it, so that rows can always be split.
    """
    last = len(widths) - 1
    cells = []
    for index, (cell, width) in enumerate(zip(row, widths, strict=True)):
        text = cell_text(cell)
        if index != last and len(text) >= width:
            width = len(text) + 1
        cells.append(text.ljust(width))
    joined = "".join(cells)
    if volcano:
        return joined
    return joined.rstrip()


def _is_number(cell: object) -> bool:
    return isinstance(cell, int)
