"""docs/cli.md is made from the commands, and the how-to shows the script that the tests run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from dashboard.cli.main import COMMANDS, GROUPS, program
from dashboard.cli.reference import reference
from dashboard.cli.short import PROGRAMS

BASE = Path(__file__).resolve().parents[3]


def commands() -> Iterator[tuple[str, Any]]:
    root: Any = typer.main.get_command(program())
    for name, command in root.commands.items():
        if hasattr(command, "commands"):
            yield from ((f"vcctl {name} {inner}", one) for inner, one in command.commands.items())
        else:
            yield f"vcctl {name}", command
    yield from ((name, typer.main.get_command(app)) for name, app in PROGRAMS.items())


ALL = dict(commands())


def test_the_reference_is_what_the_commands_say():
    written = (BASE / "docs" / "cli.md").read_text()

    assert written == reference(), "run: python -m dashboard.cli.reference > docs/cli.md"


def test_the_how_to_shows_the_script_that_is_tested():
    assert (BASE / "examples" / "stories.sh").read_text() in (
        BASE / "docs" / "how-to" / "command-line.md"
    ).read_text()


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_help_with_examples_that_can_be_typed(name: str):
    command = ALL[name]

    examples = [line.strip() for line in command.epilog.splitlines() if name in line]

    assert len(command.help) > 10
    assert examples, "no example"
    for line in examples:
        words = shlex.split(
            line[line.index(name) :].partition(" > ")[0].partition(" < ")[0].partition(")")[0]
        )
        context = command.make_context(name, words[len(name.split()) :], resilient_parsing=True)
        flags = {
            flag
            for parameter in command.params
            for flag in (*parameter.opts, *parameter.secondary_opts)
        }
        assert all(word in flags for word in words if word.startswith("--")), line
        assert context is not None


def test_what_is_loaded_for_a_command_is_only_what_it_needs():
    some: Any = typer.main.get_command(program(["queue", "list"]))

    assert list(some.commands) == ["queue"]
    assert list(some.commands["queue"].commands) == ["list"]


@pytest.mark.parametrize(
    "words",
    [[], ["--help"], ["nonsense"], ["--server", "x", "queue", "list"]],
    ids=" ".join,
)
def test_whatever_is_not_a_plain_command_loads_everything(words: list[str]):
    root: Any = typer.main.get_command(program(words))

    assert set(root.commands) == {*GROUPS, *COMMANDS}
