"""`vcctl queue list|get|children|tree|view|explain|history`: looking at queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from dashboard.cli import amounts, output
from dashboard.cli.client import api, path
from dashboard.cli.commands import Options, command, new_app
from dashboard.cli.names import QueueArgument, QueueOption, queue_name, topmost_queues
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import usage
from dashboard.cli.queues.fields import WIDE_COLUMNS, wide_texts
from dashboard.cli.queues.figures import ChangedWithin, SortBy, in_asked_order, show_comparison
from dashboard.cli.queues.tree import print_trees
from dashboard.cli.queues.view import print_queue
from dashboard.cli.tables import Table
from dashboard.cli.watching import DEFAULT_INTERVAL, Interval, Watch, draw_or_watch

app = new_app("Queues: look at them, make and change them, open, close, suspend and resume them.")

Row = Mapping[str, Any]
VOLCANO_COLUMNS = (
    "Name",
    "Weight",
    "State",
    "Parent",
    "Inqueue",
    "Pending",
    "Running",
    "Unknown",
    "Completed",
)
VOLCANO_WIDTHS = (25, *(8,) * 8)
_COUNTS = ("inqueue", "pending", "running", "unknown", "completed")
_WIDE = (
    "Total",
    "Failed",
    "Aborted",
    "Priority",
    "Allocated",
    "Promised",
    "Deserved",
    "Guarantee",
    "Capability",
    *WIDE_COLUMNS,
)
Selector = Annotated[
    str,
    typer.Option(
        "--selector",
        "-l",
        metavar="SELECTOR",
        help="Only queues with these labels: a=b,c!=d,e in (x,y),f notin (z),g,!h.",
    ),
]
States = Annotated[
    str,
    typer.Option(
        "--state", metavar="STATE", help="Only queues in these states, separated by commas."
    ),
]
Parent = Annotated[
    str, typer.Option("--parent", "-p", metavar="QUEUE", help="Only the children of this queue.")
]


def queue_row(queue: Row) -> list[object]:
    """Volcano's columns."""
    spec = queue["spec"]
    status = queue["status"]
    return [
        queue["metadata"]["name"],
        spec["weight"],
        status["state"],
        spec["parent"],
        *(status[count] for count in _COUNTS),
    ]


def _wide_row(queue: Row) -> list[object]:
    """`Total` counts jobs, as in Volcano's queue design."""
    spec = queue["spec"]
    status = queue["status"]
    jobs = status["jobs"]
    figures = (
        status["allocated"],
        status.get("promised", {}),
        status["deserved"],
        spec["guarantee"]["resource"],
        spec["capability"],
    )
    counts = [sum(jobs.values()), jobs["failed"], jobs["aborted"], spec["priority"]]
    joined = [amounts.joined(figure) for figure in figures]
    return [*queue_row(queue), *counts, *joined, *wide_texts(spec)]


def queue_table(queues: Sequence[Row], wide: bool) -> Table:
    if wide:
        return Table((*VOLCANO_COLUMNS, *_WIDE), [_wide_row(queue) for queue in queues])
    return Table(VOLCANO_COLUMNS, [queue_row(queue) for queue in queues], VOLCANO_WIDTHS)


@command(
    app,
    "list",
    "vcctl queue list",
    "vcctl queue list --state Closing,Closed -o name",
    "vcctl queue list -o wide --watch",
    "vcctl queue list -l 'team,!old' -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}'",
    "# the queues that wait for the most CPU first",
    "vcctl queue list --sort-by -pending:cpu",
    "vcctl queue list --changed-within 1h -o name",
)
def list_queues(
    state: States = "",
    parent: Parent = "",
    selector: Selector = "",
    sort: SortBy = "",
    changed: ChangedWithin = "",
    form: Output = Format.TABLE,
    stay: Watch = False,
    interval: Interval = DEFAULT_INTERVAL,
) -> None:
    """All queues that you may see, in Volcano's table; more columns with -o wide."""

    def draw() -> None:
        found: Sequence[Row] = api().all("queues/", state=state, parent=parent, label=selector)
        if sort or changed:
            found = in_asked_order(found, sort, changed)
        output.show(found, form, queue_table)

    draw_or_watch(draw, stay, interval)


