"""`vcctl completion bash|zsh|fish`: a script with which the shell completes commands and names."""

from __future__ import annotations

from typing import Annotated

import typer

from dashboard.cli import output
from dashboard.cli.commands import command
from dashboard.cli.problems import usage

SHELLS = ("bash", "zsh", "fish")
PROGRAMS = ("vcctl", "vsub", "vjobs", "vqueues", "vcancel", "vsuspend", "vresume")


def register(app: typer.Typer) -> None:
    command(
        app,
        "completion",
        "# for this shell; put the line into ~/.bashrc or ~/.zshrc to keep it",
        'eval "$(vcctl completion bash)"',
        "vcctl completion fish > ~/.config/fish/completions/vcctl.fish",
    )(completion)


def completion(
    shell: Annotated[
        str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)
    ] = "",
) -> None:
    """The script that makes a shell complete commands, options, and the names of queues, jobs and
    nodes.
    """
    if shell not in SHELLS:
        question = "Which shell"
        if shell:
            question = f"The shell {shell} is not known"
        raise usage(f"{question}? Give one of {', '.join(SHELLS)}.")
    from typer._completion_shared import get_completion_script

    for program in PROGRAMS:
        output.line(
            get_completion_script(
                prog_name=program, complete_var=f"_{program.upper()}_COMPLETE", shell=shell
            )
        )
