"""`manage.py simulate` itself: it needs no settings and no Django, so that a file can be tried on any machine."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import Any, TextIO

from rich.console import Console

from scheduler.engine.presets import PRESETS
from scheduler.management.console import print_run
from scheduler.management.load_simulation import simulate_load, simulate_rest
from scheduler.scenarios.files import Scenario, ScenarioError, read_file
from scheduler.scenarios.reports import outcome_document
from scheduler.scenarios.running import run_scenario

UNUSABLE = 2
MOST_SESSIONS = 10_000
WIDTH_OF_A_PIPE = 140
HELP = "Run scenario files (YAML or JSON) through the scheduler and show what it would do. Needs no database and no cluster."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a scenario file; - reads the standard input"
    )
    parser.add_argument(
        "--output",
        choices=["text", "table", "json", "html"],
        default="text",
        help="tables for people (text and table are the same), objects for programs, or, with --load, a page with plots",
    )
    parser.add_argument(
        "--sessions",
        type=_sessions,
        help="run so many sessions in a row; pods start and evicted pods go in between",
    )
    parser.add_argument(
        "--load",
        metavar="MIX|FILE",
        help="run forward in simulated time under a named mix of jobs, or a recorded load (CSV or SWF)",
    )
    parser.add_argument(
        "--seconds",
        type=_positive,
        help="for how many simulated seconds; 600 for a mix, all of it for a recorded load",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=7,
        help="the jobs of a mix are drawn from it; the same seed, the same jobs",
    )
    parser.add_argument(
        "--rate",
        type=_positive,
        help="jobs of a mix per simulated second; its own rate unless given",
    )
    parser.add_argument(
        "--policy",
        action="append",
        metavar="NAME|FILE",
        help=f"with --load or --rest: a preset ({', '.join(PRESETS)}) or a policy file; give it several times to compare",
    )
    parser.add_argument(
        "--rest",
        type=_sessions,
        metavar="N",
        help="run N sessions in which evicted pods come back and nothing else changes; exit code 1 without rest",
    )


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e10:
        raise ArgumentTypeError(f"must be a number above 0, not “{text}”")
    return number


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
        scenarios = [
            scenario for path in options.files for scenario in read_file(path, sys.stdin.read)
        ]
        if options.load or options.rest:
            return _simulate_forward(scenarios, options, out, complaints)
        if options.policy or options.output == "html":
            raise ScenarioError("--policy and --output html go with --load or --rest")
    except ScenarioError as error:
        complaints.write(f"{error}\n")
        return UNUSABLE
    for scenario in scenarios:
        complaints.writelines(
            f"{scenario.name}: warning: {warning}\n" for warning in scenario.warnings
        )
    if options.output == "json":
        documents = [_document(scenario, options.sessions) for scenario in scenarios]
        out.write(
            json.dumps(
                documents if len(documents) > 1 else documents[0], indent=2, ensure_ascii=False
            )
            + "\n"
        )
    else:
        _print(scenarios, options.sessions, out)
    return 0


def _simulate_forward(
    scenarios: list[Scenario], options: Namespace, out: TextIO, complaints: TextIO
) -> int:
    """One scenario, under a load or until it rests."""
    if len(scenarios) != 1:
        raise ScenarioError("--load and --rest take one scenario at a time")
    if options.load and options.rest:
        raise ScenarioError("--load and --rest are two things; give one of them")
    if options.rest:
        if options.output == "html":
            raise ScenarioError("--output html goes with --load")
        return simulate_rest(scenarios[0], options, out)
    return simulate_load(scenarios[0], options, out, complaints)


def _print(scenarios: list[Scenario], sessions: int | None, out: TextIO) -> None:
    console = Console(file=out, highlight=False, width=None if out.isatty() else WIDTH_OF_A_PIPE)
    for scenario in scenarios:
        several = len(scenario.steps) or sessions or 1
        for number, run in enumerate(run_scenario(scenario, sessions or 1), start=1):
            heading = (
                f"{scenario.name} (session {number} of {several})" if several > 1 else scenario.name
            )
            print_run(console, run, heading)


def _document(scenario: Scenario, sessions: int | None) -> dict[str, Any]:
    runs = [
        outcome_document(run.name, run.outcome) for run in run_scenario(scenario, sessions or 1)
    ]
    if scenario.steps:
        return {"name": scenario.name, "steps": runs}
    return {"name": scenario.name, "sessions": runs} if sessions else runs[0]
