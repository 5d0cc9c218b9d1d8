"""Before something that cannot be undone: say what will happen, and ask."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from dashboard.cli import output
from dashboard.cli.problems import Problem, usage

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Reason = Annotated[
    str,
    typer.Option(
        "--reason", metavar="TEXT", help="The reason, kept with the command and in the audit log."
    ),
]


def reason_body(reason: str) -> dict[str, str]:
    """The body of a command: empty where no reason was given."""
    if not reason:
        return {}
    return {"reason": reason}


def confirm(question: str, yes: bool) -> None:
    """Go on only with a yes. Where nobody can answer, say so instead of guessing."""
    if yes:
        return
    if not _ask_yes_or_no(question):
        raise Problem("Nothing was changed.")


def confirm_if_watched(question: Callable[[], str], yes: bool) -> None:
    """For what can be taken back: ask a person at a terminal, let a script go on.

    No question, no asking.
    """
    if yes or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    asked = question()
    if asked:
        confirm(asked, yes)


def _ask_yes_or_no(question: str) -> bool:
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        output.remark("")
        raise usage(
            "Nobody answered the question above, so nothing was done. Say --yes to go on without "
            "it, --dry-run to look first."
        )
    return answer.strip().lower() in ("y", "yes")
