"""`manage.py simulate` itself. It needs neither settings nor Django, so it runs on any machine."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import Any, TextIO

from scheduler.engine.presets import PRESETS
from scheduler.management.console import console_for, print_run, write_json
from scheduler.management.load_simulation import simulate_load, simulate_rest
from scheduler.scenarios.files import Scenario, ScenarioError, read_file
from scheduler.scenarios.reports import outcome_document
from scheduler.scenarios.running import run_scenario

UNUSABLE = 2
MOST_SESSIONS = 10_000
HELP = (
    "Run scenario files (YAML or JSON) through the scheduler and show what it would do. "
    "Needs no database and no cluster."
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a scenario file; - reads the standard input"
    )
    parser.add_argument(
        "--output",
        choices=["text", "table", "json", "html"],
        default="text",
        help=(
            "text or table: tables for people; json: objects for programs; "
            "html (with --load): a page with plots"
        ),
    )
    parser.add_argument(
        "--sessions",
        type=_sessions,
        help="run this many sessions in a row; pods start and evicted pods leave in between",
    )
    parser.add_argument(
        "--load",
        metavar="MIX|FILE",
        help="run forward in simulated time under a mix of jobs or a recorded load (CSV, SWF)",
    )
    parser.add_argument(
        "--seconds",
        type=_positive,
        help="simulated seconds; by default 600 for a mix, the whole of a recorded load",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=7,
        help="the jobs of a mix are drawn from it: the same seed makes the same jobs",
    )
    parser.add_argument(
        "--rate",
        type=_positive,
        help="jobs of a mix per simulated second, instead of its own rate",
    )
    parser.add_argument(
        "--policy",
        action="append",
        metavar="NAME|FILE",
        help=(
            f"with --load or --rest: a preset ({', '.join(PRESETS)}) or a policy file; "
            "give it several times to compare"
        ),
    )
    parser.add_argument(
        "--rest",
        type=_sessions,
        metavar="N",
        help=(
            "run N sessions in which evicted pods come back and nothing else changes; "
            "exit code 1 if the last one still decided something"
        ),
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
    """The exit code: 0, 1 from `--rest`, or 2 if a file cannot be used."""
    try:
        _refuse_strange_options(options)
        scenarios = _read_scenarios(options.files)
        if _runs_forward(options):
            return _simulate_forward(scenarios, options, out, complaints)
    except ScenarioError as error:
        complaints.write(f"{error}\n")
        return UNUSABLE
    _write_warnings(scenarios, complaints)
    if options.output == "json":
        write_json(out, [_document(scenario, options.sessions) for scenario in scenarios])
    else:
        _print_scenarios(scenarios, options.sessions, out)
    return 0


def _runs_forward(options: Namespace) -> bool:
    return options.load is not None or options.rest is not None


def _refuse_strange_options(options: Namespace) -> None:
    """Options that would be passed over. Raises `ScenarioError`."""
    if options.load is not None and options.rest is not None:
        raise ScenarioError("--load and --rest cannot be used together")
    if options.load is None and options.output == "html":
        raise ScenarioError("--output html goes with --load")
    if options.load is None and (options.seconds or options.rate):
        raise ScenarioError("--seconds and --rate go with --load")
    if not _runs_forward(options) and options.policy:
        raise ScenarioError("--policy goes with --load or --rest")
    if _runs_forward(options) and options.sessions:
        raise ScenarioError("--sessions cannot be used with --load or --rest")


def _read_scenarios(paths: list[str]) -> list[Scenario]:
    scenarios: list[Scenario] = []
    for path in paths:
        scenarios.extend(read_file(path, sys.stdin.read))
    return scenarios


def _write_warnings(scenarios: list[Scenario], complaints: TextIO) -> None:
    for scenario in scenarios:
        for warning in scenario.warnings:
            complaints.write(f"{scenario.name}: warning: {warning}\n")


def _simulate_forward(
    scenarios: list[Scenario],
    options: Namespace,
    out: TextIO,
    complaints: TextIO,
) -> int:
    """One scenario under a load, or each until it rests."""
    _write_warnings(scenarios, complaints)
    if options.rest is not None:
        return simulate_rest(scenarios, options, out, complaints)
    if len(scenarios) != 1:
        raise ScenarioError("--load takes one scenario at a time")
    return simulate_load(scenarios[0], options, out, complaints)


def _print_scenarios(scenarios: list[Scenario], sessions: int | None, out: TextIO) -> None:
    console = console_for(out)
    for scenario in scenarios:
        count = len(scenario.steps) or sessions or 1
        for number, run in enumerate(run_scenario(scenario, sessions or 1), start=1):
            heading = scenario.name
            if count > 1:
                heading = f"{scenario.name} (session {number} of {count})"
            print_run(console, run, heading)


def _document(scenario: Scenario, sessions: int | None) -> dict[str, Any]:
    runs = run_scenario(scenario, sessions or 1)
    documents = []
    for run in runs:
        documents.append(outcome_document(run.name, run.outcome))
    if scenario.steps:
        return {"name": scenario.name, "steps": documents}
    if sessions:
        return {"name": scenario.name, "sessions": documents}
    return documents[0]
