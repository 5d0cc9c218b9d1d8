"""`vcctl timeline`: what happened in the cluster, and what is expected, in the order of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.client import api
from dashboard.cli.commands import command
from dashboard.cli.names import QueueFilter
from dashboard.cli.output import Format, Output
from dashboard.cli.tables import Table

Row = Mapping[str, Any]


def register(app: typer.Typer) -> None:
    command(
        app,
        "timeline",
        "vcctl timeline",
        "# evictions and lost nodes of the last week",
        "vcctl timeline --span 7d --lane evictions,nodes",
        "# what a queue and those below it went through",
        "vcctl timeline --queue research --span 30d",
        "# which session decided then",
        "vcctl timeline --at 2026-01-31T12:00:00Z",
        "vcctl timeline -o json",
    )(show_timeline)


def show_timeline(
    span: Annotated[
        str, typer.Option("--span", metavar="TIME", help="The last 1h, 24h, 7d, 30d or 1y.")
    ] = "",
    start: Annotated[
        str, typer.Option("--start", metavar="MOMENT", help="Instead of a span: the begin.")
    ] = "",
    end: Annotated[str, typer.Option("--end", metavar="MOMENT", help="The end; else now.")] = "",
    lane: Annotated[
        str, typer.Option("--lane", metavar="NAMES", help="Only these, joined by commas.")
    ] = "",
    queue: QueueFilter = "",
    at: Annotated[
        str, typer.Option("--at", metavar="MOMENT", help="Name the session that decided then.")
    ] = "",
    form: Output = Format.TABLE,
) -> None:
    """What happened to queues, nodes, the policy and plans, evictions, and expected starts."""
    answer = api().get("timeline/", span=span, start=start, end=end, lane=lane, queue=queue, at=at)
    if form in output.PLAIN_FORMATS:
        output.show_value(answer, form)
        return
    status = answer["status"]
    if at:
        _print_session(status["session"])
    marks = sorted(status["marks"], key=lambda mark: mark["at"])
    if not marks:
        output.line("Nothing that you may see happened in this time.")
        return
    rows: list[Sequence[object]] = []
    for mark in marks:
        when = output.clock(mark["at"])
        rows.append([when, mark["lane"], mark["count"], mark["queue"] or "-", mark["message"]])
    Table(("At", "Lane", "Count", "Queue", "What"), rows).print()


def _print_session(session: Row | None) -> None:
    if session is None:
        output.line("No session from before that moment is kept.")
        return
    output.line(
        f"Session {session['number']} of {output.clock(session['startedAt'])}: "
        f"{session['binds']} placements, {session['evictions']} evictions; "
        f"{_how_to_run_it_again(session)}"
    )
    output.line()


def _how_to_run_it_again(session: Row) -> str:
    if session["kept"]:
        return f"manage.py replay {session['number']} runs it again"
    nearest = session["nearestKept"]
    if nearest is None:
        return "it is not kept for a replay, and no other session is"
    when = output.clock(nearest["startedAt"])
    return (
        f"it is not kept for a replay, the nearest that is: session {nearest['number']} of {when}"
    )
