"""`vcctl changes plan …`: change sets that begin and end at set times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.asking import DryRun, Yes, confirm
from dashboard.cli.client import api, path
from dashboard.cli.commands import command
from dashboard.cli.files.changes import Number, app, print_items
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import ExitCode, Problem
from dashboard.cli.tables import Table

Begin = Annotated[
    str, typer.Option("--begin", metavar="TIME", help="When it is applied: 2026-11-20T18:00.")
]
End = Annotated[
    str, typer.Option("--end", metavar="TIME", help="When it is taken back. Without: it stays.")
]
Zone = Annotated[str, typer.Option("--zone", metavar="ZONE", help="The time zone of these times.")]
Weekly = Annotated[bool, typer.Option("--weekly", help="Every week from then on.")]
LastDate = Annotated[
    str, typer.Option("--last-date", metavar="DATE", help="The last day on which it begins.")
]
Plan = Annotated[str, typer.Argument(metavar="PLAN", help="The number of the plan.")]
Turn = Annotated[str, typer.Argument(metavar="TURN", help="The number of the turn.")]
PlanState = Annotated[
    str, typer.Option("--state", metavar="STATE", help="Active, Cancelled or Ended.")
]
TurnState = Annotated[
    str, typer.Option("--state", metavar="STATE", help="Such as Planned, Holding, BeginConflict.")
]
Item = Mapping[str, Any]


@command(
    app,
    "plan",
    "vcctl changes plan 7 --begin 2026-11-20T18:00 --end 2026-11-23T08:00 --zone Europe/Berlin",
    "vcctl changes plan 7 --begin 2026-11-20T18:00 --end 2026-11-23T08:00 --weekly",
)
def plan_set(
    number: Number,
    begin: Begin,
    end: End = "",
    zone: Zone = "UTC",
    weekly: Weekly = False,
    last_date: LastDate = "",
    dry_run: DryRun = False,
    form: Output = Format.TABLE,
) -> None:
    """Plan a change set: it is applied when it begins, and taken back when it ends.

    It is refused if it would break a rule together with what else is planned.
    """
    if not (number.isascii() and number.isdigit()):
        raise Problem(f"There is no change set {number}.", ExitCode.NOT_FOUND)
    body: dict[str, Any] = {"changeSet": int(number), "begin": begin, "timeZone": zone}
    body |= {"end": end, "weekly": weekly, "lastDate": last_date}
    made = api().post("plans/", body, dry_run=dry_run)
    if form in output.PLAIN_FORMATS:
        output.show_value(made, form)
        return
    name = made["metadata"]["name"]
    words = made["status"]["inWords"]
    output.done(f"plan {name} of {made['spec']['name']} made: {words}", dry_run)


@command(app, "plans", "vcctl changes plans", "vcctl changes plans --state Active -o json")
def list_plans(state: PlanState = "", form: Output = Format.TABLE) -> None:
    """Plans of change sets, newest first, and what stands against them."""
    output.show(api().all("plans/", state=state), form, _plan_table)


def _plan_table(plans: Sequence[Item], _wide: bool) -> Table:
    rows = []
    for plan in plans:
        status = plan["status"]
        problems = [problem["message"] for problem in status["problems"]]
        rows.append(
            [
                plan["metadata"]["name"],
                plan["spec"]["name"],
                status["state"],
                status["inWords"],
                " ".join(problems) or "-",
            ]
        )
    return Table(["Plan", "Change set", "State", "Times", "Problem"], rows)


@command(app, "unplan", "vcctl changes unplan 3", "vcctl changes unplan 3 --yes")
def cancel_plan(number: Plan, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Cancel a plan. What is in force of it is taken back at once."""
    if not dry_run and not yes:
        found = api().get(path("plans", number))
        confirm(f"Cancel the plan of {found['spec']['name']}?", yes)
    output.done(api().delete(path("plans", number), dry_run=dry_run)["message"], dry_run)


@command(app, "turns", "vcctl changes turns", "vcctl changes turns --state BeginConflict")
def list_turns(state: TurnState = "", form: Output = Format.TABLE) -> None:
    """Each time that a planned change began, or is about to: what became of it."""
    output.show(api().all("occurrences/", state=state), form, _turn_table)


def _turn_table(turns: Sequence[Item], _wide: bool) -> Table:
    rows = []
    for turn in turns:
        spec = turn["spec"]
        status = turn["status"]
        rows.append(
            [
                turn["metadata"]["name"],
                spec["name"],
                output.clock(spec["beginsAt"]),
                output.clock(spec["endsAt"]),
                status["state"],
                status["message"] or "-",
            ]
        )
    return Table(["Turn", "Change set", "Begins", "Ends", "State", "Message"], rows)


@command(app, "resolve", "vcctl changes resolve 12", "vcctl changes resolve 12 --yes")
def resolve_turn(number: Turn, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Bring a turn that could not begin or end up to date, and apply it now.

    Shows what that changes and asks first.
    """
    if not dry_run and not yes:
        found = api().get(path("occurrences", number))
        print_items(found["status"]["wouldChange"] or ())
        confirm(f"Apply {found['spec']['name']} now?", yes)
    done = api().post(path("occurrences", number, "apply"), {}, dry_run=dry_run)
    output.done(f"turn {number} of {done['spec']['name']} applied", dry_run)


@command(app, "skip", "vcctl changes skip 12")
def skip_turn(number: Turn, dry_run: DryRun = False) -> None:
    """Leave a turn out, or leave what could not end as it is."""
    done = api().post(path("occurrences", number, "skip"), {}, dry_run=dry_run)
    output.done(f"turn {number} of {done['spec']['name']} skipped", dry_run)
