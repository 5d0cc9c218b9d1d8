"""How well policies schedule: the table of aims, filled in one run.

Every policy gets the same jobs: the sample cluster under three mixes, and two weeks of the Philly
trace. `python -m tests.bench.quality` writes the tables of docs/quality.md. `--trace FILE` runs the
whole of the trace, which does not come with the project.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, Final

from scheduler.domain.mixes import GPU
from scheduler.simulation.runs import BETWEEN_SESSIONS, CARRYING_OUT, PERIOD
from scheduler.simulation.world import GRACE
from tests.bench.quality_runs import (
    MIXES,
    POLICIES,
    REST_SESSIONS,
    SEEDS,
    UNPLANNED,
    WEEKS,
    WHOLE,
    Done,
    Figures,
    Task,
    read_runs,
    run_all,
    tasks,
    whole_trace_tasks,
)

Row = dict[str, object]
Values = dict[str, Any]
"""A figure by policy."""

GUARANTEE_SECONDS: Final = GRACE + 3 * PERIOD


@dataclass(frozen=True, slots=True)
class Aim:
    """`measured` takes all runs of one policy on one cluster; `is_met` takes the values of all
    policies.
    """

    figure: str
    aim: str
    measured: Callable[[Runs], float | None]
    is_met: Callable[[Values], bool]
    on: str = "both"
    against: tuple[str, ...] = ()
    """Policies that must have run too."""


class Runs:
    """All runs of one policy on one cluster, beside those of the others."""

    def __init__(self, done: Iterable[Done], policy: str) -> None:
        self.all = list(done)
        self.policy = policy
        self.own = self._of(policy)

    def _of(self, policy: str) -> list[Done]:
        return [run for run in self.all if run.task.policy == policy]

    def beside(self, policy: str) -> list[tuple[Figures, Figures]]:
        """Figures of each run, with those of another policy under the same jobs, where it ran."""
        others = {run.task.jobs: run.figures for run in self._of(policy)}
        pairs = []
        for run in self.own:
            if run.task.jobs in others:
                pairs.append((run.figures, others[run.task.jobs]))
        return pairs


def evictions_per_placement(runs: Runs) -> float:
    """Of the worst run."""
    return max(run.figures["evictionsPerBind"] for run in runs.own)


def gpu_time_lost(runs: Runs) -> float:
    return max(run.figures["lost"][GPU] for run in runs.own)


def useful_over_bound(runs: Runs) -> float | None:
    ratios = [own["useful"][GPU] / bound["useful"][GPU] for own, bound in runs.beside("bound")]
    if not ratios:
        return None
    return round(min(ratios), 3)


def most_evictions(runs: Runs) -> float:
    return max(run.figures["mostEvicted"] for run in runs.own)


def mean_shortfall(runs: Runs) -> float:
    """Of all queues that asked, over all runs."""
    found = [share for run in runs.own for share in run.figures["shortfall"].values()]
    return round(mean(found or [0.0]), 4)


def excess_shortfall(runs: Runs) -> float | None:
    return _excess_over_volcano(runs, "shortfall")


def excess_unmet_due(runs: Runs) -> float | None:
    """Only where a gang waits that would be within its queue's due."""
    return _excess_over_volcano(runs, "dueUnmet")


def _excess_over_volcano(runs: Runs, figure: str) -> float | None:
    """How much more a queue was short than under Volcano's rules, mean over the runs, of the queue
    that is worst off.
    """
    pairs = runs.beside("volcano")
    if not pairs:
        return None
    by_queue: dict[str, list[float]] = {}
    for own, volcano in pairs:
        for queue, share in own[figure].items():
            by_queue.setdefault(queue, []).append(share - volcano[figure].get(queue, 0.0))
    worst = max((mean(differences) for differences in by_queue.values()), default=0.0)
    return round(worst, 4)


def guarantee_unmet(runs: Runs) -> float:
    longest = [max(run.figures["guaranteeUnmetSeconds"].values(), default=0.0) for run in runs.own]
    return round(max(longest), 1)


def wait_of_the_largest(runs: Runs) -> float:
    """Mean over the runs of the 95th percentile."""
    return round(mean(run.figures["waits"]["largestTenth"]["p95"] for run in runs.own), 1)


