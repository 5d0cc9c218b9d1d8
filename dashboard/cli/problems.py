"""How a command ends: the exit codes, and the one exception that carries a sentence to the user."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Documented in docs/cli.md, and kept: scripts rely on them."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    NOT_ALLOWED = 4
    NO_CONNECTION = 5
    INTERRUPTED = 130  # as every shell has it for Ctrl-C


MEANINGS = {
    ExitCode.DONE: "done, or there was nothing to do",
    ExitCode.REFUSED: "the server refused it, or you answered no",
    ExitCode.USAGE: (
        "the command was not understood: an option is missing, unknown or has a wrong value"
    ),
    ExitCode.NOT_FOUND: "there is nothing with that name, or you may not see it",
    ExitCode.NOT_ALLOWED: "you are not signed in, or may not do this",
    ExitCode.NO_CONNECTION: (
        "no server is known, it cannot be reached, or it is not available just now"
    ),
    ExitCode.INTERRUPTED: "you pressed Ctrl-C",
}


class Problem(Exception):
    """Why a command cannot go on: one sentence on what is wrong with what, and what to do."""

    def __init__(self, message: str, code: ExitCode = ExitCode.REFUSED) -> None:
        super().__init__(message)
        self.code = code


def usage(message: str) -> Problem:
    return Problem(message, ExitCode.USAGE)
