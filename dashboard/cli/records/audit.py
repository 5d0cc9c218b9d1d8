"""`vcctl audit`: who did what, to which object, when and why."""

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

_ALL = "all"
User = Annotated[str, typer.Option("--user", "-u", metavar="NAME", help="Only what this user did.")]
Action = Annotated[
    str,
    typer.Option(
        "--action", metavar="ACTION", help="Only these, separated by commas, such as CloseQueue."
    ),
]
AuditArea = Annotated[
    str,
    typer.Option(
        "--deeds",
        metavar="WHOSE",
        help="admin, work (submits and jobs), own (settings of one's own), or all.",
    ),
]
From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="DATE",
        help="From this day or moment on: 2026-01-31, 2026-01-31T12:00:00Z.",
    ),
]
Until = Annotated[
    str, typer.Option("--until", metavar="DATE", help="Up to this moment, or the end of this day.")
]
Limit = Annotated[
    int, typer.Option("--limit", min=1, max=5000, help="How many of the newest to show.")
]


def register(app: typer.Typer) -> None:
    command(
        app,
        "audit",
        "vcctl audit",
        "# who closed analytics, and why",
        "vcctl audit --queue analytics --action CloseQueue",
        "vcctl audit --deeds work --user ann --from 2026-01-01 --until 2026-01-31",
    )(audit)


def audit(
    queue: QueueFilter = "",
    user: User = "",
    action: Action = "",
    deeds: AuditArea = "",
    start: From = "",
    end: Until = "",
    limit: Limit = 50,
    form: Output = Format.TABLE,
) -> None:
    """Who did what and why, newest first: what admins did, unless --deeds or --action asks for
    other deeds.
    """
    if not deeds and not action:
        deeds = "admin"
    asked = {
        "queue": queue,
        "user": user,
        "action": action,
        "deeds": deeds,
        "from": start,
        "until": end,
    }
    if deeds == _ALL:
        asked["deeds"] = ""
    if not queue:
        asked["consequences"] = "false"
    output.show(api().all("audit/", limit=limit, **asked), form, _audit_table)


def _audit_table(entries: Sequence[Mapping[str, Any]], wide: bool) -> Table:
    columns = ["When", "Who", "Did", "To", "Why"]
    if wide:
        columns += ["Door", "Outcome", "Entry"]
    rows = []
    for entry in entries:
        row = _audit_row(entry["spec"], wide)
        if wide:
            row = [*row, entry["metadata"]["name"]]
        rows.append(row)
    return Table(columns, rows)


def _audit_row(spec: Mapping[str, Any], wide: bool) -> Sequence[object]:
    target = "/".join(filter(None, (spec["namespace"], spec["name"])))
    if spec["follows"]:
        cause = f" (caused by {spec['follows']})"
    else:
        cause = ""
    row = [
        output.clock(spec["at"]),
        spec["actor"],
        spec["action"],
        f"{spec['kind']} {target}{cause}",
        spec["reason"] or "-",
    ]
    if wide:
        return [*row, spec["door"], spec["message"] or "-"]
    return row
