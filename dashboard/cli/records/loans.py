"""`vcctl loans`: who uses whose idle share, and how safe that is."""

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

Resource = Annotated[
    str,
    typer.Option(
        "--resource", metavar="NAME", help="Such as cpu or gpu. Else the first of the cluster."
    ),
]
Over = Annotated[
    str,
    typer.Option("--over", metavar="TIME", help="What it was over the last 1h, 24h or 7d instead."),
]


def register(app: typer.Typer) -> None:
    command(
        app,
        "loans",
        "vcctl loans",
        "# what one queue and those below it borrow or lend",
        "vcctl loans --queue research --resource cpu",
        "# what a queue borrowed and lent in the last day",
        "vcctl loans --queue research --resource cpu --over 24h",
        "vcctl loans -o json",
    )(show_loans)


def show_loans(
    queue: QueueFilter = "",
    resource: Resource = "",
    over: Over = "",
    form: Output = Format.TABLE,
) -> None:
    """Who borrows from whom, how much of it could be taken back, and which lenders lack it."""
    if over:
        _show_history(queue, resource, over, form)
        return
    answer = api().get("loans/", queue=queue, resource=resource)
    if form in output.PLAIN_FORMATS:
        output.show_value(answer, form)
        return
    status = answer["status"]
    output.line(f"{status['resource']}: {status['borrowed']} borrowed")
    output.line()
    _loans(status["loans"]).print()
    if status["borrowers"]:
        output.line()
        _borrowers(status["borrowers"]).print()


def _show_history(queue: str, resource: str, over: str, form: Format) -> None:
    answer = api().get("loans/history/", queue=queue, resource=resource, window=over)
    if form in output.PLAIN_FORMATS:
        output.show_value(answer, form)
        return
    rows: list[Sequence[object]] = []
    for point in answer["status"]["points"]:
        shares = (_shares(point["from"]), _shares(point["to"]))
        at = output.clock(point["at"])
        rows.append([at, point["borrowed"], shares[0], point["lent"], shares[1]])
    Table(("At", "Borrowed", "From", "Lent", "To"), rows).print()


def _shares(shares: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in shares.items()) or "-"


def _loans(entries: Sequence[Mapping[str, Any]]) -> Table:
    rows: list[Sequence[object]] = []
    for entry in entries:
        lacks = entry["lenderLacks"]
        if lacks == "0":
            lacks = "-"
        level = entry["level"] or "-"
        rows.append([entry["borrower"], entry["amount"], entry["lender"], level, lacks])
    return Table(("Borrower", "Amount", "Lender", "Meet at", "Lender lacks"), rows)


def _borrowers(entries: Sequence[Mapping[str, Any]]) -> Table:
    columns = ("Queue", "Borrowed", "Asked back", "Open", "Protected", "Kept", "Why kept")
    rows: list[Sequence[object]] = []
    for entry in entries:
        protected = entry["protected"]
        if entry["protectedSeconds"]:
            protected += f" (up to {entry['protectedSeconds']}s)"
        rows.append(
            [
                entry["queue"],
                entry["borrowed"],
                entry["askedBack"],
                entry["open"],
                protected,
                entry["kept"],
                entry["message"] or "-",
            ]
        )
    return Table(columns, rows)
