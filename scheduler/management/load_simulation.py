"""`manage.py simulate --load` and `--rest`: a cluster in simulated time, under some policies."""

from __future__ import annotations

import gzip
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from scheduler.domain.mixes import MIXES
from scheduler.domain.swf import read_swf
from scheduler.domain.traces import TraceError, TraceJob, read_trace
from scheduler.engine.policy import Policy
from scheduler.engine.presets import PRESETS
from scheduler.management.console import console_for, write_json
from scheduler.scenarios.files import Scenario, ScenarioError
from scheduler.scenarios.policies import PolicyError, read_policy
from scheduler.simulation.loads import LoadJob, drawn_load, recorded_load
from scheduler.simulation.measures import Measures
from scheduler.simulation.page import Result, main_resource, page, table_rows
from scheduler.simulation.runs import Rest, run_load, run_to_rest

RESTLESS = 1
DEFAULT_SECONDS = 600.0


def read_policies(names: list[str], scenario: Scenario) -> dict[str, Policy]:
    """Policies by name. Without names, the scenario's own. Raises `ScenarioError`."""
    if not names:
        return {"the file's own policy": scenario.policy}
    return {name: _read_policy(name) for name in dict.fromkeys(names)}


def _read_policy(name: str) -> Policy:
    if name in PRESETS:
        return PRESETS[name]
    if not Path(name).exists():
        raise ScenarioError(
            f"--policy {name}: is neither a preset ({', '.join(PRESETS)}) nor an existing file"
        )
    try:
        return read_policy(Path(name).read_text(encoding="utf-8")).policy
    except (OSError, UnicodeDecodeError, PolicyError) as error:
        raise ScenarioError(f"--policy {name}: {error}") from None


def read_load(options: Namespace, scenario: Scenario) -> tuple[list[LoadJob], float]:
    """The jobs, and how many seconds to simulate. Raises `ScenarioError`."""
    if options.load in MIXES:
        seconds = options.seconds or DEFAULT_SECONDS
        jobs = drawn_load(
            options.load, scenario.cluster, seconds=seconds, seed=options.seed, rate=options.rate
        )
        return jobs, seconds
    if not Path(options.load).exists():
        raise ScenarioError(
            f"--load {options.load}: is neither a mix ({', '.join(MIXES)}) nor an existing file"
        )
    trace = _read_trace(options.load)
    seconds = options.seconds or max(job.at for job in trace)
    return recorded_load(trace, scenario.cluster, seconds=seconds), seconds


def _read_trace(path: str) -> list[TraceJob]:
    try:
        with _open_text(path) as lines:
            if ".swf" in Path(path).suffixes:
                return read_swf(lines, path)
            return read_trace(lines, path)
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise ScenarioError(f"--load {path}: cannot be read: {error}") from None
    except TraceError as error:
        raise ScenarioError(str(error)) from None


def _open_text(path: str) -> TextIO:
    if path.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return Path(path).open(encoding="utf-8-sig")


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
    load = Path(options.load).name
    duration = f"{seconds:,.0f} simulated seconds"
    about = f"{scenario.name}, load {load}, {duration}, seed {options.seed}"
    if options.output == "json":
        documents = [
            {"name": scenario.name, "policy": result.policy, "load": result.figures}
            for result in results
        ]
        write_json(out, documents)
    elif options.output == "html":
        out.write(page("Policies under one load", about, results))
    else:
        _print_table(about, results, out)


def _print_table(about: str, results: list[Result], out: TextIO) -> None:
    table = Table(title=about, title_justify="left")
    table.add_column("")
    for result in results:
        table.add_column(result.policy, justify="right")
    for name, cells in table_rows(results, main_resource(results)):
        table.add_row(name, *cells)
    console_for(out).print(table)


@contextmanager
def _progress(
    complaints: TextIO, name: str, seconds: float
) -> Iterator[Callable[[float, Measures], None] | None]:
    """Shows on a terminal how far the run is. Writes nothing elsewhere."""
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

        def show(passed: float, measures: Measures) -> None:
            bar.update(
                task,
                completed=passed,
                description=f"{name}: {measures.jobs} jobs, {measures.sessions} sessions",
            )

        yield show


def simulate_rest(scenario: Scenario, options: Namespace, out: TextIO) -> int:
    """Exit code 1 if the cluster does not come to rest under one of the policies."""
    rests: dict[str, Rest] = {}
    for name, policy in read_policies(options.policy or [], scenario).items():
        rests[name] = run_to_rest(scenario.cluster, policy, options.rest)
    if options.output == "json":
        documents = [
            {"name": scenario.name, "policy": name, "rest": rest.document()}
            for name, rest in rests.items()
        ]
        write_json(out, documents)
    else:
        for name, rest in rests.items():
            out.write(f"{scenario.name}, {name}: {_in_words(rest, options.rest)}\n")
    if any(rest.after is None for rest in rests.values()):
        return RESTLESS
    return 0


def _in_words(rest: Rest, sessions: int) -> str:
    evictions = ", ".join(map(str, rest.evictions))
    if rest.after is None:
        verdict = f"no rest in {sessions} sessions"
    else:
        verdict = f"at rest after {rest.after} of {sessions} sessions"
    return f"{verdict}; evictions by session: {evictions}"
