"""`manage.py simulate --load` and `--rest`: a cluster in simulated time, under some policies."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from scheduler.domain.mixes import MIXES
from scheduler.domain.traces import TraceError
from scheduler.engine.policy import Policy
from scheduler.engine.presets import PRESETS
from scheduler.management.console import console_for, write_json
from scheduler.management.trace_files import read_trace_file
from scheduler.scenarios.files import Scenario, ScenarioError
from scheduler.scenarios.policies import PolicyError, read_policy
from scheduler.simulation.loads import LoadJob, drawn_load, leaf_queues, recorded_load
from scheduler.simulation.measures import Measures
from scheduler.simulation.page import Result, main_resource, page, part_rows, table_rows
from scheduler.simulation.runs import Rest, run_load, run_to_rest

RESTLESS = 1
DEFAULT_SECONDS = 600.0
MOST_JOBS = 1_000_000


def read_policies(names: list[str], scenario: Scenario, complaints: TextIO) -> dict[str, Policy]:
    """Policies by name. Without names, the scenario's own. Raises `ScenarioError`."""
    if not names:
        return {"the file's own policy": scenario.policy}
    policies: dict[str, Policy] = {}
    for name in dict.fromkeys(names):
        policies[name] = _read_policy(name, complaints)
    return policies


def _read_policy(name: str, complaints: TextIO) -> Policy:
    """A preset or a file. What has no effect in a file is told among the complaints."""
    if name in PRESETS:
        return PRESETS[name]
    if not Path(name).exists():
        raise ScenarioError(
            f"--policy {name}: is neither a preset ({', '.join(PRESETS)}) nor an existing file"
        )
    try:
        reading = read_policy(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(f"--policy {name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"--policy {name} cannot be read: it is not a text in UTF-8") from None
    except PolicyError as error:
        raise ScenarioError(f"--policy {name}: {error}") from None
    for warning in reading.warnings:
        complaints.write(f"--policy {name}: warning: {warning}\n")
    return reading.policy


def read_load(options: Namespace, scenario: Scenario) -> tuple[list[LoadJob], float]:
    """The jobs, and how many seconds to simulate. Raises `ScenarioError`."""
    _refuse_useless_cluster(scenario)
    if options.load in MIXES:
        return _drawn_load(options, scenario)
    if not options.load or not Path(options.load).exists():
        raise ScenarioError(
            f"--load {options.load}: is neither a mix ({', '.join(MIXES)}) nor an existing file"
        )
    if options.rate:
        raise ScenarioError("--rate goes with a mix: a recorded load has its own times")
    try:
        trace = read_trace_file(options.load)
    except TraceError as error:
        raise ScenarioError(f"--load {error}") from None
    seconds = options.seconds or max(job.at for job in trace) or 1.0
    return recorded_load(trace, scenario.cluster, seconds=seconds), seconds


def _refuse_useless_cluster(scenario: Scenario) -> None:
    """A load needs queues to come to, and nodes to run on."""
    if not leaf_queues(scenario.cluster):
        raise ScenarioError(f"{scenario.name}: has no queue that a load could come to")
    if not scenario.cluster.nodes:
        raise ScenarioError(f"{scenario.name}: has no node that a load could run on")


def _drawn_load(options: Namespace, scenario: Scenario) -> tuple[list[LoadJob], float]:
    seconds = options.seconds or DEFAULT_SECONDS
    rate = options.rate or MIXES[options.load].rate
    if seconds * rate > MOST_JOBS:
        raise ScenarioError(
            f"--seconds {seconds:g}: at {rate:g} jobs a second these are more than "
            f"{MOST_JOBS:,} jobs"
        )
    jobs = drawn_load(options.load, scenario.cluster, seconds=seconds, seed=options.seed, rate=rate)
    return jobs, seconds


def simulate_load(scenario: Scenario, options: Namespace, out: TextIO, complaints: TextIO) -> int:
    """Every policy under the same load, side by side."""
    policies = read_policies(options.policy or [], scenario, complaints)
    jobs, seconds = read_load(options, scenario)
    results = []
    for name, policy in policies.items():
        with _progress(complaints, name, seconds) as progress:
            measures = run_load(scenario.cluster, policy, jobs, seconds, progress=progress)
        results.append(Result(name, measures.document(), measures.lines))
    _write(scenario, options, seconds, results, out)
    return 0


def _write(
    scenario: Scenario,
    options: Namespace,
    seconds: float,
    results: list[Result],
    out: TextIO,
) -> None:
    load = Path(options.load).name
    duration = f"{seconds:,.0f} simulated seconds"
    about = f"{scenario.name}, load {load}, {duration}, seed {options.seed}"
    if options.output == "json":
        documents = []
        for result in results:
            documents.append(
                {"name": scenario.name, "policy": result.policy, "load": result.figures}
            )
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
    for part, cells in part_rows(results):
        table.add_row(f"  {part}", *cells)
    console_for(out).print(table)


@contextmanager
def _progress(
    complaints: TextIO,
    name: str,
    seconds: float,
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


def simulate_rest(
    scenarios: Sequence[Scenario],
    options: Namespace,
    out: TextIO,
    complaints: TextIO,
) -> int:
    """Exit code 1 if one of the clusters does not come to rest under one of the policies."""
    found: list[tuple[str, str, Rest]] = []
    for scenario in scenarios:
        policies = read_policies(options.policy or [], scenario, complaints)
        for policy_name, policy in policies.items():
            rest = run_to_rest(scenario.cluster, policy, options.rest)
            found.append((scenario.name, policy_name, rest))
    if options.output == "json":
        documents = []
        for name, title, rest in found:
            documents.append({"name": name, "policy": title, "rest": rest.document()})
        write_json(out, documents)
    else:
        for name, policy_name, rest in found:
            out.write(f"{name}, {policy_name}: {_in_words(rest, options.rest)}\n")
    if any(rest.after is None for _, _, rest in found):
        return RESTLESS
    return 0


def _in_words(rest: Rest, sessions: int) -> str:
    evictions = ", ".join(map(str, rest.evictions))
    if rest.after is None:
        verdict = f"no rest in {sessions} sessions"
    else:
        verdict = f"at rest after {rest.after} of {sessions} sessions"
    return f"{verdict}; evictions by session: {evictions}"