def sessions_until_rest(runs: Runs) -> float | None:
    """Of the saved state that took longest; None if no states were saved."""
    rests = [after for run in runs.own for after in run.rests]
    if not rests:
        return None
    return max(REST_SESSIONS if after is None else after for after in rests)


def session_time_over_volcano(runs: Runs) -> float | None:
    """CPU time of a session, against Volcano's rules under the same jobs."""
    pairs = runs.beside("volcano")
    if not pairs:
        return None
    own = [session_milliseconds(figures) for figures, _ in pairs]
    volcano = [session_milliseconds(figures) for _, figures in pairs]
    return round(sum(own) / sum(volcano), 2)


def cpu_seconds(runs: Runs) -> float:
    """Of the longest run."""
    return round(max(run.figures["cpuSeconds"] for run in runs.own), 1)


def session_milliseconds(figures: Figures) -> float:
    outside = (BETWEEN_SESSIONS, CARRYING_OUT)
    parts = figures["cpuSecondsByPart"]
    seconds = sum(spent for part, spent in parts.items() if part not in outside)
    return 1000 * seconds / max(1, figures["sessions"])


def _at_most(limit: float) -> Callable[[Values], bool]:
    return lambda values: values["fumarole"] <= limit


def _at_least(limit: float) -> Callable[[Values], bool]:
    return lambda values: values["fumarole"] >= limit


def _below(policy: str) -> Callable[[Values], bool]:
    return lambda values: values["fumarole"] < values[policy]


def _not_above(policy: str) -> Callable[[Values], bool]:
    return lambda values: values["fumarole"] <= values[policy]


AIMS: Final = (
    Aim("evictions per placement", "<= 0.02", evictions_per_placement, _at_most(0.02), "sample"),
    Aim("evictions per placement", "<= 0.005", evictions_per_placement, _at_most(0.005), WEEKS),
    Aim("GPU time lost to evictions", "<= 0.01", gpu_time_lost, _at_most(0.01)),
    Aim("useful over the bound's", ">= 0.97", useful_over_bound, _at_least(0.97), "sample"),
    Aim("useful over the bound's", ">= 0.99", useful_over_bound, _at_least(0.99), WEEKS),
    Aim("most evictions of one gang", "<= 3", most_evictions, _at_most(3)),
    Aim(
        "mean shortfall of queues",
        "<= volcano's",
        mean_shortfall,
        _not_above("volcano"),
        against=("volcano",),
    ),
    Aim("worst queue: shortfall above volcano's", "<= 0", excess_shortfall, _at_most(0)),
    Aim("worst queue: unmet due above volcano's", "<= 0", excess_unmet_due, _at_most(0)),
    Aim(
        "longest time a guarantee was unmet (s)",
        f"<= {GUARANTEE_SECONDS:g}",
        guarantee_unmet,
        _at_most(GUARANTEE_SECONDS),
        "sample",
    ),
    Aim(
        "95th percentile wait, largest tenth (s)",
        "< without setAside",
        wait_of_the_largest,
        _below(UNPLANNED),
        against=(UNPLANNED,),
    ),
    Aim("sessions until rest, saved states", "<= 10", sessions_until_rest, _at_most(10), "sample"),
    Aim("session time over volcano's", "<= 1.2", session_time_over_volcano, _at_most(1.2)),
    Aim("CPU time of the run (s)", "<= 300", cpu_seconds, _at_most(300), WEEKS),
    Aim("CPU time of the run (s)", "<= 1200", cpu_seconds, _at_most(1200), WHOLE),
)


def aim_rows(done: Sequence[Done]) -> list[Row]:
    """Fumarole's value is held against the aim; the others stand beside it."""
    rows: list[Row] = []
    for cluster in ("sample", WEEKS, WHOLE):
        runs_here = [run for run in done if run.task.cluster == cluster]
        for aim in AIMS:
            if runs_here and aim.on in ("both", cluster):
                rows.append(_aim_row(aim, cluster, runs_here))
    return rows


def _aim_row(aim: Aim, cluster: str, done: Sequence[Done]) -> Row:
    here = {run.task.policy for run in done}
    values: Values = dict.fromkeys(POLICIES)
    for policy in POLICIES:
        if policy in here:
            values[policy] = aim.measured(Runs(done, policy))
    is_met = None
    if all(values[policy] is not None for policy in ("fumarole", *aim.against)):
        is_met = aim.is_met(values)
    return {"what": f"{cluster}: {aim.figure}", "aim": aim.aim, **values, "met": is_met}