_ONE: Options = {
    "name": (QueueArgument, ""),
    "option": (QueueOption, ""),
    "form": (Output, Format.TABLE),
    "stay": (Watch, False),
    "interval": (Interval, DEFAULT_INTERVAL),
}


def _show_one(
    doing: str,
    in_words: Callable[[Row, bool], None],
    *,
    name: str,
    option: str,
    form: Format,
    stay: bool,
    interval: float,
) -> None:
    """`in_words(queue, wide)` prints it where no plain format is asked for."""
    wanted = queue_name(name, option, doing)

    def draw() -> None:
        queue = api().get(path("queues", wanted))
        if form in output.PLAIN_FORMATS:
            output.show_value(queue, form)
        else:
            in_words(queue, form is Format.WIDE)

    draw_or_watch(draw, stay, interval)


@command(
    app,
    "get",
    "vcctl queue get team-a",
    "vcctl queue get -n team-a",
    "vcctl queue get team-a -o yaml",
    options=_ONE,
)
def get_queue(**given: Any) -> None:
    """One queue as a row of Volcano's table, or whole with -o json|yaml."""
    _show_one("get", lambda queue, wide: queue_table([queue], wide).print(), **given)


@command(
    app,
    "compare",
    "vcctl queue compare research production",
    "vcctl queue compare vision language -o json",
)
def compare_queues(
    names: Annotated[list[str], typer.Argument(metavar="QUEUE...", help="Two to four queues.")],
    form: Output = Format.TABLE,
) -> None:
    """Up to four queues side by side: state, gangs, waits, and the figures of each resource."""
    show_comparison(names, form)


@command(app, "children", "vcctl queue children root", "vcctl queue children research -o name")
def list_children(
    name: QueueArgument = "",
    option: QueueOption = "",
    form: Output = Format.TABLE,
) -> None:
    """The queues right below a queue."""
    wanted = queue_name(name, option, "list the children of")
    output.show(api().all(path("queues", wanted, "children")), form, queue_table)


@command(
    app,
    "tree",
    "vcctl queue tree",
    "vcctl queue tree research --resource nvidia.com/gpu",
    "vcctl queue tree --watch",
    "vcctl queue tree -o json",
)
def show_tree(
    name: QueueArgument = "",
    option: QueueOption = "",
    resource: Annotated[
        str,
        typer.Option("--resource", "-r", metavar="NAME", help="Only figures of this resource."),
    ] = "",
    form: Output = Format.TABLE,
    stay: Watch = False,
    interval: Interval = DEFAULT_INTERVAL,
) -> None:
    """The queues below one, or all that you may see: states, gangs, and what is allocated of what
    is deserved, with bars on a terminal.
    """
    named = ""
    if name or option:
        named = queue_name(name, option, "show")

    def draw() -> None:
        tops = [named]
        if not named:
            tops = topmost_queues()
        trees = []
        for top in tops:
            trees.append(api().get(path("queues", top, "tree")))
        if form not in (Format.JSON, Format.YAML):
            print_trees(trees, resource, form)
        elif len(trees) == 1:
            output.show_value(trees[0], form)
        else:
            output.show_value({"kind": "List", "items": trees}, form)

    draw_or_watch(draw, stay, interval)


@command(
    app,
    "view",
    "vcctl queue view myqueue",
    "vcctl queue view myqueue -o yaml",
    "vcctl queue view myqueue --watch",
    options=_ONE,
)
def view_queue(**given: Any) -> None:
    """Everything about one queue: its place, its settings, its state and who changed that,
    counts, figures, conditions, last events.
    """
    _show_one("view", lambda queue, _wide: print_queue(queue), **given)


