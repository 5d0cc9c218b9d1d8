"""`vcctl queue list --sort-by`, `--changed-within` and `vcctl queue compare`: queues by figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.client import api
from dashboard.cli.output import Format
from dashboard.cli.problems import usage
from dashboard.cli.tables import Table

SortBy = Annotated[
    str,
    typer.Option(
        "--sort-by",
        metavar="FIGURE",
        help="By name, state, weight, priority, running, waiting, a resource (what is allocated "
        "of it), or a figure of it such as pending:cpu. A minus in front puts the largest first.",
    ),
]
ChangedWithin = Annotated[
    str,
    typer.Option(
        "--changed-within",
        metavar="TIME",
        help="Only queues whose figures, quota or state changed in the last 30m, 1h, 2d ….",
    ),
]
_MOST = 4
_FIGURES = ("allocated", "promised", "deserved", "guarantee", "limit", "pending")
Row = Mapping[str, Any]


def in_asked_order(queues: Sequence[Row], sort: str, changed: str) -> list[Row]:
    """These queues as the server sorts them, without those that it leaves out."""
    answer = api().get("queuefigures/", sort=sort, changedWithin=changed)
    by_name = {queue["metadata"]["name"]: queue for queue in queues}
    names = [row["name"] for row in answer["status"]["queues"]]
    if not sort:
        names.sort()
    return [by_name[name] for name in names if name in by_name]


def show_comparison(names: Sequence[str], form: Format) -> None:
    if not 2 <= len(set(names)) <= _MOST:
        raise usage(f"Name 2 to {_MOST} queues to compare.")
    answer = api().get("queuefigures/", queue=",".join(names))
    if form in output.PLAIN_FORMATS:
        output.show_value(answer, form)
        return
    queues = answer["status"]["queues"]
    Table(("", *(queue["name"] for queue in queues)), _compared_lines(queues)).print()


def _compared_lines(queues: Sequence[Row]) -> list[Sequence[object]]:
    lines: list[Sequence[object]] = [
        ["State", *(queue["state"] for queue in queues)],
        ["Weight", *(queue["weight"] for queue in queues)],
        ["Running gangs", *(queue["running"] for queue in queues)],
        ["Waiting gangs", *(queue["waiting"] for queue in queues)],
        ["Longest wait", *(_longest_wait(queue) for queue in queues)],
    ]
    for resource in queues[0]["resources"]:
        for figure in _FIGURES:
            cells = [queue["resources"][resource][figure] for queue in queues]
            lines.append([f"{resource} {figure}", *cells])
    return lines


def _longest_wait(queue: Row) -> str:
    since = queue["waits"]["oldestSince"]
    if not since:
        return "-"
    return output.age(since)
