"""`vcctl queue open|close|suspend|resume|operate`: the commands that turn a queue's state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.asking import DryRun, Reason, Yes, confirm_if_watched, reason_body
from dashboard.cli.client import api, path
from dashboard.cli.commands import Options, command
from dashboard.cli.names import QueueArgument, QueueOption, queue_name
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import usage
from dashboard.cli.queues.read import app
from dashboard.cli.queues.write import update_with

_ASKED_BEFORE = ("close", "suspend")  # what stops work; to open and to resume is never a surprise
_ACTIONS = ("open", "close", "suspend", "resume", "update")


def turn(name: str, verb: str, reason: str, dry_run: bool, yes: bool, form: Format) -> None:
    """Give the command.

    A person at a terminal sees first what it will do to others, and may say no.
    """
    where = path("queues", name, verb)
    body = reason_body(reason)
    if verb in _ASKED_BEFORE and not dry_run:
        confirm_if_watched(lambda: _question(api().post(where, body, dry_run=True)), yes)
    answer = api().post(where, body, dry_run=dry_run)
    if form in (Format.JSON, Format.YAML):
        output.show_value(answer, form)
    else:
        _tell(answer)


def _question(answer: Mapping[str, Any]) -> str:
    """Empty where only the queue itself changes and nothing runs in it."""
    gangs = answer["podgroups"]
    concerns_others = len(answer["queues"]) > 1 or any(gangs.values()) or answer["warnings"]
    if not answer["changed"] or not concerns_others:
        return ""
    output.remark(answer["message"])
    output.warn(answer["warnings"])
    changes = []
    for turned in answer["queues"]:
        changes.append(f"{turned['name']} {turned['from']} → {turned['to']}")
    output.remark(f"Queues that change: {', '.join(changes)}.")
    users = ", ".join(answer["users"]) or "nobody"
    output.remark(f"Gangs: {gangs['running']} running, {gangs['waiting']} waiting; of {users}.")
    return f"{answer['command']} {answer['queue']}?"


def _tell(answer: Mapping[str, Any]) -> None:
    output.warn(answer["warnings"])
    output.done(answer["message"], answer["dryRun"])
    below = []
    for turned in answer["queues"]:
        if turned["name"] != answer["queue"]:
            below.append(turned)
    for turned in below:
        output.line(f"  {turned['name']}: {turned['from']} → {turned['to']}")


_HOW: Options = {
    "reason": (Reason, ""),
    "dry_run": (DryRun, False),
    "yes": (Yes, False),
    "form": (Output, Format.TABLE),
}


def _add_verb(verb: str, words: str, *examples: str) -> None:
    def turn_queue(name: QueueArgument = "", option: QueueOption = "", **given: Any) -> None:
        turn(queue_name(name, option, verb), verb, **given)

    turn_queue.__doc__ = words
    command(app, verb, *examples, options=_HOW)(turn_queue)


_add_verb(
    "open",
    "Let a queue take and start jobs again. Queues below that followed its state open with it.",
    "vcctl queue open team-a",
    'vcctl queue open -n team-a --reason "maintenance is over"',
)
_add_verb(
    "close",
    "Take no new jobs, in it and below it. Its jobs continue; when they have ended, the queue is "
    "Closed and can be deleted.",
    "vcctl queue close team-a",
    "vcctl queue close team-a --dry-run",
    'vcctl queue close -n team-a --reason "moved" --yes',
)
_add_verb(
    "suspend",
    "Start nothing new in a queue and below it, so that you can change it safely. New jobs wait; "
    "running ones continue.",
    "vcctl queue suspend team-a",
    'vcctl queue suspend team-a --reason "quota change"',
)
_add_verb(
    "resume",
    "End the suspension of a queue: what waited can start.",
    "vcctl queue resume team-a",
    "vcctl queue resume team-a --dry-run",
)


@command(
    app,
    "operate",
    "vcctl queue operate --name team-a --action close",
    "vcctl queue operate -n team-a -a suspend",
    "vcctl queue operate -n team-a -a update -w 20",
    options=_HOW,
)
def operate_queue(
    argument: QueueArgument = "",
    name: QueueOption = "",
    action: Annotated[
        str,
        typer.Option(
            "--action", "-a", metavar="ACTION", help="open, close, suspend, resume or update."
        ),
    ] = "",
    weight: Annotated[
        int, typer.Option("--weight", "-w", help="The new weight, with update.", show_default=False)
    ] = 0,
    **given: Any,
) -> None:
    """Volcano's form of open, close, suspend, resume, and of changing the weight."""
    wanted = queue_name(argument, name, "operate")
    if not action:
        raise usage(f"Say what to do with {wanted}. Give --action: {', '.join(_ACTIONS)}.")
    verb = action.lower()
    if verb not in _ACTIONS:
        raise usage(f"The action {action} is not known. Give one of {', '.join(_ACTIONS)}.")
    if verb != "update":
        turn(wanted, verb, **given)
    elif weight == 0:
        raise usage(
            f"To update the queue {wanted}, its new weight must be given with --weight, and be "
            "above 0."
        )
    else:
        update_with(wanted, {"spec": {"weight": weight}}, given["dry_run"], given["form"])
