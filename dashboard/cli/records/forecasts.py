"""`vcctl forecasts`: how often jobs started when it was foretold."""

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

Window = Annotated[
    str, typer.Option("--window", metavar="TIME", help="How far back: 24h, 7d or 30d.")
]


def register(app: typer.Typer) -> None:
    command(
        app,
        "forecasts",
        "vcctl forecasts",
        "# of one queue and those below it, in the last day",
        "vcctl forecasts --queue research --window 24h",
        "vcctl forecasts -o json",
    )(show_forecasts)


def show_forecasts(
    queue: QueueFilter = "", window: Window = "7d", form: Output = Format.TABLE
) -> None:
    """How often jobs started in the range that was foretold, and the median error, by queue and
    size.
    """
    answer = api().get("forecasts/", queue=queue, window=window)
    if form in output.PLAIN_FORMATS:
        output.show_value(answer, form)
        return
    status = answer["status"]
    output.line(f"Stated: {status['stated']:.0%} of starts in the range")
    output.line(f"All: {_coverage(status['whole'])}")
    output.line()
    _table(status["rows"]).print()


def _table(entries: Sequence[Mapping[str, Any]]) -> Table:
    columns = ("Queue", "Size", "Compared", "In the range", "Median error", "Median width")
    rows: list[Sequence[object]] = []
    for entry in entries:
        rows.append(
            [
                entry["queue"],
                entry["size"] or "-",
                entry["known"],
                _coverage(entry),
                _seconds(entry["medianErrorSeconds"]),
                _seconds(entry["medianWidthSeconds"]),
            ]
        )
    return Table(columns, rows)


def _coverage(entry: Mapping[str, Any]) -> str:
    if entry["coverage"] is None:
        return str(entry["message"])
    return f"{entry['coverage']:.0%} ({entry['held']} of {entry['known']})"


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{round(seconds)}s"
