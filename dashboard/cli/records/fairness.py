"""`vcctl fairness`: who had less than their share, and where the room went."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from dashboard.cli import output
from dashboard.cli.client import api
from dashboard.cli.commands import command
from dashboard.cli.names import QueueFilter
from dashboard.cli.output import Format, Output
from dashboard.cli.records.loans import Resource
from dashboard.cli.records.report import First, Last, Window
from dashboard.cli.tables import Table


def register(app: typer.Typer) -> None:
    command(
        app,
        "fairness",
        "vcctl fairness",
        "# GPUs in the last 30 days",
        "vcctl fairness --resource gpu --window 30d",
        "vcctl fairness -o json",
    )(show_fairness)


def show_fairness(
    queue: QueueFilter = "",
    resource: Resource = "",
    window: Window = "",
    first: First = "",
    last: Last = "",
    form: Output = Format.TABLE,
) -> None:
    """Debt and credit of queues, who was starved by whom, waits, and where the room went."""
    given = {"queue": queue, "resource": resource, "window": window, "from": first, "to": last}
    answer = api().get("fairness/", **given)
    if form in output.PLAIN_FORMATS:
        output.show_value(answer, form)
        return
    status = answer["status"]
    output.line(f"{status['unit']}, {status['from']} to {status['to']}")
    output.line()
    rows: list[Sequence[object]] = []
    for row in status["room"]:
        share = "-" if row["share"] is None else f"{row['share']:.1%}"
        hours = "-" if row["hours"] is None else f"{row['hours']:.2f}"
        rows.append([row["part"], share, hours])
    Table(("Room", "Share", "Hours"), rows).print()
    output.line()
    queues: list[Sequence[object]] = []
    for row in status["queues"]:
        queues.append([row["queue"], f"{row['balance']:+.2f}", row["message"]])
    Table(("Queue", "Balance", "In words"), queues).print()
    if status["pairs"]:
        output.line()
        pairs = [[pair["starved"], pair["by"], f"{pair['amount']:.2f}"] for pair in status["pairs"]]
        Table(("Starved", "By", "Lacked"), pairs).print()
    output.line()
    waits: list[Sequence[object]] = []
    for kind, found in status["waits"].items():
        for row in found:
            middle, most = (
                "-" if row[name] is None else row[name] for name in ("p50Seconds", "p95Seconds")
            )
            waits.append([kind, row["name"] or "-", row["gangs"], middle, most])
    Table(("By", "Name", "Gangs", "p50 (s)", "p95 (s)"), waits).print()
