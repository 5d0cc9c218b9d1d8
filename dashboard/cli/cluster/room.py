"""`vcctl node fragmentation|largest-gang|waiting`: what is free, and who would start there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.client import api, path
from dashboard.cli.cluster.nodes import app
from dashboard.cli.commands import command
from dashboard.cli.names import NodeArgument, QueueFilter
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import usage
from dashboard.cli.tables import Table

Row = Mapping[str, Any]


@command(app, "fragmentation", "vcctl node fragmentation", "vcctl node fragmentation -o json")
def fragmentation(form: Output = Format.TABLE) -> None:
    """How much of each resource is free, and on how many nodes one pod of each size would fit."""
    answer = api().get("cluster/fragmentation/")
    if form in output.PLAIN_FORMATS:
        output.show_value(answer, form)
        return
    rows: list[Sequence[object]] = []
    for found in answer["status"]["resources"]:
        rows.append(
            [
                found["resource"],
                found["total"],
                found["free"],
                found["largest"],
                _room(found["room"]),
            ]
        )
    Table(("Resource", "Total", "Free", "Largest", "Nodes with room for"), rows).print()
    for found in answer["status"]["resources"]:
        if found["fragmented"]:
            output.line(f"{found['resource']}: {found['message']}")


def _room(room: Sequence[Row]) -> str:
    """ "1: 9, 2: 4, 4: 0": a pod's size, and on how many nodes it fits."""
    return ", ".join(f"{entry['size']}: {entry['nodes']}" for entry in room) or "-"


@command(
    app,
    "largest-gang",
    "vcctl node largest-gang",
    "vcctl node largest-gang --queue team-a",
    "vcctl node largest-gang --queue team-a --shape gpu=2,cpu=8,memory=32Gi",
)
def largest_gang(
    queue: QueueFilter = "",
    resource: Annotated[
        str,
        typer.Option("--resource", metavar="NAME", help="Pods that ask for 1, 2, 4 and 8 of it."),
    ] = "",
    shape: Annotated[
        str,
        typer.Option("--shape", metavar="NAME=AMOUNT,…", help="What one pod asks for."),
    ] = "",
    form: Output = Format.TABLE,
) -> None:
    """The largest gang that would start now, tried out with the session's own rules."""
    answer = api().get(
        "cluster/largest-gangs/",
        queue=queue,
        resource=resource,
        shape=shape,
    )
    if form in output.PLAIN_FORMATS:
        output.show_value(answer, form)
        return
    for found in answer["status"]["gangs"]:
        output.line(found["message"])
        if found["why"]:
            output.line(f"  One pod more: {found['why']}")


@command(
    app,
    "waiting",
    "vcctl node waiting node-1",
    "vcctl node waiting node-1 --fit fits",
    "vcctl node waiting node-1 -o json",
)
def waiting(
    name: NodeArgument = "",
    fit: Annotated[
        str,
        typer.Option("--fit", metavar="WORD", help="Only gangs with this word as their Fit."),
    ] = "",
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=1000, help="At most so many gangs.")
    ] = 50,
    form: Output = Format.TABLE,
) -> None:
    """Which waiting gangs could start on a node, and what keeps them."""
    if not name:
        raise usage("Which node? Its name must be given; vcctl node list shows them.")
    answer = api().get(path("nodes", name, "waiting"), fit=fit, page_size=limit)
    if form in output.PLAIN_FORMATS:
        output.show_value(answer, form)
        return
    status = answer["status"]
    rows: list[Sequence[object]] = []
    for gang in status["gangs"]:
        key = f"{gang['namespace']}/{gang['name']}"
        rows.append([key, gang["queue"], gang["fit"], gang["message"], gang["reason"] or "-"])
    if rows:
        Table(("Gang", "Queue", "Fit", "This node", "Also kept by"), rows).print()
    for line in _remarks(status, len(rows)):
        output.line(line)


def _remarks(status: Row, shown: int) -> list[str]:
    whole = sum(count["gangs"] for count in status["counts"])
    lines = []
    if not shown:
        lines.append("No gang that you may see waits like that.")
    elif status["next"]:
        lines.append(f"{shown} of {whole} gangs that wait; --limit shows more.")
    if status["hidden"]:
        lines.append(f"{status['hidden']} more wait in queues that you may not see.")
    return lines
