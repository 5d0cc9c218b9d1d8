"""`vcctl apply -f`, `diff -f` and `export`: the cluster as files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.asking import DryRun, Yes, confirm
from dashboard.cli.client import api, path
from dashboard.cli.commands import command
from dashboard.cli.files.documents import located_documents, read_sources
from dashboard.cli.files.lines import Place
from dashboard.cli.names import QueueArgument, QueueOption, queue_name, topmost_queues
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import Problem, usage

Files = Annotated[
    list[str] | None,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="A file, a folder, or - for standard input; may be given again.",
    ),
]
Prune = Annotated[
    str,
    typer.Option(
        "--prune",
        metavar="KEY=VALUE",
        help="Delete objects with this label that the files do not name.",
    ),
]
_YAML = "application/yaml"
_STYLES = {
    "created": "green",
    "updated": "yellow",
    "executed": "yellow",
    "deleted": "red",
    "unchanged": "dim",
}
Row = Mapping[str, Any]


def register(app: typer.Typer) -> None:
    command(
        app,
        "apply",
        "vcctl apply -f queues.yaml",
        "vcctl apply -f teams/ --dry-run",
        "vcctl export | vcctl apply --context lab -f -",
        "vcctl apply -f teams/ --prune managed-by=git --yes",
    )(apply)
    command(app, "diff", "vcctl diff -f queues.yaml", "vcctl diff -f teams/ --exit-code")(diff)
    command(
        app,
        "export",
        "vcctl export > queues.yaml",
        "vcctl export team-a",
        "vcctl export --all",
        "vcctl export -o json",
    )(export)


def apply(
    files: Files = None,
    prune: Prune = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    form: Output = Format.TABLE,
) -> None:
    """Create or update every object of the files, all or nothing.

    Asks before --prune deletes something, unless you give --yes.
    """
    documents = located_documents(read_sources(files or []))
    if prune and not dry_run and not yes:
        seen = _confirmed_deletions(_send_documents(documents, True, prune), files or [])
    else:
        seen = None
    answer = _send_documents(documents, dry_run, prune, seen)
    if form in (Format.JSON, Format.YAML):
        output.show_value(answer, form)
        return
    for result in answer["results"]:
        output.warn(result["warnings"])
        if form is Format.NAME:
            output.line(f"{result['kind'].lower()}/{result['name']}")
        else:
            output.line(_result_line(result))
    if dry_run and form is not Format.NAME:
        output.line("(dry run)")


def _confirmed_deletions(answer: Row, files: Sequence[str]) -> list[str]:
    """What was shown and agreed to: the server deletes nothing else."""
    gone = []
    for result in answer["results"]:
        if result["operation"] == "deleted":
            gone.append(f"{result['kind'].lower()}/{result['name']}")
    if gone and "-" in files:
        raise usage(
            f"This would delete {', '.join(gone)}, and standard input is taken by the file; say "
            "--yes, or --dry-run to look first."
        )
    if gone:
        confirm(f"Delete {', '.join(gone)}, which the files do not name?", False)
    return gone


def _result_line(result: Row) -> str:
    if result["operation"] == "executed":
        return str(result["message"])
    return f"{result['kind'].lower()}/{result['name']} {result['operation']}"


def _send_documents(
    documents: Sequence[tuple[Place, Any]],
    dry_run: bool,
    prune: str,
    seen: Sequence[str] | None = None,
) -> Any:
    text = json.dumps([found for _, found in documents])
    if seen is None:
        more = {}
    else:
        more = {"shown": ",".join(seen) or ","}
    with (
        _places_in_words([place for place, _ in documents]),
        output.working(f"Sending {output.counted(len(documents), 'object')} …"),
    ):
        return api().post_text("apply/", text, "application/json", dry_run, prune=prune, **more)


_INDEX = re.compile(r"\[(\d+)\]\.?([\w.\[\]/-]*)")


@contextmanager
def _places_in_words(places: Sequence[Place]) -> Iterator[None]:
    """The server counts documents; people know files."""
    try:
        yield
    except Problem as problem:
        message = _INDEX.sub(lambda match: _place_of(places, match), str(problem))
        raise Problem(message, problem.code) from None


def _place_of(places: Sequence[Place], match: re.Match[str]) -> str:
    number = int(match[1])
    if number < len(places):
        return f"{places[number].words(match[2])}: {match[2]}".rstrip(": ")
    return match[0]


def diff(
    files: Files = None,
    prune: Prune = "",
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with code 1 if something would change.")
    ] = False,
    form: Output = Format.TABLE,
) -> None:
    """What applying the files would change, field by field; nothing is changed."""
    answer = _send_documents(located_documents(read_sources(files or [])), True, prune)
    if form in (Format.JSON, Format.YAML):
        output.show_value(answer, form)
    else:
        _print_differences(answer["results"])
    if exit_code and answer["changed"]:
        raise typer.Exit(1)


def _print_differences(results: Sequence[Row]) -> None:
    lines = []
    for result in results:
        if result["operation"] != "unchanged":
            for line in difference_lines(result):
                lines.append(line)
    if not lines:
        output.line("Everything is as the files say.")
    elif output.on_terminal():
        from rich.text import Text

        console = output.console()
        for text, style in lines:
            console.print(Text(output.harmless(text), style=style))
    else:
        output.line("\n".join(text for text, _ in lines))


def difference_lines(result: Row) -> Iterator[tuple[str, str]]:
    """Each line with its style: `-` what is, `+` what would be."""
    operation = result["operation"]
    yield (
        f"{result['kind'].lower()}/{result['name']} {operation}",
        f"bold {_STYLES.get(operation, '')}".strip(),
    )
    for change in result["diff"]:
        if change["before"] is not None:
            yield f"- {change['field']}: {_value_text(change['before'])}", "red"
        if change["after"] is not None:
            yield f"+ {change['field']}: {_value_text(change['after'])}", "green"
    for warning in result["warnings"]:
        yield f"! {warning['message']}", "yellow"


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def export(
    name: QueueArgument = "",
    option: QueueOption = "",
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="All configuration: namespaces, priority classes, groups, users, queues, roles, "
            "settings, policy and change sets. Without passwords and tokens.",
        ),
    ] = False,
    form: Output = Format.YAML,
) -> None:
    """A queue and everything below it as manifests that can be applied elsewhere.

    Without a name: all queues that you may see.
    """
    if everything and (name or option):
        raise usage("--all exports everything; leave the queue out.")
    if everything:
        places = ["configuration/"]
    elif name or option:
        places = [path("queues", queue_name(name, option, "export"), "export")]
    else:
        places = [path("queues", top, "export") for top in topmost_queues()]
    if form in (Format.JSON, Format.NAME):
        items: list[Any] = []
        for place in places:
            items += api().get(place)["items"]
        _show_items(items, form)
        return
    texts = []
    for place in places:
        texts.append(api().text(place, _YAML).strip("\n").removeprefix("---\n"))
    output.line("\n---\n".join(texts))


def _show_items(items: Sequence[Row], form: Format) -> None:
    if form == Format.JSON:
        output.show_value({"apiVersion": "v1", "kind": "List", "items": list(items)}, form)
        return
    for item in items:
        output.line(output.name_of(item))
