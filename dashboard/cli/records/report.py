"""`vcctl report`: who used what, in resource-hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.client import api
from dashboard.cli.commands import command
from dashboard.cli.names import QueueFilter
from dashboard.cli.output import Format, Output
from dashboard.cli.records.loans import Resource
from dashboard.cli.tables import Table

By = Annotated[
    str, typer.Option("--by", metavar="WORD", help="queue, user, namespace or job. Else queue.")
]
Window = Annotated[
    str,
    typer.Option("--window", metavar="TIME", help="The last 24h, 7d, 30d or 365d. Else 7d."),
]
First = Annotated[
    str, typer.Option("--from", metavar="DAY", help="The first day (UTC) instead: 2026-11-01.")
]
Last = Annotated[str, typer.Option("--to", metavar="DAY", help="The last day, which is included.")]
User = Annotated[str, typer.Option("--user", metavar="NAME", help="Only jobs of this user.")]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAME", help="Only jobs in this namespace.")
]
Csv = Annotated[bool, typer.Option("--csv", help="Write CSV instead of a table.")]


def register(app: typer.Typer) -> None:
    command(
        app,
        "report",
        "vcctl report",
        "# GPU-hours of the users of a queue and those below it, in October",
        "vcctl report --by user --queue research --resource gpu --from 2026-10-01 --to 2026-10-31",
        "# for a spreadsheet",
        "vcctl report --by job --window 30d --csv",
        "vcctl report -o json",
    )(show_report)


def show_report(
    by: By = "",
    queue: QueueFilter = "",
    resource: Resource = "",
    window: Window = "",
    first: First = "",
    last: Last = "",
    user: User = "",
    namespace: Namespace = "",
    csv: Csv = False,
    form: Output = Format.TABLE,
) -> None:
    """Who used how many resource-hours, what they deserved, waited for, and what was lost."""
    given = {
        "by": by,
        "queue": queue,
        "resource": resource,
        "window": window,
        "from": first,
        "to": last,
        "user": user,
        "namespace": namespace,
    }
    if csv:
        output.line(api().text("usage/", accept="text/csv", **given))
        return
    answer = api().get("usage/", **given)
    if form in output.PLAIN_FORMATS:
        output.show_value(answer, form)
        return
    status = answer["status"]
    output.line(f"{status['unit']}, {status['from']} to {status['to']}")
    output.line(f"used: {status['message']}")
    output.line()
    _table(status["by"], status["rows"]).print()


def _table(by: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    has_shares = bool(rows) and rows[0]["deserved"] is not None
    share_of = "Of its deserved" if has_shares else "Of all used"
    titles = [by.capitalize(), "Used", share_of, "Waited for", "Lost"]
    if has_shares:
        titles += ["Deserved", "Borrowed", "Lent", "Idle"]
    lines: list[Sequence[object]] = []
    for row in rows:
        share = "-" if row["share"] is None else f"{row['share']:.0%}"
        line = [row["name"] or "-", _hours(row["used"]), share]
        line += [_hours(row["waited"]), _hours(row["lost"])]
        if has_shares:
            line += [_hours(row[name]) for name in ("deserved", "borrowed", "lent", "idle")]
        lines.append(line)
    return Table(tuple(titles), lines)


def _hours(value: float) -> str:
    return f"{value:.2f}"
