"""vcctl is light: it loads neither the server nor, before they are needed, the libraries for HTTP,
YAML and terminals.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from dashboard.cli.main import COMMANDS, GROUPS, program, ready
from tests.dashboard.cli.conftest import typed

BASE = Path(__file__).resolve().parents[3]


def loaded_by(*words: str) -> set[str]:
    program = (
        "import sys\nsys.argv = ['vcctl', *sys.argv[1:]]\nfrom dashboard.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nprint('LOADED', *sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=BASE,
        env={"FUMAROLE_VAR": "/nowhere", "VCCTL_CONFIG": "/nowhere/contexts.json"},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in done.stdout.rpartition("LOADED")[2].split()}


def test_help_loads_no_library_at_all():
    assert not {"httpx", "rich", "yaml", "django", "celery", "scheduler"} & loaded_by(
        "queue", "list", "--help"
    )


def test_a_command_loads_no_server():
    loaded = loaded_by("queue", "list", "--server", "http://127.0.0.1:9")

    assert "httpx" in loaded
    assert (
        not {
            "pydantic",
            "rich",
            "pygments",
            "django",
            "rest_framework",
            "celery",
            "channels",
            "scheduler",
        }
        & loaded
    )


@pytest.mark.parametrize(
    "line",
    [
        (
            "vcctl queue create q -w 10 --capability cpu=2 --capability memory=1Gi --priority "
            "5 --no-reclaimable -o yaml"
        ),
        "vcctl queue create q",
        "vcctl queue list --interval 0.5 --watch -o name",
        "vcctl queue history q --limit 7 --commands",
        "vcctl apply -f a -f b --dry-run",
        "vcctl job run -N x --min 2 --replicas 3",
        "vcctl queue update q -w -3",
    ],
)
def test_the_short_way_gives_what_typers_own_gives(line: str):
    words = line.split()[1:]
    named = [word for word in words if word in (*GROUPS, *COMMANDS)][:1] + words[1:2]

    results = []
    for root in (ready(program(words)), typer.main.get_command(program(words))):
        command = root.commands[named[0]]
        is_group = hasattr(command, "commands")
        command = command.commands[words[1]] if is_group else command
        results.append(command.make_context("x", words[2:] if is_group else words[1:]).params)

    assert results[0] == results[1]
    assert [type(value) for value in results[0].values()] == [
        type(value) for value in results[1].values()
    ]


@pytest.mark.parametrize(
    "line", ["queue create q -w ten", "queue list -o jsn", "queue history q --limit 0"]
)
def test_what_is_wrong_is_still_refused(line: str):
    assert typed(f"vcctl {line}").code == 2
