"""`vcctl cluster`: the cluster as a whole, and what evictions cost it lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from dashboard.cli import amounts, output
from dashboard.cli.client import api
from dashboard.cli.commands import command
from dashboard.cli.output import Format, Output
from dashboard.cli.tables import Table

Row = Mapping[str, Any]
_LOST_OF = {"accelerators": "GPU", "cores": "core"}


def register(app: typer.Typer) -> None:
    command(app, "cluster", "vcctl cluster", "vcctl cluster -o json")(show_cluster)


def show_cluster(form: Output = Format.TABLE) -> None:
    """The cluster: how full it is, its last session, and the evictions of the last hour."""
    cluster = api().get("cluster/")
    if form in output.PLAIN_FORMATS:
        output.show_value(cluster, form)
        return
    status = cluster["status"]
    paused = ", scheduling is paused" if status["paused"] else ""
    output.line(
        f"{cluster['metadata']['name']}: {status['nodes']} nodes, "
        f"session {status['lastSession']}{paused}"
    )
    _print_resources(status)
    if status.get("evictions"):
        _print_evictions(status["evictions"])


def _print_resources(status: Row) -> None:
    names = amounts.in_order(status["total"])
    rows: list[Sequence[object]] = []
    for name in names:
        rows.append(
            [
                name,
                status["total"][name],
                status["allocated"].get(name, "0"),
                status["promised"].get(name, "0"),
            ]
        )
    if rows:
        output.line()
        Table(("Resource", "Total", "Allocated", "Promised"), rows).print()


def _print_evictions(costs: Row) -> None:
    output.line()
    output.line(f"Last hour: {costs['placements']} placements, {costs['evictions']} evictions")
    if costs["perPlacement"] is not None:
        output.line(f"Evictions per placement: {costs['perPlacement']:.2g}")
    if costs["lostSeconds"]:
        share = ""
        if costs["lostShare"] is not None:
            share = f", {100 * costs['lostShare']:.2g} % of the cluster's"
        output.line(f"Lost: {costs['lostSeconds']:.0f} {_LOST_OF[costs['lostOf']]} seconds{share}")
    if not costs["often"]:
        return
    output.line()
    output.line("Evicted more than twice:")
    rows = []
    for gang in costs["often"]:
        rows.append(
            [
                gang["podgroup"],
                gang["queue"],
                gang["times"],
                gang["pods"],
                output.clock(gang["lastAt"]),
            ]
        )
    Table(("Gang", "Queue", "Times", "Pods", "Last"), rows).print()
