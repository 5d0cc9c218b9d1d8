"""`manage.py simulate --load` and `--rest`: a cluster run forward in simulated time, under one policy or several."""

from __future__ import annotations

import gzip
import json
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from scheduler.domain.mixes import MIXES
from scheduler.domain.swf import read_swf
from scheduler.domain.traces import TraceError, TraceJob, read_trace
from scheduler.engine.policy import Policy
from scheduler.engine.presets import PRESETS
from scheduler.scenarios.files import Scenario, ScenarioError
from scheduler.scenarios.policies import PolicyError, read_policy
from scheduler.simulation.loads import LoadJob, drawn_load, recorded_load
from scheduler.simulation.measures import Measures
from scheduler.simulation.page import Result, main_resource, page, table_rows
from scheduler.simulation.runs import run_load, run_to_rest

RESTLESS = 1
DEFAULT_SECONDS = 600.0
WIDTH_OF_A_PIPE = 140


def read_policies(names: list[str], scenario: Scenario) -> dict[str, Policy]:
    """By the name they were asked for; without any, the scenario's own. Raises `ScenarioError`."""
    if not names:
        return {"the file's own policy": scenario.policy}
    return {name: _read_policy(name) for name in dict.fromkeys(names)}


def _read_policy(name: str) -> Policy:
    if name in PRESETS:
        return PRESETS[name]
    if not Path(name).exists():
        raise ScenarioError(
            f"--policy {name}: is neither a preset ({', '.join(PRESETS)}) nor a file that is there"
        )
    try:
        return read_policy(Path(name).read_text(encoding="utf-8")).policy
    except (OSError, UnicodeDecodeError, PolicyError) as error:
        raise ScenarioError(f"--policy {name}: {error}") from None


def read_load(options: Namespace, scenario: Scenario) -> tuple[list[LoadJob], float]:
    """The jobs, and for how many seconds they are watched. Raises `ScenarioError`."""
    if options.load in MIXES:
        seconds = options.seconds or DEFAULT_SECONDS
        return drawn_load(
            options.load, scenario.cluster, seconds=seconds, seed=options.seed, rate=options.rate
        ), seconds
    if not Path(options.load).exists():
        raise ScenarioError(
            f"--load {options.load}: is neither a mix ({', '.join(MIXES)}) nor a file that is there"
        )
    trace = _read_trace(options.load)
    seconds = options.seconds or max(job.at for job in trace)
    return recorded_load(trace, scenario.cluster, seconds=seconds), seconds


def _read_trace(path: str) -> list[TraceJob]:
    reader = read_swf if ".swf" in Path(path).suffixes else read_trace
    open_text: Any = gzip.open if path.endswith(".gz") else open
    try:
        with open_text(path, "rt", encoding="utf-8-sig") as lines:
            return reader(lines, path)
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise ScenarioError(f"--load {path}: cannot be read: {error}") from None
    except TraceError as error:
        raise ScenarioError(str(error)) from None


def simulate_load(scenario: Scenario, options: Namespace, out: TextIO, complaints: TextIO) -> int:
    """Every policy under the same load, side by side."""
    policies = read_policies(options.policy or [], scenario)
    jobs, seconds = read_load(options, scenario)
    results = []
    for name, policy in policies.items():
        with _progress(complaints, name, seconds) as progress:
            measures = run_load(scenario.cluster, policy, jobs, seconds, progress=progress)
        results.append(Result(name, measures.document(), measures.lines))
    _write(scenario, options, seconds, results, out)
    return 0


def _write(
    scenario: Scenario, options: Namespace, seconds: float, results: list[Result], out: TextIO
) -> None:
    about = f"{scenario.name}, load {Path(options.load).name}, {seconds:,.0f} simulated seconds, seed {options.seed}"
    if options.output == "json":
        documents = [
            {"name": scenario.name, "policy": result.policy, "load": result.figures}
            for result in results
        ]
        out.write(
            json.dumps(
                documents if len(documents) > 1 else documents[0], indent=2, ensure_ascii=False
            )
            + "\n"
        )
    elif options.output == "html":
        out.write(page("Policies under one load", about, results))
    else:
        _print_table(about, results, out)


def _print_table(about: str, results: list[Result], out: TextIO) -> None:
    console = Console(file=out, highlight=False, width=None if out.isatty() else WIDTH_OF_A_PIPE)
    table = Table(title=about, title_justify="left")
    table.add_column("")
    for result in results:
        table.add_column(result.policy, justify="right")
    for name, cells in table_rows(results, main_resource(results)):
        table.add_row(name, *cells)
    console.print(table)


@contextmanager
def _progress(
    complaints: TextIO, name: str, seconds: float
) -> Iterator[Callable[[float, Measures], None] | None]:
    """On a terminal a bar tells how far the run is; elsewhere nothing is written."""
    if not complaints.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=complaints), transient=True) as bar:
        task = bar.add_task(name, total=seconds)

        def told(passed: float, measures: Measures) -> None:
            bar.update(
                task,
                completed=passed,
                description=f"{name}: {measures.jobs} jobs, {measures.sessions} sessions",
            )

        yield told


def simulate_rest(scenario: Scenario, options: Namespace, out: TextIO) -> int:
    """Exit code 1 when so many sessions bring no rest under one of the policies."""
    rests = {
        name: run_to_rest(scenario.cluster, policy, options.rest)
        for name, policy in read_policies(options.policy or [], scenario).items()
    }
    if options.output == "json":
        documents = [
            {"name": scenario.name, "policy": name, "rest": rest.document()}
            for name, rest in rests.items()
        ]
        out.write(
            json.dumps(
                documents if len(documents) > 1 else documents[0], indent=2, ensure_ascii=False
            )
            + "\n"
        )
    else:
        for name, rest in rests.items():
            verdict = (
                f"at rest after {rest.after} of {options.rest} sessions"
                if rest.after is not None
                else f"no rest in {options.rest} sessions"
            )
            out.write(
                f"{scenario.name}, {name}: {verdict}; evictions by session: {', '.join(map(str, rest.evictions))}\n"
            )
    return RESTLESS if any(rest.after is None for rest in rests.values()) else 0
