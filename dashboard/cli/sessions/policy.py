"""`vcctl policy get|set|validate|preset|presets`: the scheduler's policy, in Volcano's YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.advice import sentence
from dashboard.cli.asking import DryRun, Reason, Yes, confirm
from dashboard.cli.client import api
from dashboard.cli.commands import command, new_app
from dashboard.cli.files.documents import read_text
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import ExitCode, Problem, usage

app = new_app("The scheduler's policy: actions, plugins and their arguments.")
Given = Annotated[
    str,
    typer.Argument(metavar="[FILE]", help="The policy; - is standard input.", show_default=False),
]
File = Annotated[
    str,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="The policy; the same as FILE.",
        show_default=False,
    ),
]


_NAMED = 8


@command(
    app, "get", "vcctl policy get", "vcctl policy get > policy.yaml", "vcctl policy get -o json"
)
def get_policy(form: Output = Format.TABLE) -> None:
    """The policy in force, as it was written."""
    policy = api().get("policy/")
    if form in output.PLAIN_FORMATS:
        output.show_value(policy, form)
    else:
        output.line(policy["spec"]["policy"].rstrip("\n"))


def _policy_text(argument: str, option: str) -> str:
    name = argument or option
    if not name:
        raise usage("Which policy? Name the file, or - for standard input.")
    if name != "-":
        return read_text(Path(name))
    return read_text(None)


@command(
    app,
    "set",
    "vcctl policy set policy.yaml",
    'vcctl policy set -f policy.yaml --reason "fair by weight" --yes',
)
def set_policy(
    argument: Given = "",
    option: File = "",
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Replace the policy; the next session follows it.

    Says what that session would do differently, and asks first, unless you give --yes.
    """
    body = _with_reason({"policy": _policy_text(argument, option)}, reason)
    if not _would_change(body, dry_run):
        return
    if argument == "-" or option == "-":
        _require_yes(yes)
    confirm("Replace the policy that all queues are scheduled by?", yes)
    api().put("policy/", body, confirm="true")
    output.line("policy replaced")


def _with_reason(spec: dict[str, Any], reason: str) -> dict[str, Any]:
    if reason:
        return {"spec": spec, "reason": reason}
    return {"spec": spec}


def _would_change(body: dict[str, Any], dry_run: bool) -> bool:
    """Whether there is something to apply. Says what it would do."""
    checked = api().put("policy/", body, dry_run=True)
    output.warn(checked.get("warnings") or ())
    if not checked["changed"]:
        output.line("policy unchanged")
        return False
    _tell_effect(checked.get("effect"))
    if dry_run:
        output.line("policy would be replaced (dry run)")
    return not dry_run


@command(
    app,
    "preset",
    "vcctl policy preset volcano",
    'vcctl policy preset fumarole --reason "back to the default" --yes',
)
def choose_preset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="See: vcctl policy presets.")],
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Replace the policy by one of the presets; the next session follows it.

    Says what that session would do differently, and asks first, unless you give --yes.
    """
    body = _with_reason({"preset": name}, reason)
    if not _would_change(body, dry_run):
        return
    confirm(_question_about(name), yes)
    api().put("policy/", body, confirm="true")
    output.line(f"policy replaced by the preset {name}")


def _question_about(preset: str) -> str:
    if preset == "bound":
        return "This preset is a yardstick and ignores the quotas of all queues. Use it anyway?"
    return f"Replace the policy that all queues are scheduled by with the preset {preset}?"


@command(app, "presets", "vcctl policy presets", "vcctl policy presets -o json")
def list_presets(form: Output = Format.TABLE) -> None:
    """The presets, what they do, and which one is in force."""
    found = api().get("policy/presets/")
    if form in output.PLAIN_FORMATS:
        output.show_value(found, form)
        return
    for preset in found["presets"]:
        output.line(f"{preset['name']}{_marks_of(preset)}")
        output.line(f"  {preset['about']}")


def _marks_of(preset: dict[str, Any]) -> str:
    marks = []
    if preset["isDefault"]:
        marks.append("default")
    if preset["inForce"]:
        marks.append("in force")
    if preset.get("inForceWithOtherTimes"):  # servers of an older version do not say
        marks.append("in force, with other times")
    if marks:
        return f" ({', '.join(marks)})"
    return ""


def _tell_effect(effect: dict[str, Any] | None) -> None:
    """What the next session would do, as things are; servers of an older version do not say."""
    if effect is None:
        return
    now = effect["now"]
    then = effect["then"]
    output.remark(f"Pods placed by the next session: {then['placed']} (now {now['placed']}).")
    output.remark(f"Pods evicted: {then['evicted']} (now {now['evicted']}).")
    for title, names in (("no longer", effect["noLonger"]), ("in addition", effect["newly"])):
        if names:
            if len(names) > _NAMED:
                more = f" and {len(names) - _NAMED} more"
            else:
                more = ""
            output.remark(f"Given a place {title}: {', '.join(names[:_NAMED])}{more}.")


def _require_yes(yes: bool) -> None:
    if not yes:
        raise usage(
            "A policy from standard input cannot be asked about; say --yes, or --dry-run to look "
            "first."
        )


@command(app, "validate", "vcctl policy validate policy.yaml")
def validate_policy(argument: Given = "", option: File = "") -> None:
    """Whether the server would take a policy: what is wrong where, and what has no effect."""
    checked = api().post("policy/validate/", {"spec": {"policy": _policy_text(argument, option)}})
    output.warn(checked["warnings"])
    if not checked["valid"]:
        raise Problem(
            "\n".join(sentence(violation) for violation in checked["violations"]), ExitCode.REFUSED
        )
    output.line("The policy is valid.")
