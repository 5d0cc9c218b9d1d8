"""`vcctl api`: any address of the API.

It is for what has no command of its own: users, groups, grants, tokens, settings, views.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.asking import DryRun, Yes, confirm
from dashboard.cli.client import api
from dashboard.cli.commands import command
from dashboard.cli.files.documents import Source, documents_of, read_text
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import usage

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
Method = Annotated[
    str,
    typer.Argument(metavar="METHOD", help="get, post, put, patch or delete.", show_default=False),
]
Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS", help="Below /api/v1/, such as users/ or grants/7/.", show_default=False
    ),
]
Data = Annotated[
    str,
    typer.Option(
        "--data",
        "-d",
        metavar="TEXT",
        help="The body, as JSON or YAML.",
        show_default=False,
    ),
]
File = Annotated[
    str,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="The body in a file; - is standard input.",
        show_default=False,
    ),
]
Query = Annotated[
    list[str] | None,
    typer.Option("--query", "-q", metavar="NAME=VALUE", help="A parameter; may be repeated."),
]


def register(app: typer.Typer) -> None:
    command(
        app,
        "api",
        "vcctl api get users/",
        'vcctl api post grants/ -d "{user: ann, role: submitter, queue: team-a}"',
        'vcctl api patch cluster/ -d "spec: {periodSeconds: 2}" --dry-run',
        "vcctl api get audit/ -q queue=team-a -q page_size=5 -o yaml",
    )(ask)


def ask(
    method: Method,
    address: Address,
    data: Data = "",
    file: File = "",
    query: Query = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    form: Output = Format.JSON,
) -> None:
    """Ask the API anything, and print what it answers.

    What deletes something asks first, unless you give --yes.
    """
    verb = method.upper()
    if verb not in _METHODS:
        raise usage(
            f"{method} is not a method of the API; write one of {', '.join(_METHODS).lower()}."
        )
    where = address.removeprefix("/").removeprefix("api/v1/")
    if verb == "DELETE" and not dry_run:
        confirm(f"Delete {where}? This cannot be undone.", yes)
    parameters = _read_parameters(query or [])
    if dry_run:
        parameters["dry_run"] = "true"
    answer = api().ask(verb, where, parameters, _read_body(data, file))
    if form not in (Format.JSON, Format.YAML):
        form = Format.JSON
    output.show_value(answer, form)


def _read_parameters(pairs: list[str]) -> dict[str, str]:
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise usage(f"{wrong[0]} is not a parameter; write it as name=value.")
    return dict(pair.split("=", 1) for pair in pairs)


def _read_body(data: str, file: str) -> Any:
    """None where there is none; several documents are a list."""
    if data and file:
        raise usage("Give the body with -d or with -f, not with both.")
    if not data and not file:
        return None
    if data:
        source = Source("-d", data)
    elif file == "-":
        source = Source(file, read_text(None))
    else:
        source = Source(file, read_text(Path(file)))
    found = documents_of([source])
    if len(found) == 1:
        return found[0]
    return found
