"""The outcome of a session as tables for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from scheduler.domain.queues import ROOT, QueueTree
from scheduler.domain.resources import Resources, format_quantity
from scheduler.domain.snapshot import Snapshot
from scheduler.engine.decisions import Bind, Evict, Outcome, QueueFigures
from scheduler.scenarios.running import Run

WIDTH_OF_A_PIPE = 140


def console_for(out: Any) -> Console:
    """A terminal says how wide it is. A file or a pipe gets a fixed width."""
    if out.isatty():
        return Console(file=out, highlight=False)
    return Console(file=out, highlight=False, width=WIDTH_OF_A_PIPE)


def write_json(out: TextIO, documents: list[dict[str, Any]]) -> None:
    """One document as an object, several as a list."""
    whole: object = documents
    if len(documents) == 1:
        whole = documents[0]
    out.write(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")


def print_run(console: Console, run: Run, heading: str) -> None:
    console.print(Rule(Text(heading), align="left"))
    console.print(Group(*_sections(run)))


def _sections(run: Run) -> Iterator[RenderableType]:
    outcome = run.outcome
    yield _queue_table(run.snapshot, outcome)
    yield _titled("Bound", _bound_table(outcome))
    yield _titled("Evicted", _eviction_table(outcome))
    yield _titled("Keeps a place", _reservation_table(outcome))
    yield _titled("Waits", _waiting_table(run.snapshot, outcome))
    for warning in outcome.warnings:
        yield Text(f"warning: {warning}", style="yellow")


def _titled(title: str, table: Table) -> RenderableType:
    if not table.row_count:
        return Text(f"{title}: nothing", style="dim")
    return Padding(Group(Text(title, style="bold"), table), (1, 0, 0, 0))


def _empty_table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _queue_table(snapshot: Snapshot, outcome: Outcome) -> Table:
    table = _empty_table("QUEUE", "STATE", "DESERVED", "ALLOCATED", "REQUEST", "SHARE", "")
    tree = QueueTree(queue.spec for queue in snapshot.queues)
    states = {}
    for queue in snapshot.queues:
        states[queue.name] = queue.state.value
    for name, depth in _in_tree_order(tree, outcome):
        figures = outcome.queues[name]
        table.add_row(
            "  " * depth + escape(name),
            states.get(name, ""),
            _amounts(figures.deserved),
            _amounts(figures.allocated),
            _amounts(figures.request),
            f"{figures.share:.2f}",
            _overused_mark(figures),
        )
    return table


def _overused_mark(figures: QueueFigures) -> Text:
    if figures.overused:
        return Text("overused", style="yellow")
    return Text("")


def _in_tree_order(tree: QueueTree, outcome: Outcome) -> Iterator[tuple[str, int]]:
    """Each queue with its depth, parents before children. Queues outside the tree come last."""
    names = tree.subtree_names(ROOT)
    for name in dict.fromkeys([*names, *outcome.queues]):
        if name in outcome.queues:
            yield name, _depth(tree, name)


def _depth(tree: QueueTree, name: str) -> int:
    if name not in tree:
        return 0
    return tree.depth(name)


def _amounts(resources: Resources) -> str:
    """One line for each resource. `pods` only limits nodes and is left out."""
    lines = []
    for name, amount in resources.items():
        if amount and name != "pods":
            lines.append(f"{format_quantity(name, amount)} {name}")
    return escape("\n".join(lines)) or "-"


def _bound_table(outcome: Outcome) -> Table:
    table = _empty_table("PODGROUP", "QUEUE", "PODS", "NODES")
    for podgroup, binds in _binds_by_podgroup(outcome).items():
        pods = str(len(binds))
        if any(bind.borrowed for bind in binds):
            pods += " (borrowed)"
        nodes = _counted(bind.node for bind in binds)
        table.add_row(escape(podgroup), escape(binds[0].queue), pods, escape(nodes))
    return table


def _binds_by_podgroup(outcome: Outcome) -> dict[str, list[Bind]]:
    found: dict[str, list[Bind]] = {}
    for bind in outcome.binds:
        found.setdefault(bind.podgroup, []).append(bind)
    return found


def _counted(nodes: Iterable[str]) -> str:
    """ "n1 ×2, n2": each node once."""
    parts = []
    for node, count in sorted(Counter(nodes).items()):
        parts.append(f"{node} ×{count}" if count > 1 else node)
    return ", ".join(parts)


def _eviction_table(outcome: Outcome) -> Table:
    table = _empty_table("POD", "QUEUE", "NODE", "FOR", "BY", "WHY")
    for eviction in outcome.evictions:
        cells = (
            eviction.pod,
            eviction.queue,
            eviction.node,
            eviction.beneficiary or "-",
            eviction.action,
            _why(eviction),
        )
        table.add_row(*map(escape, cells))
    return table


def _why(eviction: Evict) -> str:
    """Its reason if that says more than the action, otherwise how near the two queues are."""
    if eviction.reason != eviction.action:
        return eviction.reason
    if eviction.level:
        return f"both are below {eviction.level}"
    return "-"


def _reservation_table(outcome: Outcome) -> Table:
    table = _empty_table("POD", "NODE", "UNTIL SESSION")
    for reservation in outcome.reservations:
        table.add_row(escape(reservation.pod), escape(reservation.node), str(reservation.expires))
    return table


def _waiting_table(snapshot: Snapshot, outcome: Outcome) -> Table:
    table = _empty_table("PODGROUP", "QUEUE", "PHASE", "REASON", "WHY")
    queue_rows = dict(zip(snapshot.groups.key, snapshot.groups.queue, strict=True))
    for podgroup, reason in outcome.reasons.items():
        table.add_row(
            escape(podgroup),
            escape(_queue_name(snapshot, queue_rows.get(podgroup, -1))),
            _phase(outcome, podgroup),
            reason.code.value,
            escape(reason.message),
        )
    return table


def _queue_name(snapshot: Snapshot, row: int) -> str:
    if row < 0:
        return "-"
    return snapshot.queues[row].name


def _phase(outcome: Outcome, podgroup: str) -> str:
    if podgroup not in outcome.phases:
        return "-"
    return outcome.phases[podgroup].label
