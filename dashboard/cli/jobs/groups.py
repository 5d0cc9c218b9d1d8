"""`vcctl job list --group-by`: how many jobs there are of which kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from dashboard.cli import amounts, output
from dashboard.cli.client import api
from dashboard.cli.output import Format
from dashboard.cli.problems import usage
from dashboard.cli.tables import Table

FIELDS = ("state", "queue", "user", "reason", "namespace", "priority", "shape")
GroupBy = Annotated[
    str,
    typer.Option(
        "--group-by",
        metavar="FIELD",
        help=f"Counts instead of jobs, by one of {', '.join(FIELDS)}.",
    ),
]
_STATES = {
    "Pending": "waiting",
    "Aborting": "stopping",
    "Completing": "stopping",
    "Terminating": "stopping",
}


def query_words(queue: str, namespace: str, phases: str, like: str) -> str:
    """The same choice in the words of the query box."""
    words = []
    if queue:
        words.append(f"queue:{queue}/*")
    if namespace:
        words.append(f"namespace:{namespace}")
    states = [_STATES.get(phase, phase.lower()) for phase in phases.split(",") if phase]
    if states:
        words.append(f"state:{','.join(states)}")
    if like:
        words.append(f'name:"*{like}*"')
    return " ".join(words)


def show_groups(group_by: str, query: str, form: Format) -> None:
    if group_by not in FIELDS:
        raise usage(f"--group-by is “{group_by}”; write one of {', '.join(FIELDS)}.")
    answer = api().get("jobs/groups/", groupBy=group_by, query=query)
    if form in output.PLAIN_FORMATS:
        output.show_value(answer, form)
        return
    _group_table(group_by, answer["status"]["groups"]).print()


def _group_table(group_by: str, groups: Sequence[Mapping[str, Any]]) -> Table:
    rows: list[Sequence[object]] = []
    for group in groups:
        oldest = "-"
        if group["oldestWaitSince"]:
            oldest = output.age(group["oldestWaitSince"])
        rows.append(
            [
                group["title"],
                group["jobs"],
                group["waiting"],
                group["pods"],
                amounts.joined(group["request"]),
                oldest,
            ]
        )
    columns = (
        group_by.capitalize(),
        "Jobs",
        "Waiting",
        "Pods to start",
        "Needed to start",
        "Longest wait",
    )
    return Table(columns, rows, empty="No jobs match")
