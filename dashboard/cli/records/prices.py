"""`vcctl prices` and `vcctl statement`: what usage costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.client import api
from dashboard.cli.commands import command
from dashboard.cli.output import Format, Output
from dashboard.cli.records.report import Csv
from dashboard.cli.tables import Table

From = Annotated[str, typer.Option("--from", metavar="DAY", help="The day they count from (UTC).")]
Currency = Annotated[str, typer.Option("--currency", metavar="TEXT", help="Such as EUR.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=PRICE", help="Per resource and hour; may be repeated."),
]
Delete = Annotated[bool, typer.Option("--delete", help="Delete the prices that begin that day.")]
QueueName = Annotated[str, typer.Argument(metavar="QUEUE")]
Month = Annotated[
    str, typer.Option("--month", metavar="MONTH", help="Such as 2026-10 (UTC).", show_default=False)
]
Send = Annotated[bool, typer.Option("--send", help="Send it to the admins of the queue.")]


def register(app: typer.Typer) -> None:
    command(
        app,
        "prices",
        "vcctl prices",
        "# what an hour costs from a day on",
        "vcctl prices --from 2030-01-01 --currency EUR --set cpu=0.04 --set nvidia.com/gpu=2.5",
        "vcctl prices --from 2030-01-01 --delete",
    )(show_prices)
    command(
        app,
        "statement",
        "vcctl statement research --month 2026-10",
        "vcctl statement research --month 2026-10 --csv",
        "# to the admins of the queue, as a notice",
        "vcctl statement research --month 2026-10 --send",
    )(show_statement)


def show_prices(
    first: From = "",
    currency: Currency = "",
    given: Set = None,
    delete: Delete = False,
    form: Output = Format.TABLE,
) -> None:
    """What an hour of each resource costs; with --set and --from, set it from a day on."""
    if delete:
        output.line(api().delete("prices/", validFrom=first)["message"])
        return
    if given:
        prices = {}
        for part in given:
            resource, _, price = part.partition("=")
            prices[resource] = price
        body = {"validFrom": first, "currency": currency, "prices": prices}
        answer = api().put("prices/", body)
    else:
        answer = api().get("prices/")
    if form in output.PLAIN_FORMATS:
        output.show_value(answer, form)
        return
    rows: list[Sequence[object]] = []
    for found in answer["spec"]["lists"]:
        for resource, price in found["prices"].items():
            rows.append([found["validFrom"], resource, price, found["currency"]])
    Table(("From", "Resource", "Per hour", "Currency"), rows).print()


def show_statement(
    queue: QueueName,
    month: Month,
    csv: Csv = False,
    send: Send = False,
    form: Output = Format.TABLE,
) -> None:
    """What a queue and those below it used in a month, and what that costs."""
    if send:
        sent = api().post("usage/statement/", {"queue": queue, "month": month})["sentTo"]
        output.line(f"Sent to {', '.join(sent)}.")
        return
    if csv:
        output.line(api().text("usage/statement/", accept="text/csv", queue=queue, month=month))
        return
    answer = api().get("usage/statement/", queue=queue, month=month)
    if form in output.PLAIN_FORMATS:
        output.show_value(answer, form)
        return
    _print_statement(answer["status"])


def _print_statement(status: Mapping[str, Any]) -> None:
    rows: list[Sequence[object]] = []
    for row in status["resources"]:
        rows.append(
            [
                row["resource"],
                f"{row['used']:.2f} {row['unit']}",
                row["price"] or "-",
                row["cost"] or "-",
            ]
        )
    Table(("Resource", "Used", "Price", "Cost"), rows).print()
    if status["total"] is not None:
        output.line(f"together {status['total']} {status['currency']}")
    if status["users"]:
        users: list[Sequence[object]] = []
        for row in status["users"]:
            users.append([row["name"] or "nobody", f"{row['cost']} {status['currency']}"])
        output.line()
        Table(("User", "Cost"), users).print()
