"""The tree of queues in a terminal: branches, states, figures and bars.

A bar shows what is allocated against what is deserved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from dashboard.cli import amounts, output
from dashboard.cli.output import Format
from dashboard.cli.tables import Table

Row = Mapping[str, Any]
_BOXES = ("├─ ", "└─ ", "│  ", "   ")
_ASCII = ("|- ", "`- ", "|  ", "   ")
_BAR_CELLS = 12
_ENDLESS = 10_000  # wider than any table


def print_trees(trees: Sequence[Row], resource: str, form: Format) -> None:
    """Several where the reader may see parts of the tree, and not what they have in common."""
    nodes = []
    for tree in trees:
        for node in _branches(tree):
            nodes.append(node)
    if form is Format.NAME:
        for _, queue in nodes:
            output.line(output.name_of(queue))
        return
    if resource:
        resources = [resource]
    else:
        resources = _shown(trees, form is Format.WIDE)
    if output.on_terminal():
        _print_coloured(nodes, resources)
    else:
        output.line("\n".join(_plain(nodes, resources).lines()))


def _branches(queue: Row, before: str = "", own: str = "") -> Iterator[tuple[str, Row]]:
    """Each queue with the branch in front of its name, parents first, children by name."""
    inner, last, through, clear = _ASCII
    if output.takes_boxes():
        inner, last, through, clear = _BOXES
    yield before + own, queue
    children = sorted(queue["children"], key=lambda child: child["metadata"]["name"])
    below = before + {inner: through, last: clear}.get(own, "")
    for child in children:
        branch = inner
        if child is children[-1]:
            branch = last
        yield from _branches(child, below, branch)


def _shown(trees: Sequence[Row], wide: bool) -> list[str]:
    """The resources with a column: all with `-o wide`, else CPU, memory and the special ones."""
    names: set[str] = set()
    for tree in trees:
        names.update(tree["status"]["allocated"])
        names.update(tree["status"]["deserved"])
        names.update(tree["spec"]["capability"])
    ordered = amounts.in_order(names)
    if wide:
        return ordered
    return [name for name in ordered if _is_of_interest(name)][:3]


def _is_of_interest(resource: str) -> bool:
    return resource not in ("pods", "ephemeral-storage") and "hugepages" not in resource


def _cells(branch: str, queue: Row) -> list[object]:
    status = queue["status"]
    below = status["subtree"]
    inherited = status["closedBy"] or status["suspendedBy"]
    state = status["state"]
    if inherited:
        state += f" (by {inherited})"
    return [
        branch + queue["metadata"]["name"],
        state,
        queue["spec"]["weight"],
        below["running"],
        below["pending"] + below["inqueue"],
    ]


def figure(queue: Row, resource: str) -> str:
    """`22/16`: allocated of deserved; `22+4/16` where 4 are promised to pods that wait."""
    status = queue["status"]
    allocated = status["allocated"].get(resource, "0")
    deserved = status["deserved"].get(resource, "0")
    promised = status.get("promised", {}).get(resource)
    if promised:
        return f"{allocated}+{promised}/{deserved}"
    return f"{allocated}/{deserved}"


_COLUMNS = ("Queue", "State", "Weight", "Running", "Waiting")
_NARROW = {"Queue": "Queue", "State": "State", "Running": "Run", "Waiting": "Wait"}
# From the widest to the narrowest: whether all columns are shown, and how long the bars are.
_FORMS = ((True, _BAR_CELLS), (True, 8), (True, 5), (False, 5), (False, 4), (False, 3), (False, 0))


def _plain(nodes: Sequence[tuple[str, Row]], resources: Sequence[str]) -> Table:
    rows = []
    for branch, queue in nodes:
        figures = [figure(queue, resource) for resource in resources]
        rows.append([*_cells(branch, queue), *figures])
    return Table((*_COLUMNS, *resources), rows)


def _print_coloured(nodes: Sequence[tuple[str, Row]], resources: Sequence[str]) -> None:
    """With the longest bars that the terminal has room for, or none.

    Names and figures are always whole.
    """
    room = output.console().width
    endless = output.console(at_least=_ENDLESS)
    for is_whole, cells in _FORMS:
        table = _coloured(nodes, resources, is_whole, cells)
        width = endless.measure(table).maximum
        if width <= room:
            break
    output.console(at_least=width).print(table)


def _coloured(
    nodes: Sequence[tuple[str, Row]],
    resources: Sequence[str],
    is_whole: bool,
    cells: int,
) -> Any:
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    own = _NARROW
    if is_whole:
        own = {column: column for column in _COLUMNS}
    for column, title in own.items():
        side: Literal["left", "right"] = "left"
        if column in _COLUMNS[2:]:
            side = "right"
        table.add_column(title, no_wrap=True, justify=side)
    for resource in resources:
        table.add_column(amounts.short_name(resource), no_wrap=True)
    for branch, queue in nodes:
        shown = dict(zip(_COLUMNS, _cells(branch, queue), strict=True))
        styles = {"State": output.STATE_STYLES.get(queue["status"]["state"], "")}
        texts = []
        for column in own:
            texts.append(Text(str(shown[column]), style=styles.get(column, "")))
        table.add_row(*texts, *(_bar(queue, resource, cells) for resource in resources))
    table.caption = _caption(cells)
    return table


def _caption(cells: int) -> str:
    if not cells:
        return "allocated/deserved; +4 are promised"
    return (
        f"Bars: allocated against deserved; {_bar_characters()[1]} is borrowed beyond it; +4 are "
        "promised."
    )


def _bar_characters() -> tuple[str, str, str]:
    if output.takes_boxes():
        return ("█", "▒", "·")
    return ("#", "+", ".")


def _bar(queue: Row, resource: str, cells: int) -> Any:
    from rich.text import Text

    allocated = amounts.value(queue["status"]["allocated"].get(resource, "0"))
    deserved = amounts.value(queue["status"]["deserved"].get(resource, "0"))
    if not cells:
        style = ""
        if allocated > deserved:
            style = "yellow"
        return Text(figure(queue, resource), style=style)
    own, borrowed, free = bar_cells(allocated, deserved, cells)
    full, over, empty = _bar_characters()
    text = Text(full * own, style="green")
    text.append(over * borrowed, style="yellow")
    text.append(empty * free, style="dim")
    text.append(f" {figure(queue, resource)}")
    return text


def bar_cells(allocated: float, deserved: float, cells: int = _BAR_CELLS) -> tuple[int, int, int]:
    """Cells of own, of borrowed and of free. What is there at all has a cell, however small."""
    whole = max(allocated, deserved)
    if whole <= 0:
        return 0, 0, cells
    own = _at_least_one(min(allocated, deserved), whole, cells)
    borrowed = min(_at_least_one(allocated - deserved, whole, cells), cells - own)
    if allocated > deserved and not borrowed:
        own -= 1
        borrowed = 1
    return own, borrowed, cells - own - borrowed


def _at_least_one(part: float, whole: float, cells: int) -> int:
    if part > 0:
        return max(1, min(cells, round(cells * part / whole)))
    return 0
