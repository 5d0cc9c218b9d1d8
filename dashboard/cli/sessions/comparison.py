"""`vcctl comparison`: what another scheduler did, beside what ours would have done."""

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

DIFFERENCES = "oursEarlier,onlyOurs,onlyTheirs,halfStarted,evictedByOurs,evictedByTheirs"
_ALL = "all"
Verdict = Annotated[
    str,
    typer.Option(
        "--verdict",
        metavar="WHICH",
        help="One or several with commas, such as onlyTheirs; all for everything. "
        "The differences where none is given.",
    ),
]
Window = Annotated[
    str, typer.Option("--window", metavar="TIME", help="How far back: 1h, 24h or 7d.")
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=5000, help="How many, the newest.")]


def register(app: typer.Typer) -> None:
    command(
        app,
        "comparison",
        "vcctl comparison",
        "# gangs that only the other scheduler started, in the last hour",
        "vcctl comparison --verdict onlyTheirs --window 1h",
        "vcctl comparison --queue research --verdict all -o json",
    )(compare)


def compare(
    queue: QueueFilter = "",
    verdict: Verdict = "",
    window: Window = "24h",
    limit: Limit = 50,
    form: Output = Format.TABLE,
) -> None:
    """Where another scheduler decides: how often Fumarole would have decided the same, and what
    differs.
    """
    asked = {"queue": queue, "verdict": verdict or DIFFERENCES, "newer_than": window}
    if verdict == _ALL:
        asked["verdict"] = ""
    rows = api().all("comparisons/", limit=limit, **asked)
    if form not in output.PLAIN_FORMATS:
        _print_totals(queue, window)
    output.show(rows, form, _comparison_table)


def _print_totals(queue: str, window: str) -> None:
    status = api().get("comparison/", queue=queue, window=window)["status"]
    if not status["compares"]:
        output.remark("Fumarole itself decides in this cluster: there is nothing to compare.")
    for title, key in (("Starts", "starts"), ("Evictions", "evictions")):
        agreement = status[key]
        output.line(f"{title}: {agreement['agreed']} of {agreement['decided']} agreed on")
    output.line(status["definition"])
    output.line()


def _comparison_table(entries: Sequence[Mapping[str, Any]], wide: bool) -> Table:
    columns = ["Gang", "Queue", "Verdict", "Since", "Theirs", "Ours", "Reason"]
    if wide:
        columns += ["Session", "For", "Message"]
    rows = []
    for entry in entries:
        rows.append(_comparison_row(entry["spec"], wide))
    return Table(columns, rows)


def _comparison_row(spec: Mapping[str, Any], wide: bool) -> Sequence[object]:
    row = [
        spec["podgroup"],
        spec["queue"],
        spec["verdict"],
        output.clock(spec["since"]),
        _clock_or_dash(spec["theirsAt"]),
        _clock_or_dash(spec["oursAt"]),
        spec["reason"] or "-",
    ]
    if wide:
        return [*row, spec["oursSession"] or "-", spec["beneficiary"] or "-", spec["message"]]
    return row


def _clock_or_dash(moment: str | None) -> str:
    if not moment:
        return "-"
    return output.clock(moment)
