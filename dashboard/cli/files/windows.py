"""`vcctl window …`: a subtree is suspended, changed by a change set, and resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.asking import DryRun, Reason, Yes, confirm, reason_body
from dashboard.cli.client import api, path
from dashboard.cli.commands import Options, command, new_app
from dashboard.cli.names import QueueArgument, QueueOption, queue_name
from dashboard.cli.output import Format, Output
from dashboard.cli.tables import Table

app = new_app("Safe windows: suspend queues, change them, look at the effect, apply, resume.")
Number = Annotated[str, typer.Argument(metavar="NUMBER", help="The number of the window.")]
State = Annotated[
    str, typer.Option("--state", metavar="STATE", help="Open, Finished or Abandoned.")
]
SetName = Annotated[str, typer.Option("--set", metavar="NAME", help="The name of its change set.")]
Item = Mapping[str, Any]
_NEXT = {
    "suspend": "Its queue is no longer suspended. Go on: vcctl window suspend {number}",
    "edit": "Add edits: vcctl changes add {changes} -f FILE",
    "preview": "Look at the effect: vcctl whatif --changes {changes}, then "
    "vcctl window apply {number}",
    "apply": "Apply it: vcctl window apply {number}",
    "resume": "Finish it: vcctl window resume {number}",
}


@command(app, "list", "vcctl window list", "vcctl window list --state Open -o json")
def list_windows(state: State = "", form: Output = Format.TABLE) -> None:
    """The safe windows whose queue you may see, newest first."""
    output.show(api().all("windows/", state=state), form, _table)


def _table(windows: Sequence[Item], _wide: bool) -> Table:
    rows = []
    for found in windows:
        status = found["status"]
        rows.append(
            [
                found["metadata"]["name"],
                found["spec"]["queue"],
                status["state"],
                status["step"],
                found["spec"]["changeSet"],
                status["author"] or "-",
                output.age(found["metadata"]["creationTimestamp"]),
            ]
        )
    return Table(["Number", "Queue", "State", "Next", "Changes", "Author", "Age"], rows)


@command(app, "show", "vcctl window show 7", "vcctl window show 7 -o yaml")
def show_window(number: Number, form: Output = Format.TABLE) -> None:
    """How far a window is, and what others did to its queues meanwhile."""
    found = api().get(path("windows", number))
    if form in output.PLAIN_FORMATS:
        output.show_value(found, form)
        return
    spec = found["spec"]
    status = found["status"]
    output.line(f"{spec['queue']} ({status['state']}), begun by {status['author'] or 'the system'}")
    for queue in status["before"]:
        output.line(f"  {queue['queue']}: {queue['state']} before")
    _print_standing(found)


def _print_standing(found: Item) -> None:
    status = found["status"]
    for told in (*status["incidents"], *status["conflicts"]):
        output.remark(f"Others changed this meanwhile: {told['message']}")
    if status["step"] in _NEXT:
        number = found["metadata"]["name"]
        changes = found["spec"]["changeSet"]
        output.line(_NEXT[status["step"]].format(number=number, changes=changes))


@command(
    app,
    "begin",
    "vcctl window begin team-a",
    'vcctl window begin team-a --set "Quarterly quotas" --reason "agreed" --yes',
)
def begin_window(
    name: QueueArgument = "",
    option: QueueOption = "",
    set_name: SetName = "",
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    form: Output = Format.TABLE,
) -> None:
    """Suspend a queue with all below it, and begin a change set. Shows what stops, asks first."""
    queue = queue_name(name, option, "begin")
    body = {"queue": queue, "name": set_name, **reason_body(reason)}
    if not dry_run and not yes:
        _print_effect(api().post("windows/", body, dry_run=True)["effect"])
        confirm(f"Suspend {queue} and begin?", yes)
    _tell(api().post("windows/", body, dry_run=dry_run), form, dry_run)


def _print_effect(effect: Item | None) -> None:
    if effect is None:
        return
    output.warn(effect["warnings"])
    for turned in effect["queues"]:
        output.line(f"  {turned['name']}: {turned['from']} → {turned['to']}")
    gangs = effect["podgroups"]
    users = ", ".join(effect["users"]) or "nobody"
    output.line(f"Gangs: {gangs['running']} running, {gangs['waiting']} waiting; of {users}.")


def _tell(answer: Item, form: Format, dry_run: bool) -> None:
    output.warn(answer["warnings"])
    if form in output.PLAIN_FORMATS:
        output.show_value(answer, form)
        return
    output.done(answer["message"], dry_run)
    if not dry_run:
        _print_standing(answer)


_HOW: Options = {
    "reason": (Reason, ""),
    "dry_run": (DryRun, False),
    "yes": (Yes, False),
    "form": (Output, Format.TABLE),
}
_ASKED_BEFORE = ("apply", "revert", "abandon")


def _step(verb: str, number: str, reason: str, dry_run: bool, yes: bool, form: Format) -> None:
    where = path("windows", number, verb)
    body = reason_body(reason)
    if verb in _ASKED_BEFORE and not dry_run and not yes:
        planned = api().post(where, body, dry_run=True)
        output.line(planned["message"])
        _print_effect(planned["effect"])
        confirm(f"{verb.capitalize()} safe window {number}?", yes)
    _tell(api().post(where, body, dry_run=dry_run), form, dry_run)


def _add_verb(verb: str, words: str, *examples: str) -> None:
    def take_step(number: Number, **given: Any) -> None:
        _step(verb, number, **given)

    take_step.__doc__ = words
    command(app, verb, *examples, options=_HOW)(take_step)


_add_verb(
    "apply",
    "Apply the change set of a window. Its queue stays suspended.",
    "vcctl window apply 7",
    "vcctl window apply 7 --dry-run",
)
_add_verb(
    "revert",
    "Undo the apply at once. The edits become a draft again.",
    "vcctl window revert 7 --yes",
)
_add_verb(
    "resume",
    "Give the queue back what it was before, and end the window. The undo of begin, too.",
    "vcctl window resume 7",
)
_add_verb(
    "suspend",
    "Suspend the queue again: the undo of resume, or after others resumed it.",
    "vcctl window suspend 7",
)
_add_verb(
    "abandon",
    "Revert what was applied, discard the draft, resume and end: all of it or nothing.",
    "vcctl window abandon 7",
    'vcctl window abandon 7 --reason "not today" --yes',
)
_add_verb(
    "collect",
    "Begin another change set, where that of the window was discarded.",
    "vcctl window collect 7",
)
