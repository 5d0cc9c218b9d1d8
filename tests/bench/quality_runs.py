"""The runs that the quality of policies is measured by: every policy gets the same jobs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from scheduler.engine.policy import Policy
from scheduler.engine.presets import PRESETS
from scheduler.management.trace_files import read_trace_file
from scheduler.scenarios.clusters import Cluster, cluster_of
from scheduler.scenarios.files import read_file
from scheduler.simulation.loads import LoadJob, drawn_load, recorded_load
from scheduler.simulation.measures import Measures
from scheduler.simulation.runs import run_load, run_to_rest

Figures = dict[str, Any]

SAMPLE: Final = "examples/sample-cluster.yaml"
WEEKS: Final = "philly"
WHOLE: Final = "philly-all"
"""Loads beside the mixes: two weeks of the Philly trace, and the whole of it."""
PHILLY: Final = "examples/philly-cluster.yaml"
PHILLY_JOBS: Final = "examples/philly-2017w41-42.csv.gz"
MIXES: Final = ("steady", "burst", "gpu-contention")
SEEDS: Final = (7, 8, 9)
SECONDS: Final = 1800.0
TWO_WEEKS: Final = 14 * 86_400.0
UNPLANNED: Final = "fumarole without setAside"
POLICIES: Final = ("fumarole", "volcano", "bound", UNPLANNED)
REST_SESSIONS: Final = 11
SAVED_STATES: Final = 10


@dataclass(frozen=True, slots=True)
class Task:
    """One policy under one load: a mix, `WEEKS` or `WHOLE`. `trace` is the file of the whole."""

    load: str
    seed: int
    seconds: float
    policy: str
    trace: str = ""

    @property
    def cluster(self) -> str:
        """Which aims it is judged by."""
        if self.load in (WEEKS, WHOLE):
            return self.load
        return "sample"

    @property
    def jobs(self) -> tuple[str, int, float]:
        """What the jobs follow from: the same for every policy."""
        return self.load, self.seed, self.seconds


@dataclass(frozen=True, slots=True)
class Done:
    task: Task
    figures: Figures
    rests: tuple[int | None, ...]
    """Of states saved on the way: sessions until rest, None if it did not come."""


def policy_named(name: str) -> Policy:
    """A preset, or `fumarole` without places in the future for large gangs."""
    if name != UNPLANNED:
        return PRESETS[name]
    whole = PRESETS["fumarole"]
    allocate = {**whole.configurations["allocate"], "setAside": 0}
    return replace(whole, configurations={**whole.configurations, "allocate": allocate})


def run_task(task: Task) -> Done:
    cluster, jobs = _read_load(task)
    policy = policy_named(task.policy)
    saved = _SavedStates(task.seconds, SAVED_STATES if _is_saved(task) else 0)
    figures = run_load(cluster, policy, jobs, task.seconds, progress=saved.look).document()
    rests = [run_to_rest(state, policy, REST_SESSIONS).after for state in saved.clusters]
    return Done(task, figures, tuple(rests))


def _read_load(task: Task) -> tuple[Cluster, list[LoadJob]]:
    if task.cluster != "sample":
        cluster = read_file(PHILLY, str)[0].cluster
        trace = read_trace_file(task.trace or PHILLY_JOBS)
        return cluster, recorded_load(trace, cluster, seconds=task.seconds)
    cluster = read_file(SAMPLE, str)[0].cluster
    return cluster, drawn_load(task.load, cluster, seconds=task.seconds, seed=task.seed)


def _is_saved(task: Task) -> bool:
    """States of the sample are saved, under the policies that evict."""
    return task.cluster == "sample" and task.policy in ("fumarole", "volcano")


class _SavedStates:
    """The cluster at moments that are spread over the run."""

    def __init__(self, seconds: float, count: int) -> None:
        self.clusters: list[Cluster] = []
        self._moments = [seconds * number / count for number in range(1, count + 1)]

    def look(self, passed: float, measures: Measures) -> None:
        while self._moments and passed >= self._moments[0]:
            del self._moments[0]
            self.clusters.append(cluster_of(measures.world.snapshot))


def tasks(scale: float) -> list[Task]:
    """The longest first. The short form has one seed, a third of the time on the sample cluster,
    and a part of the two weeks: too little to judge a policy by.
    """
    seeds = SEEDS
    seconds = SECONDS
    if scale < 1:
        seeds = SEEDS[:1]
        seconds = SECONDS / 3
    found = [Task(WEEKS, 0, TWO_WEEKS * scale, policy) for policy in POLICIES]
    for mix in MIXES:
        for seed in seeds:
            found.extend(Task(mix, seed, seconds, policy) for policy in POLICIES)
    return found


def whole_trace_tasks(path: str, policies: Iterable[str]) -> list[Task]:
    """As long as jobs come in the file."""
    seconds = max(job.at for job in read_trace_file(path))
    return [Task(WHOLE, 0, seconds, policy, path) for policy in policies]


def run_all(wanted: Sequence[Task], keep: str = "") -> list[Done]:
    """In the order of the tasks. What is done is kept on the way: a whole run takes long."""
    done: dict[Task, Done] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for future in as_completed([pool.submit(run_task, task) for task in wanted]):
            run = future.result()
            done[run.task] = run
            if keep:
                write_runs([done[task] for task in wanted if task in done], keep)
    return [done[task] for task in wanted]


def write_runs(done: Sequence[Done], path: str) -> None:
    Path(path).write_text(json.dumps([asdict(run) for run in done], indent=1), encoding="utf-8")


def read_runs(path: str) -> list[Done]:
    found = []
    for run in json.loads(Path(path).read_text(encoding="utf-8")):
        found.append(Done(Task(**run["task"]), run["figures"], tuple(run["rests"])))
    return found