@command(app, "explain", "vcctl queue explain team-a", "vcctl queue explain root -o json")
def explain_queue(
    name: QueueArgument = "",
    option: QueueOption = "",
    form: Output = Format.TABLE,
) -> None:
    """Why the jobs of a queue, and of those below it, wait: the reason of each gang, and how many
    wait for which reason.
    """
    wanted = queue_name(name, option, "explain")
    queue = api().get(path("queues", wanted))
    waiting = api().all("podgroups/", queue=wanted, phase="Pending,Inqueue", ordering="created")
    if form in output.PLAIN_FORMATS:
        output.show(waiting, form, _waiting_table)
        return
    output.line(_waiting_sentence(queue, waiting))
    if waiting:
        output.line()
        _waiting_table(waiting, form is Format.WIDE).print()


def _waiting_sentence(queue: Row, waiting: Sequence[Row]) -> str:
    name = queue["metadata"]["name"]
    state = queue["status"]["state"]
    if not waiting:
        return f"Nothing waits in {name} ({state})."
    reasons = [_reason(group)["code"] for group in waiting]
    counted = ", ".join(f"{reason} {reasons.count(reason)}" for reason in dict.fromkeys(reasons))
    return f"{len(waiting)} waiting in {name} ({state}): {counted}."


def _reason(group: Row) -> Mapping[str, Any]:
    none_yet = {
        "code": "AwaitingEvaluation",
        "message": "No session has looked at it yet; the next one will.",
    }
    return group["status"].get("reason") or none_yet


def _waiting_table(groups: Sequence[Row], wide: bool) -> Table:
    columns = ["Gang", "Queue", "Age", "Reason", "In words"]
    if wide:
        columns.insert(2, "User")
    rows = [_waiting_row(group, wide) for group in groups]
    return Table(columns, rows)


def _waiting_row(group: Row, wide: bool) -> list[object]:
    metadata = group["metadata"]
    named = group["status"].get("job") or metadata
    reason = _reason(group)
    row = [
        f"{named['namespace']}/{named['name']}",
        group["spec"]["queue"],
        output.age(metadata["creationTimestamp"]),
        reason["code"],
        reason["message"],
    ]
    if wide:
        row.insert(2, group["status"]["owner"] or "-")
    return row


@command(
    app,
    "history",
    "vcctl queue history team-a",
    "vcctl queue history team-a --step hour --limit 48",
    "# who opened, closed, suspended or resumed it",
    "vcctl queue history team-a --commands",
)
def show_history(
    name: QueueArgument = "",
    option: QueueOption = "",
    step: Annotated[str, typer.Option("--step", help="How fine: raw, minute or hour.")] = "minute",
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=5000, help="How many of the newest to show.")
    ] = 20,
    commands: Annotated[
        bool, typer.Option("--commands", help="The commands given to it instead of its figures.")
    ] = False,
    form: Output = Format.TABLE,
) -> None:
    """A queue's figures over time; with --commands who gave it which command, and why."""
    wanted = queue_name(name, option, "show the history of")
    if step not in ("raw", "minute", "hour"):
        raise usage(f"--step is “{step}”; write raw, minute or hour.")
    if commands:
        output.show(api().all("commands/", limit=limit, queue=wanted), form, _command_table)
        return
    history = api().get(path("queues", wanted, "history"), step=step, limit=limit)
    if form in (Format.JSON, Format.YAML):
        output.show_value(history, form)
    else:
        _history_table(history["results"]).print()


_SAMPLED = ("allocated", "promised", "deserved", "pending")


def _history_table(samples: Sequence[Row]) -> Table:
    rows = []
    for sample in samples:
        figures = []
        for name in _SAMPLED:
            figures.append(amounts.joined(sample.get(name)))
        rows.append([output.clock(sample["at"]), sample["state"], *figures])
    return Table(
        ("Time", "State", *(name.capitalize() for name in _SAMPLED)),
        rows,
        empty="No history yet; the first samples take a minute",
    )


def _command_table(commands: Sequence[Row], _wide: bool) -> Table:
    rows: list[Sequence[object]] = []
    for given in commands:
        spec = given["spec"]
        status = given["status"]
        when = output.clock(given["metadata"]["creationTimestamp"])
        rows.append(
            [
                when,
                spec["action"],
                status["actor"],
                status["door"],
                status["result"],
                spec["reason"] or "-",
                status["message"],
            ]
        )
    return Table(("Time", "Action", "By", "Door", "Result", "Reason", "Message"), rows)
