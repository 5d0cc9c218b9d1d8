"""`vcctl changes …`: edits of several objects, collected, looked at, and applied together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.advice import sentence
from dashboard.cli.asking import DryRun, Yes, confirm
from dashboard.cli.client import api, path
from dashboard.cli.commands import command, new_app
from dashboard.cli.files.apply import Files, difference_lines
from dashboard.cli.files.documents import documents_of, read_sources
from dashboard.cli.output import Format, Output
from dashboard.cli.tables import Table

app = new_app("Change sets: edits of several queues, nodes and the policy, applied together.")
Number = Annotated[str, typer.Argument(metavar="NUMBER", help="The number of the change set.")]
Entry = Annotated[str, typer.Argument(metavar="ENTRY", help="The number of the entry.")]
State = Annotated[
    str, typer.Option("--state", metavar="STATE", help="Draft, Planned, Applied or Discarded.")
]
SetName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the change set.")]
Description = Annotated[str, typer.Option("--description", metavar="TEXT", help="What it is for.")]
Item = Mapping[str, Any]
_OPERATIONS = {"create": "created", "update": "updated", "delete": "deleted"}


@command(app, "list", "vcctl changes list", "vcctl changes list --state Draft -o json")
def list_sets(state: State = "", form: Output = Format.TABLE) -> None:
    """The change sets whose queues you may all see, newest first."""
    output.show(api().all("changes/", state=state), form, _table)


def _table(sets: Sequence[Item], _wide: bool) -> Table:
    rows = []
    for found in sets:
        status = found["status"]
        rows.append(
            [
                found["metadata"]["name"],
                found["spec"]["name"],
                status["state"],
                len(found["spec"]["items"]),
                status["author"] or "-",
                output.age(found["metadata"]["creationTimestamp"]),
            ]
        )
    return Table(["Number", "Name", "State", "Objects", "Author", "Age"], rows)


@command(app, "show", "vcctl changes show 7", "vcctl changes show 7 -o yaml")
def show_set(number: Number, form: Output = Format.TABLE) -> None:
    """A change set: every field before and after, and what stands against applying it."""
    found = api().get(path("changes", number))
    if form in output.PLAIN_FORMATS:
        output.show_value(found, form)
        return
    output.line(f"{found['spec']['name']} ({found['status']['state']})")
    if found["spec"]["description"]:
        output.line(found["spec"]["description"])
    print_items(found["spec"]["items"])
    _print_verdict(found["status"])


@command(app, "diff", "vcctl changes diff 7")
def diff_set(number: Number) -> None:
    """What a change set would change, field by field."""
    print_items(api().get(path("changes", number))["spec"]["items"])


def print_items(items: Sequence[Item]) -> None:
    for item in items:
        operation = _OPERATIONS.get(item["operation"], item["operation"])
        for text, _ in difference_lines({**item, "operation": operation, "warnings": ()}):
            output.line(text)


def _print_verdict(status: Item) -> None:
    output.warn(status["warnings"])
    for conflict in status["conflicts"]:
        output.line(f"conflict: {conflict['message']}")
    for violation in status["violations"]:
        output.line(f"would be refused: {sentence(violation)}")
    if status["missingPermission"]:
        output.line(f"not permitted: {status['missingPermission']}")
    if status["mayBeApplied"]:
        output.line("It can be applied.")


@command(
    app,
    "create",
    'vcctl changes create "Friday quotas" -f quotas.yaml',
    "vcctl changes create empty",
)
def create_set(
    name: SetName,
    files: Files = None,
    description: Description = "",
    dry_run: DryRun = False,
    form: Output = Format.TABLE,
) -> None:
    """Collect the edits of files under a name. Nothing is applied yet.

    A document with $patch: delete names an object that is to go.
    """
    body: dict[str, Any] = {"name": name, "description": description}
    if files:
        body["documents"] = documents_of(read_sources(files))
    _tell(api().post("changes/", body, dry_run=dry_run), "created", form, dry_run)


@command(app, "add", "vcctl changes add 7 -f more.yaml")
def add_to_set(
    number: Number, files: Files = None, dry_run: DryRun = False, form: Output = Format.TABLE
) -> None:
    """Add the edits of files to a draft. A later edit of an object comes over an earlier one."""
    documents = documents_of(read_sources(files or []))
    changed = api().post(path("changes", number, "add"), documents, dry_run=dry_run)
    _tell(changed, "changed", form, dry_run)


@command(app, "refresh", "vcctl changes refresh 7")
def refresh_set(number: Number, dry_run: DryRun = False, form: Output = Format.TABLE) -> None:
    """Bring a draft up to date with what others changed since. Its wishes stay."""
    changed = api().post(path("changes", number, "refresh"), {}, dry_run=dry_run)
    _tell(changed, "changed", form, dry_run)


@command(app, "apply", "vcctl changes apply 7", 'vcctl changes apply 7 --reason "agreed" --yes')
def apply_set(
    number: Number, dry_run: DryRun = False, yes: Yes = False, form: Output = Format.TABLE
) -> None:
    """Apply all of a change set, or nothing. Shows what it changes and asks first."""
    if not dry_run and not yes:
        found = api().get(path("changes", number))
        print_items(found["spec"]["items"])
        confirm(f"Apply {found['spec']['name']}?", yes)
    applied = api().post(path("changes", number, "apply"), {}, dry_run=dry_run)
    output.warn(applied["warnings"])
    if form in output.PLAIN_FORMATS:
        output.show_value(applied, form)
    else:
        output.done(applied["message"], dry_run)


@command(app, "discard", "vcctl changes discard 7")
def discard_set(number: Number, dry_run: DryRun = False) -> None:
    """Discard a draft. It stays on record and can no longer be applied."""
    output.done(api().delete(path("changes", number), dry_run=dry_run)["message"], dry_run)


@command(app, "revert", "vcctl changes revert 7")
def revert_set(number: Number, dry_run: DryRun = False, form: Output = Format.TABLE) -> None:
    """A new draft that leads back to what was before an applied change set."""
    made = api().post(path("changes", number, "revert"), {}, dry_run=dry_run)
    _tell(made, "created", form, dry_run)


@command(
    app, "undo", "# the number of an entry stands in vcctl audit -o wide", "vcctl changes undo 41"
)
def undo_entry(entry: Entry, dry_run: DryRun = False, form: Output = Format.TABLE) -> None:
    """A new draft that undoes a single entry of the audit log."""
    made = api().post(path("audit", entry, "revert"), {}, dry_run=dry_run)
    _tell(made, "created", form, dry_run)


def _tell(found: Item, verb: str, form: Format, dry_run: bool) -> None:
    if form in output.PLAIN_FORMATS:
        output.show_value(found, form)
        return
    count = output.counted(len(found["spec"]["items"]), "object")
    name = found["metadata"]["name"]
    output.done(f"change set {name} ({found['spec']['name']}) {verb}: {count}", dry_run)
    output.warn(found["warnings"])
    _print_verdict(found["status"])