def mix_rows(done: Sequence[Done]) -> list[Row]:
    """The same mix by mix: fumarole's value, with those of the other policies in brackets."""
    rows: list[Row] = []
    for aim in AIMS:
        if aim.on not in ("both", "sample"):
            continue
        row: Row = {"figure": aim.figure, "aim": aim.aim}
        for mix in MIXES:
            runs_here = [run for run in done if run.task.load == mix]
            if runs_here:
                row[mix] = _beside_others(_aim_row(aim, mix, runs_here))
        rows.append(row)
    return rows


def _beside_others(row: Row) -> str:
    own, *others = [_cell(row[policy]) for policy in POLICIES]
    words = f"{own} ({', '.join(others)})"
    if row["met"] is False:
        return f"**{words}**"
    return words


def run_rows(done: Sequence[Done]) -> list[Row]:
    """Each run by itself."""
    return [_run_row(run) for run in done]


def part_rows(done: Sequence[Done]) -> list[Row]:
    """CPU seconds by part of the run."""
    parts = dict.fromkeys(part for run in done for part in run.figures["cpuSecondsByPart"])
    rows: list[Row] = []
    for part in parts:
        row: Row = {"CPU seconds": part}
        for run in done:
            row[_name_of(run.task)] = run.figures["cpuSecondsByPart"].get(part)
        rows.append(row)
    return rows


def _name_of(task: Task) -> str:
    if task.seed:
        return f"{task.load}, seed {task.seed}, {task.policy}"
    return f"{task.load}, {task.policy}"


def _run_row(run: Done) -> Row:
    figures = run.figures
    return {
        "what": _name_of(run.task),
        "evictionsPerBind": figures["evictionsPerBind"],
        "mostEvicted": figures["mostEvicted"],
        "held": figures["held"][GPU],
        "useful": figures["useful"][GPU],
        "lost": figures["lost"][GPU],
        "wait": figures["waits"]["all"]["p95"],
        "waitOfLargest": figures["waits"]["largestTenth"]["p95"],
        "finished": figures["finished"],
        "sessions": figures["sessions"],
        "cpuSeconds": figures["cpuSeconds"],
    }


def quality(scale: float, _: int) -> list[Row]:
    """The part of the benchmark."""
    done = run_all(tasks(scale))
    return [*aim_rows(done), *run_rows(done)]


# The tables of docs/quality.md


def markdown(done: Sequence[Done]) -> str:
    tables = [aim_rows(done), run_rows(done)]
    if any(run.task.cluster == "sample" for run in done):
        tables.insert(1, mix_rows(done))
    recorded = [run for run in done if run.task.cluster != "sample"]
    if recorded:
        tables.append(part_rows(recorded))
    return "\n\n".join(_table(rows) for rows in tables) + "\n"


def _table(rows: Sequence[Row]) -> str:
    columns = list(rows[0])
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    for row in rows:
        lines.append(f"| {' | '.join(_cell(row[column]) for column in columns)} |")
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.quality", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="1 is the whole, less a part")
    parser.add_argument("--load", action="append", help="only this mix, or philly")
    parser.add_argument("--seed", action="append", type=int, help="only this seed of a mix")
    parser.add_argument("--policy", action="append", choices=POLICIES, help="only this policy")
    parser.add_argument("--trace", metavar="FILE", help="only the whole Philly trace, in this file")
    parser.add_argument("--keep", metavar="FILE", help="keep all figures in this file")
    parser.add_argument(
        "--kept", metavar="FILE", action="append", help="tables from kept figures; runs nothing"
    )
    options = parser.parse_args()
    if options.kept:
        done = [run for path in options.kept for run in read_runs(path)]
    else:
        done = run_all(_wanted_tasks(options), options.keep or "")
    print(markdown(done))


def _wanted_tasks(options: argparse.Namespace) -> list[Task]:
    if options.trace:
        return whole_trace_tasks(options.trace, options.policy or ("fumarole",))
    loads = options.load or (WEEKS, *MIXES)
    policies = options.policy or POLICIES
    seeds = (0, *(options.seed or SEEDS))
    found = []
    for task in tasks(options.scale):
        if task.load in loads and task.policy in policies and task.seed in seeds:
            found.append(task)
    return found


if __name__ == "__main__":
    main()
