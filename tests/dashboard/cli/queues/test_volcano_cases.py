"""The command line's cases of the lifecycle data: Volcano's own tests of vcctl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from dashboard.cli import main
from dashboard.cli.queues.read import queue_table
from scheduler.models import PodGroup, Queue
from tests.dashboard.cli.conftest import Done, Type

FOLDER = Path(__file__).resolve().parents[3] / "conformance" / "lifecycle"
CASES = [
    (f"{file.stem}: {case['name']}", case)
    for file in sorted(FOLDER.glob("cli_*.json"))
    for case in json.loads(file.read_text())
]
# A server always has root and default, so a list of nothing can only be had from the function.
EMPTY_LIST = "TestGetQueue_empty"


def of_kind(operation: str) -> list[Any]:
    return [
        pytest.param(case, id=name)
        for name, case in CASES
        if case["when"]["operation"] == operation and EMPTY_LIST not in name
    ]


def test_every_file_of_the_command_line_is_read():
    assert len({case["source"].partition("/[")[0] for _, case in CASES}) >= 9
    assert len(CASES) == len(of_kind("cli")) + len(of_kind("cli.describe")) + 1


def arrange(case: dict[str, Any]) -> None:
    given = case["given"]
    names = [queue["metadata"]["name"] for queue in given["queues"]]
    if given.get("any_name_resolves"):
        names = [case["when"]["flags"]["name"]] if case["when"]["flags"]["name"] else []
    specs = {queue["metadata"]["name"]: queue["spec"] for queue in given["queues"]}
    root = Queue.objects.get(name="root")
    for name in names:
        queue = Queue.objects.create(
            name=name,
            parent=root,
            weight=specs.get(name, {}).get("weight", 1),
        )
        for phase, count in given.get("podgroup_counts", {}).get(name, {}).items():
            for number in range(count):
                PodGroup.objects.create(
                    namespace="default",
                    name=f"{phase.lower()}-{number}",
                    queue=queue,
                    phase=phase,
                )


def act(case: dict[str, Any], vcctl: Type) -> Done:
    """Flags as Volcano has them.

    Upstream creates `testQueue`, which is no name here: names are those of Kubernetes.
    """
    creates = case["when"]["argv"] == ["queue", "create"]
    flags = {
        name: str(value).lower() if creates else value
        for name, value in case["when"]["flags"].items()
    }
    return vcctl(
        " ".join(
            [
                "vcctl",
                *case["when"]["argv"],
                *(f"--{name}={value}" for name, value in flags.items()),
            ]
        )
    )


@pytest.mark.parametrize("case", of_kind("cli"))
def test_a_command_ends_as_volcanos_does(case: dict[str, Any], vcctl: Type):
    arrange(case)
    expected = case["expect"]

    done = act(case, vcctl)

    if expected["error"] is not None:
        assert done.code == 2
        assert done.out == ""
        assert all(word in done.err for word in expected.get("mentions", ()))
        return
    assert (done.code, done.err) == (0, "")
    if "stdout" in expected:
        lines = done.out.splitlines(keepends=True)
        assert (
            lines[0] + next(line for line in lines if line.startswith("test-queue"))
            == expected["stdout"]
        )
    if "effect" in expected:
        name = case["when"]["flags"]["name"]
        command = vcctl(f"vcctl queue history {name} --commands -o json").json["items"][0]
        assert command["spec"]["action"] == expected["effect"]["command_created"]["action"]


@pytest.mark.parametrize("case", of_kind("cli.describe"))
def test_a_command_has_volcanos_flags(case: dict[str, Any]):
    group, name = case["when"]["argv"]

    command = typer.main.get_command(main.program([group])).commands[group].commands[name]

    flags = {flag for parameter in command.params for flag in parameter.opts}
    assert {f"--{flag}" for flag in case["expect"]["flags_present"]} <= flags


def test_a_list_of_nothing_says_so(capsys: pytest.CaptureFixture[str]):
    queue_table([], False).print()

    assert capsys.readouterr().out == "No resources found\n"
