"""`vcctl whatif`: what a change would do, by the engine run ahead on a copy of the cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.client import api, path
from dashboard.cli.commands import command
from dashboard.cli.files.apply import Files
from dashboard.cli.files.documents import documents_of, read_sources
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import ExitCode, Problem

Lost = Annotated[
    list[str] | None,
    typer.Option("--lose", metavar="NODE", help="As if this node were lost; may be given again."),
]
ChangeSet = Annotated[
    int, typer.Option("--changes", metavar="NUMBER", help="Try this change set out.")
]
Minutes = Annotated[int, typer.Option("--minutes", min=1, max=1440, help="How far ahead to look.")]
_ENDED = ("Done", "Refused", "Cancelled", "Failed")
_PAUSE = 0.3
_MOST_LINES = 20
_FIGURES = (
    ("Pods placed in the first session", "binds"),
    ("Pods evicted in the first session", "evictions"),
    ("Gangs that start in this time", "started"),
    ("Gangs that still wait then", "waiting"),
)
Row = Mapping[str, Any]


def register(app: typer.Typer) -> None:
    command(
        app,
        "whatif",
        "vcctl whatif -f quotas.yaml",
        "vcctl whatif --changes 7 --minutes 360",
        "# as if a node were lost",
        "vcctl whatif --lose node-1",
    )(whatif)


def whatif(
    files: Files = None,
    changes: ChangeSet = 0,
    lost: Lost = None,
    minutes: Minutes = 60,
    form: Output = Format.TABLE,
) -> None:
    """Try documents, a change set or the loss of nodes out on a copy of the cluster.

    The first session is exact. Then pods run for as long as their jobs declare. Nothing is changed.
    """
    body: dict[str, Any] = {"minutes": minutes, "lostNodes": lost or []}
    if changes:
        body["changeSet"] = changes
    if files:
        body["documents"] = documents_of(read_sources(files))
    made = api().post("previews/", body)
    found = _wait_for(made["metadata"]["name"])
    if found["status"]["state"] != "Done":
        words = found["status"]["message"] or found["status"]["state"]
        raise Problem(words, ExitCode.REFUSED)
    if form in output.PLAIN_FORMATS:
        output.show_value(found, form)
    else:
        _print(found["status"])


def _wait_for(number: str) -> Any:
    with output.working("Trying it out on a copy of the cluster …"):
        while True:
            found = api().get(path("previews", number))
            if found["status"]["state"] in _ENDED:
                return found
            time.sleep(_PAUSE)


def _print(status: Row) -> None:
    result = status["result"]
    now = result["now"]
    then = result["then"]
    output.line(f"Forecast of {output.clock(status['takenAt'])}, no promise")
    for title, name in _FIGURES:
        output.line(f"{title}: {now[name]} now, {then[name]} then")
    for queue in result["queues"][:_MOST_LINES]:
        output.line(_queue_line(queue))
    for move in result["moves"][:_MOST_LINES]:
        before = _when(move["before"])
        output.line(f"{move['podgroup']} starts {_when(move['after'])}, before {before}")
    for loss in result["evictions"][:_MOST_LINES]:
        output.line(f"{loss['pod']} of {loss['queue']} is evicted for {loss['beneficiary'] or '-'}")
    for name in ("queues", "moves", "evictions"):
        more = len(result[name]) - _MOST_LINES
        if more > 0:
            output.line(f"and {more} more {name}; -o json has all of them")


def _queue_line(queue: Row) -> str:
    words = []
    for figure in ("deserved", "allocated"):
        before = queue[figure]["before"]
        after = queue[figure]["after"]
        for resource in sorted({*before, *after}):
            old = before.get(resource, "0")
            new = after.get(resource, "0")
            if old != new:
                words.append(f"{figure} {resource} {old} -> {new}")
    if queue["belowGuarantee"]:
        words.append(f"below its guarantee of {', '.join(queue['belowGuarantee'])}")
    return f"{queue['queue']}: {', '.join(words)}"


def _when(seconds: float | None) -> str:
    if seconds is None:
        return "not in this time"
    return f"in {seconds:.0f} s"
