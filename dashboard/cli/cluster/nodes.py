"""`vcctl node list|cordon|uncordon|drain|lose|return`; what is free is in `room.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from dashboard.cli import amounts, output
from dashboard.cli.asking import DryRun, Reason, Yes, confirm, reason_body
from dashboard.cli.client import api, path
from dashboard.cli.commands import command, new_app
from dashboard.cli.names import NodeArgument
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import usage
from dashboard.cli.tables import Table
from dashboard.cli.watching import DEFAULT_INTERVAL, Interval, Watch, draw_or_watch

app = new_app("Nodes: what they have and use; take them out of work and back.")
Row = Mapping[str, Any]


def _node_status(node: Row) -> str:
    conditions = {}
    for one in node["status"]["conditions"]:
        conditions[one["type"]] = one["status"]
    if conditions.get("Ready") != "True":
        return "NotReady"
    if node["spec"]["unschedulable"]:
        return "Cordoned"
    return "Ready"


def _nodes_table(nodes: Sequence[Row], wide: bool) -> Table:
    names: set[str] = set()
    for node in nodes:
        names.update(node["status"]["allocatable"])
    if not wide:
        names -= {"pods", "ephemeral-storage"}
    resources = amounts.in_order(names)
    columns = ["Name", "Status", "Pods", "Age", *resources]
    if wide:
        columns += ["Taints", "Labels"]
    return Table(columns, [_node_row(node, resources, wide) for node in nodes])


def _node_row(node: Row, resources: Sequence[str], wide: bool) -> Sequence[object]:
    metadata = node["metadata"]
    status = node["status"]
    figures = [_used_of_total(status, name) for name in resources]
    row = [
        metadata["name"],
        _node_status(node),
        status["pods"],
        output.age(metadata["creationTimestamp"]),
        *figures,
    ]
    if not wide:
        return row
    taints = []
    for taint in node["spec"]["taints"]:
        taints.append(f"{taint.get('key', '')}:{taint.get('effect', '')}")
    labels = []
    for key, value in sorted(metadata["labels"].items()):
        labels.append(f"{key}={value}")
    return [*row, ",".join(taints) or "-", ",".join(labels) or "-"]


def _used_of_total(status: Row, resource: str) -> str:
    """`3/8`: allocated of what it has; `3+2/8` where 2 are promised to pods that wait."""
    promised = status.get("promised", {}).get(resource)
    allocated = status["allocated"].get(resource, "0")
    allocatable = status["allocatable"].get(resource, "0")
    if promised:
        return f"{allocated}+{promised}/{allocatable}"
    return f"{allocated}/{allocatable}"


@command(
    app,
    "list",
    "vcctl node list",
    "vcctl node list -o wide",
    "vcctl node list --selector zone=a --watch",
)
def list_nodes(
    selector: Annotated[
        str,
        typer.Option(
            "--selector",
            "-l",
            metavar="SELECTOR",
            help="Only nodes with these labels: a=b,c!=d,e in (x,y),f notin (z),g,!h.",
        ),
    ] = "",
    form: Output = Format.TABLE,
    stay: Watch = False,
    interval: Interval = DEFAULT_INTERVAL,
) -> None:
    """Nodes, with what is allocated of what they have."""

    def draw() -> None:
        output.show(api().all("nodes/", label=selector), form, _nodes_table)

    draw_or_watch(draw, stay, interval)


def _give_order(name: str, verb: str, reason: str, dry_run: bool) -> None:
    answer = _send_order(name, verb, reason, dry_run)
    output.done(answer["message"], dry_run)
    if dry_run:
        _show_touched(answer)


def _send_order(name: str, verb: str, reason: str, dry_run: bool) -> Any:
    return api().post(path("nodes", name, verb), reason_body(reason), dry_run=dry_run)


def _node_name(name: str, verb: str) -> str:
    if not name:
        raise usage(f"Which node to {verb}? Its name must be given; vcctl node list shows them.")
    return name


def _show_touched(answer: Row) -> None:
    """The gangs that lose pods, and which of them would be left with too few."""
    if not answer["podgroups"]:
        return
    rows = []
    for gang in answer["podgroups"]:
        rows.append(
            [
                f"{gang['namespace']}/{gang['name']}",
                gang["queue"],
                gang["user"] or "-",
                gang["pods"],
                _pods_left(gang),
            ]
        )
    Table(("Podgroup", "Queue", "User", "Pods", "Left"), rows).print()


def _pods_left(gang: Row) -> str:
    words = f"{gang['left']} of {gang['minMember']} needed"
    if gang["breaks"]:
        words += ": too few"
    return words


def _order_with_care(name: str, verb: str, reason: str, dry_run: bool, yes: bool) -> None:
    """What sends pods away says which, and asks first."""
    if not dry_run and not yes:
        would = _send_order(name, verb, reason, dry_run=True)
        _show_touched(would)
        confirm(f"{verb.capitalize()} {name}? Pods that stop: {would['pods']}.", yes)
    with output.working(f"Waiting for {name} …"):
        _give_order(name, verb, reason, dry_run)


@command(app, "cordon", "vcctl node cordon node-1", 'vcctl node cordon node-1 --reason "new disk"')
def cordon(name: NodeArgument = "", reason: Reason = "", dry_run: DryRun = False) -> None:
    """Give a node no new pods; its running pods continue."""
    _give_order(_node_name(name, "cordon"), "cordon", reason, dry_run)


@command(app, "uncordon", "vcctl node uncordon node-1")
def uncordon(name: NodeArgument = "", reason: Reason = "", dry_run: DryRun = False) -> None:
    """Let a node take work again."""
    _give_order(_node_name(name, "uncordon"), "uncordon", reason, dry_run)


@command(
    app,
    "drain",
    "vcctl node drain node-1",
    "vcctl node drain node-1 --dry-run",
    "vcctl node drain node-1 --yes",
)
def drain(
    name: NodeArgument = "",
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Cordon a node and stop its pods; they start again on other nodes.

    Asks first, unless you give --yes.
    """
    _order_with_care(_node_name(name, "drain"), "drain", reason, dry_run, yes)


@command(
    app,
    "lose",
    "vcctl node lose node-1",
    "vcctl node lose node-1 --dry-run",
    "vcctl node lose node-1 --yes",
)
def lose(
    name: NodeArgument = "",
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Let a simulated node fail, to see what happens then. Asks first, unless you give --yes."""
    _order_with_care(_node_name(name, "lose"), "lose", reason, dry_run, yes)


@command(app, "return", "vcctl node return node-1")
def bring_back(name: NodeArgument = "", reason: Reason = "", dry_run: DryRun = False) -> None:
    """Bring back a simulated node that was lost; it is empty then."""
    _give_order(_node_name(name, "return"), "return", reason, dry_run)
