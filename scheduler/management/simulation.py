"""`manage.py simulate` itself: it needs no settings and no Django, so that a file can be tried on any machine."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import Any, TextIO

from rich.console import Console

from scheduler.management.console import print_run
from scheduler.scenarios.files import Scenario, ScenarioError, read_file
from scheduler.scenarios.reports import outcome_document
from scheduler.scenarios.running import run_scenario

UNUSABLE = 2
MOST_SESSIONS = 10_000
WIDTH_OF_A_PIPE = 140
HELP = "Run scenario files (YAML or JSON) through the scheduler and show what it would do. Needs no database and no cluster."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a scenario file; - reads the standard input")
    parser.add_argument("--output", choices=["text", "json"], default="text", help="tables for people, or one object per scenario")
    parser.add_argument("--sessions", type=_sessions, help="run so many sessions in a row; pods start and evicted pods go in between")


def _sessions(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_SESSIONS:
        raise ArgumentTypeError(f"must be a whole number from 1 to {MOST_SESSIONS}, not “{text}”")
    return int(text)


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="manage.py simulate", description=HELP)
    add_arguments(parser)
    return simulate(parser.parse_args(arguments), sys.stdout, sys.stderr)


def simulate(options: Namespace, out: TextIO, complaints: TextIO) -> int:
    """The exit code: 0, or 2 when a file can not be used."""
    try:
        scenarios = [scenario for path in options.files for scenario in read_file(path, sys.stdin.read)]
    except ScenarioError as error:
        complaints.write(f"{error}\n")
        return UNUSABLE
    for scenario in scenarios:
        complaints.writelines(f"{scenario.name}: warning: {warning}\n" for warning in scenario.warnings)
    if options.output == "json":
        documents = [_document(scenario, options.sessions) for scenario in scenarios]
        out.write(json.dumps(documents if len(documents) > 1 else documents[0], indent=2, ensure_ascii=False) + "\n")
    else:
        _print(scenarios, options.sessions, out)
    return 0


def _print(scenarios: list[Scenario], sessions: int | None, out: TextIO) -> None:
    console = Console(file=out, highlight=False, width=None if out.isatty() else WIDTH_OF_A_PIPE)
    for scenario in scenarios:
        several = len(scenario.steps) or sessions or 1
        for number, run in enumerate(run_scenario(scenario, sessions or 1), start=1):
            heading = f"{scenario.name} (session {number} of {several})" if several > 1 else scenario.name
            print_run(console, run, heading)


def _document(scenario: Scenario, sessions: int | None) -> dict[str, Any]:
    runs = [outcome_document(run.name, run.outcome) for run in run_scenario(scenario, sessions or 1)]
    if scenario.steps:
        return {"name": scenario.name, "steps": runs}
    return {"name": scenario.name, "sessions": runs} if sessions else runs[0]
