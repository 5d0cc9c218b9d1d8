"""The outcome of a session as tables for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from scheduler.domain.queues import ROOT, QueueTree
from scheduler.domain.resources import Resources, format_quantity
from scheduler.domain.snapshot import Snapshot
from scheduler.engine.decisions import Evict, Outcome
from scheduler.scenarios.running import Run


def print_run(console: Console, run: Run, heading: str) -> None:
    console.print(Rule(Text(heading), align="left"))
    console.print(Group(*_sections(run)))


def _sections(run: Run) -> Iterator[RenderableType]:
    yield _queues(run.snapshot, run.outcome)
    for title, table in (
        ("Bound", _bound(run.outcome)),
        ("Evicted", _evicted(run.outcome)),
        ("Keeps a place", _reserved(run.outcome)),
    ):
        yield _titled(title, table)
    yield _titled("Waits", _waiting(run.snapshot, run.outcome))
    for warning in run.outcome.warnings:
        yield Text(f"warning: {warning}", style="yellow")


def _titled(title: str, table: Table) -> RenderableType:
    if not table.row_count:
        return Text(f"{title}: nothing", style="dim")
    return Padding(Group(Text(title, style="bold"), table), (1, 0, 0, 0))


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _queues(snapshot: Snapshot, outcome: Outcome) -> Table:
    table = _table("QUEUE", "STATE", "DESERVED", "ALLOCATED", "REQUEST", "SHARE", "")
    tree = QueueTree(queue.spec for queue in snapshot.queues)
    states = {queue.name: queue.state.value for queue in snapshot.queues}
    for name, depth in _in_tree_order(tree, outcome):
        figures = outcome.queues[name]
        amounts = [
            _amounts(part) for part in (figures.deserved, figures.allocated, figures.request)
        ]
        mark = Text("overused", style="yellow") if figures.overused else Text("")
        table.add_row(
            "  " * depth + escape(name),
            states.get(name, ""),
            *amounts,
            f"{figures.share:.2f}",
            mark,
        )
    return table


def _in_tree_order(tree: QueueTree, outcome: Outcome) -> Iterator[tuple[str, int]]:
    """Parents before their children; what hangs on no root comes last."""
    names = [ROOT, *(queue.name for queue in tree.descendants(ROOT))]
    placed = [name for name in names if name in outcome.queues]
    lost = [name for name in outcome.queues if name not in placed]
    return ((name, tree.depth(name) if name in tree else 0) for name in (*placed, *lost))


def _amounts(resources: Resources) -> str:
    """One line per resource; `pods` only limits nodes and is left out."""
    shown = [
        f"{format_quantity(name, amount)} {name}"
        for name, amount in resources.items()
        if amount and name != "pods"
    ]
    return escape("\n".join(shown)) or "-"


def _bound(outcome: Outcome) -> Table:
    table = _table("PODGROUP", "QUEUE", "PODS", "NODES")
    for podgroup, queue in dict.fromkeys((bind.podgroup, bind.queue) for bind in outcome.binds):
        binds = [bind for bind in outcome.binds if bind.podgroup == podgroup]
        borrowed = " (borrowed)" if any(bind.borrowed for bind in binds) else ""
        table.add_row(
            escape(podgroup),
            escape(queue),
            f"{len(binds)}{borrowed}",
            _counted(bind.node for bind in binds),
        )
    return table


def _counted(nodes: Iterable[str]) -> str:
    return escape(
        ", ".join(
            f"{node} ×{count}" if count > 1 else node
            for node, count in sorted(Counter(nodes).items())
        )
    )


def _evicted(outcome: Outcome) -> Table:
    table = _table("POD", "QUEUE", "NODE", "FOR", "BY", "WHY")
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
    """Its reason, where that says more than the action; else how near the two queues are."""
    if eviction.reason != eviction.action:
        return eviction.reason
    return f"both are below {eviction.level}" if eviction.level else "-"


def _reserved(outcome: Outcome) -> Table:
    table = _table("POD", "NODE", "UNTIL SESSION")
    for reservation in outcome.reservations:
        table.add_row(escape(reservation.pod), escape(reservation.node), str(reservation.expires))
    return table


def _waiting(snapshot: Snapshot, outcome: Outcome) -> Table:
    table = _table("PODGROUP", "QUEUE", "PHASE", "REASON", "WHY")
    queues = dict(zip(snapshot.groups.key, snapshot.groups.queue, strict=True))
    for podgroup, reason in outcome.reasons.items():
        row = queues.get(podgroup, -1)
        queue = snapshot.queues[row].name if row >= 0 else "-"
        phase = outcome.phases[podgroup].label if podgroup in outcome.phases else "-"
        table.add_row(
            escape(podgroup), escape(queue), phase, reason.code.value, escape(reason.message)
        )
    return table
