"""`vcctl job suspend|resume|restart|cancel|delete`: commands to jobs."""

from __future__ import annotations

import time
from typing import Any

from dashboard.cli import output
from dashboard.cli.asking import DryRun, Reason, Yes, confirm, reason_body
from dashboard.cli.client import api, path
from dashboard.cli.commands import Options, command
from dashboard.cli.jobs.read import ENDED, app
from dashboard.cli.names import JobArgument, JobOption, Namespace, job_name
from dashboard.cli.problems import Problem

_LOSES_WORK = {"restart": "stops its pods and begins again", "cancel": "stops its pods for good"}
_ENDING_SECONDS = 60.0
_LOOK_AGAIN_SECONDS = 0.5


def command_job(place: str, name: str, verb: str, reason: str, dry_run: bool, yes: bool) -> None:
    where = path("jobs", place, name, verb)
    body = reason_body(reason)
    is_asked = verb in _LOSES_WORK and not dry_run and not yes
    if is_asked and api().post(where, body, dry_run=True)["changed"]:
        phase = _phase_of(path("jobs", place, name))
        words = f"{verb.capitalize()} {place}/{name}, which is {phase}? It {_LOSES_WORK[verb]}."
        confirm(words, yes)
    answer = api().post(where, body, dry_run=dry_run)
    output.done(answer["message"], dry_run)


def delete_job(place: str, name: str, dry_run: bool, yes: bool) -> None:
    """As Volcano's: a job that lives is ended first, and waited for."""
    where = path("jobs", place, name)
    phase = _phase_of(where)
    if dry_run:
        output.line(f"job/{place}/{name}, which is {phase}, would be deleted (dry run)")
        return
    confirm(
        f"Delete the job {place}/{name}, which is {phase}, with its pods? This cannot be undone.",
        yes,
    )
    if phase not in ENDED:
        with output.working(f"Ending {place}/{name} …"):
            _wait_for_end(where, f"{place}/{name}")
    api().delete(where)
    output.line(f"job/{place}/{name} deleted")


def _phase_of(where: str) -> str:
    return str(api().get(where)["status"]["state"]["phase"])


def _wait_for_end(where: str, name: str) -> None:
    api().post(f"{where}cancel/")
    give_up = time.monotonic() + _ENDING_SECONDS
    while (phase := _phase_of(where)) not in ENDED:
        if time.monotonic() > give_up:
            raise Problem(
                f"{name} was cancelled and is {phase}; its pods are still stopping. Delete it "
                "again when it has ended."
            )
        time.sleep(_LOOK_AGAIN_SECONDS)


_HOW: Options = {
    "name": (JobArgument, ""),
    "option": (JobOption, ""),
    "namespace": (Namespace, "default"),
    "reason": (Reason, ""),
    "dry_run": (DryRun, False),
}
_ASKED: Options = {**_HOW, "yes": (Yes, False)}


def _make_command(
    verb: str,
    *,
    name: str,
    option: str,
    namespace: str,
    reason: str,
    dry_run: bool,
    yes: bool = True,
) -> None:
    command_job(*job_name(name, option, namespace, verb), verb, reason, dry_run, yes)


@command(
    app,
    "suspend",
    "vcctl job suspend train",
    "vcctl job suspend -N train -n research",
    options=_HOW,
)
def suspend_job(**given: Any) -> None:
    """Stop a job's pods and keep the job, to be resumed later."""
    _make_command("suspend", **given)


@command(
    app, "resume", "vcctl job resume train", "vcctl job resume -N train -n research", options=_HOW
)
def resume_job(**given: Any) -> None:
    """Resume a suspended job: it waits for places for its pods again."""
    _make_command("resume", **given)


@command(
    app,
    "restart",
    "vcctl job restart train",
    "vcctl job restart research/train --yes",
    options=_ASKED,
)
def restart_job(**given: Any) -> None:
    """Stop a job's pods and begin it again. Asks first, unless you give --yes."""
    _make_command("restart", **given)


@command(
    app,
    "cancel",
    "vcctl job cancel train",
    'vcctl job cancel train --reason "wrong data" --yes',
    options=_ASKED,
)
def cancel_job(**given: Any) -> None:
    """End a job for good; it stays in the list. Asks first, unless you give --yes."""
    _make_command("cancel", **given)


@command(app, "delete", "vcctl job delete train", "vcctl job delete -N train -n research --yes")
def delete(
    name: JobArgument = "",
    option: JobOption = "",
    namespace: Namespace = "default",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """End a job and remove it. Asks first, unless you give --yes."""
    delete_job(*job_name(name, option, namespace, "delete"), dry_run, yes)
