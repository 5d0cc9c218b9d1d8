"""How often gangs start in the range that was foretold, in simulated time.

A cluster runs under a load as in `tests/bench/quality.py`. Now and then every waiting gang gets an
expected start, by the code that a live cluster uses, from what is known at that moment: run times
of jobs that have ended, and errors of forecasts whose gangs have started. At the end each range is
compared with what happened.

`python -m tests.bench.start_times` writes the tables of docs/decisions/0043-start-times.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import numpy as np

from scheduler.domain.gang_sizes import SIZE_WORDS
from scheduler.domain.run_times import RunTime, RunTimes
from scheduler.domain.start_forecasts import (
    COVERAGE,
    Calibration,
    Past,
    Range,
    Waits,
    is_kept,
)
from scheduler.domain.traces import from_the_first
from scheduler.engine.decisions import Outcome
from scheduler.engine.policy import Policy
from scheduler.engine.presets import PRESETS
from scheduler.management.trace_files import read_trace_file
from scheduler.scenarios.clusters import Cluster
from scheduler.scenarios.files import read_file
from scheduler.simulation.forward import Limits
from scheduler.simulation.loads import LoadJob, drawn_load, recorded_load
from scheduler.simulation.runs import PERIOD, LoadRun
from scheduler.simulation.start_times import gang_sizes, look_ahead
from scheduler.simulation.world import Gang

SAMPLE: Final = "examples/sample-cluster.yaml"
PHILLY: Final = "examples/philly-cluster.yaml"
PHILLY_JOBS: Final = "examples/philly-2017w41-42.csv.gz"
DAY: Final = 86_400.0
LIMITS: Final = Limits(seconds=2 * DAY, sessions=1500)
MOST_RUN_TIMES: Final = 20_000


@dataclass(slots=True)
class Forecast:
    """One that is kept. `given` is the range that a reader would have seen."""

    at: float
    gang: Gang | _KeptGang
    queue: str
    size: str
    waits: Waits
    given: Range | None

    def past(self, now: float) -> Past:
        started = self.gang.started_at
        if started is None or started > now:
            so_far = now - self.at
            return Past(self.queue, self.size, self.waits, so_far, is_over=False, made_at=self.at)
        return Past(self.queue, self.size, self.waits, started - self.at, made_at=self.at)

    def held(self, now: float) -> bool | None:
        """None where that is not known."""
        if self.given is None:
            return None
        actual = self.past(now)
        if actual.is_over:
            return self.given.earliest <= actual.actual <= self.given.latest
        if actual.actual > self.given.latest:
            return False
        return None


class ForecastingRun(LoadRun):
    """A run under a load that looks ahead every `every` simulated seconds."""

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        jobs: Sequence[LoadJob],
        seconds: float,
        every: float,
        *,
        declared: bool,
        keep_in: str = "",
    ) -> None:
        super().__init__(cluster, policy, jobs, seconds, PERIOD, None)
        self.every = every
        self.declared = declared
        self.forecasts: list[Forecast] = []
        self.looks = 0
        self.sessions_ahead = 0
        self.unknown: defaultdict[str, int] = defaultdict(int)
        self.processor_seconds = 0.0
        self._ended: list[RunTime] = []
        self._sizes: dict[int, str] = {}
        self._last_kept: dict[int, float] = {}
        self._next_look = self.began
        self._keep_in = keep_in

    def _take_arrivals(self, moment: float) -> None:
        before = set(self.world.gangs)
        super()._take_arrivals(moment)
        if not self.declared:
            new = set(self.world.gangs) - before
            self.world.snapshot.groups.expected_seconds[list(new)] = np.nan

    def _let_happen(self, moment: float) -> None:
        for change in self.world.pass_until(moment):
            self.measures.changed(change)
            if change.what == "ended":
                self._note_end(change.pod, change.seconds)
                self.world.tidy(change.pod)

    def _note_end(self, pod: int, seconds: float) -> None:
        row = int(self.world.snapshot.pods.group[pod])
        gang = self.world.gangs[row]
        if gang.unfinished == 1:
            size = self._size_of(row)
            self._ended.append(RunTime("", gang.job.queue, size, seconds))

    def _size_of(self, row: int) -> str:
        amounts = self.world.snapshot.groups.min_resources[row]
        mark = hash(amounts.tobytes())
        if mark not in self._sizes:
            self._sizes[mark] = gang_sizes(self.world.snapshot)[row]
        return self._sizes[mark]

    def _run_session(self) -> Outcome:
        if self.world.now >= self._next_look:
            self._look()
            self._next_look = self.world.now + self.every
            if self._keep_in:
                write_forecasts(self, self._keep_in)
        return super()._run_session()

    def _look(self) -> None:
        before = time.process_time()
        snapshot = self.world.snapshot.copy()
        snapshot.session += 1
        now = self.world.now
        run_times = RunTimes.learn(self._ended[-MOST_RUN_TIMES:])
        calibration = Calibration(each.past(now) for each in reversed(self.forecasts))
        users = [""] * len(snapshot.groups)
        seen = look_ahead(snapshot, self.policy, users, run_times, LIMITS)
        gangs = {gang.job.key: gang for gang in self.world.gangs.values()}
        for key, waits in seen.waits.items():
            self._keep(gangs[key], waits, calibration)
        for why in seen.unknown.values():
            self.unknown[why] += 1
        self.looks += 1
        self.sessions_ahead += seen.sessions
        self.processor_seconds += time.process_time() - before

    def _keep(self, gang: Gang, waits: Waits, calibration: Calibration) -> None:
        if gang.started_at is not None:
            return  # it was evicted and waits again
        now = self.world.now
        waited = now - gang.job.at
        if not is_kept(waited, self._last_kept.get(id(gang))):
            return
        self._last_kept[id(gang)] = waited
        size = self._size_of(gang.row)
        given = calibration.range_of(gang.job.queue, size, waits)
        self.forecasts.append(Forecast(now, gang, gang.job.queue, size, waits, given))


# What came of it


def write_forecasts(run: ForecastingRun, path: str) -> None:
    """What was foretold, and what came of it so far: a run takes long."""
    rows = []
    for each in run.forecasts:
        rows.append(
            {
                "at": each.at - run.began,
                "queue": each.queue,
                "size": each.size,
                "waits": [each.waits.low, each.waits.median, each.waits.high],
                "given": each.given and [each.given.earliest, each.given.latest],
                "actual": each.past(run.world.now).actual,
                "isOver": each.gang.started_at is not None,
            }
        )
    document = {
        "now": run.world.now - run.began,
        "processorSeconds": time.process_time(),
        "looking": run.processor_seconds,
        "rows": rows,
    }
    with open(path, "w") as file:
        json.dump(document, file)


def table(forecasts: Iterable[Forecast], now: float, by: Callable[[Forecast], str]) -> list[Any]:
    groups: defaultdict[str, list[Forecast]] = defaultdict(list)
    for forecast in forecasts:
        groups["all"].append(forecast)
        groups[by(forecast)].append(forecast)
    return [[name, *figures(rows, now)] for name, rows in sorted(groups.items())]


def figures(rows: Sequence[Forecast], now: float) -> list[float]:
    """Forecasts with a known answer, the part that held, the median error and the median width in
    minutes, and the error as a part of the wait.
    """
    known = [row for row in rows if row.held(now) is not None]
    if not known:
        return [0, 0.0, 0.0, 0.0, 0.0]
    held = sum(1 for row in known if row.held(now))
    errors = [abs(row.past(now).actual - row.waits.median) for row in known]
    parts = [
        error / max(60.0, row.past(now).actual) for error, row in zip(errors, known, strict=True)
    ]
    widths = [row.given.latest - row.given.earliest for row in known if row.given]
    return [
        len(known),
        round(held / len(known), 3),
        round(median(errors) / 60.0, 1),
        round(median(widths) / 60.0, 1),
        round(median(parts), 2),
    ]


def ranges_again(path: str) -> ForecastsAgain:
    """Forecasts that were kept in a file get the ranges that they would get now.

    Each look knows what had happened by then, as in the run itself.
    """
    with open(path) as file:
        document = json.load(file)
    rows = document["rows"]
    found: list[Forecast] = []
    for look in sorted({row["at"] for row in rows}):
        calibration = Calibration(each.past(look) for each in reversed(found))
        for row in (row for row in rows if row["at"] == look):
            waits = Waits(*row["waits"])
            started = row["at"] + row["actual"] if row["isOver"] else None
            gang = _KeptGang(started)
            given = calibration.range_of(row["queue"], row["size"], waits)
            found.append(Forecast(look, gang, row["queue"], row["size"], waits, given))
    return ForecastsAgain(found, document["now"])


@dataclass(frozen=True, slots=True)
class _KeptGang:
    started_at: float | None


@dataclass(frozen=True, slots=True)
class ForecastsAgain:
    forecasts: list[Forecast]
    now: float


BANDS: Final = ((60.0, "1 min"), (600.0, "10 min"), (3600.0, "1 h"), (6 * 3600.0, "6 h"))


def by_wait(forecast: Forecast) -> str:
    for number, (limit, words) in enumerate(BANDS):
        if forecast.waits.median <= limit:
            return f"{number} up to {words}"
    return "9 longer"


def report(run: ForecastingRun) -> dict[str, Any]:
    end = run.world.now
    return {
        "stated": COVERAGE,
        "looks": run.looks,
        "sessionsAhead": run.sessions_ahead,
        "processorSeconds": round(run.processor_seconds, 1),
        "kept": len(run.forecasts),
        "withoutRange": sum(1 for each in run.forecasts if each.given is None),
        "unknown": dict(run.unknown),
        **tables(run.forecasts, end),
    }


def tables(forecasts: Sequence[Forecast], end: float) -> dict[str, Any]:
    return {
        "byQueue": table(forecasts, end, lambda each: each.queue),
        "bySize": table(forecasts, end, lambda each: SIZE_WORDS[each.size]),
        "byWait": table(forecasts, end, by_wait),
        "byEpisode": by_episode(forecasts, end),
    }


def by_episode(forecasts: Sequence[Forecast], end: float) -> list[float]:
    """How many spans of time of a queue had forecasts, and how often they held if each span counts
    as one: a thousand gangs that wait for the same job are right or wrong together.
    """
    held: defaultdict[object, list[bool]] = defaultdict(list)
    for each in forecasts:
        answer = each.held(end)
        if answer is not None:
            held[each.past(end).episode].append(answer)
    if not held:
        return [0, 0.0]
    parts = [sum(answers) / len(answers) for answers in held.values()]
    return [len(parts), round(sum(parts) / len(parts), 3)]


def philly(jobs: str, skipped: float, days: float) -> tuple[Cluster, list[LoadJob], float]:
    """Some days of a recorded load, in the queues and on the machines of the two weeks that are in
    the repository: what was chosen for these is tried on others.
    """
    cluster = read_file(PHILLY, str)[0].cluster
    seconds = days * DAY
    trace = [job for job in read_trace_file(jobs) if job.at >= skipped * DAY]
    return cluster, recorded_load(from_the_first(trace), cluster, seconds=seconds), seconds


def sample(mix: str, seconds: float, seed: int) -> tuple[Cluster, list[LoadJob], float]:
    cluster = read_file(SAMPLE, str)[0].cluster
    return cluster, drawn_load(mix, cluster, seconds=seconds, seed=seed), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("load", help="philly, or a mix such as steady")
    parser.add_argument("--jobs", default=PHILLY_JOBS, help="another file of recorded jobs")
    parser.add_argument("--skip", type=float, default=0.0, help="days at the beginning of the file")
    parser.add_argument("--days", type=float, default=14.0, help="of philly")
    parser.add_argument("--seconds", type=float, default=7200.0, help="of a mix")
    parser.add_argument("--every", type=float, default=3 * 3600.0, help="seconds between two looks")
    parser.add_argument("--policy", default="fumarole", choices=sorted(PRESETS))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--declared", action="store_true", help="jobs say how long they run")
    parser.add_argument(
        "--keep", default="", help="a file for every forecast, with what came of it"
    )
    parser.add_argument("--again", default="", help="only new ranges for the forecasts of a file")
    given = parser.parse_args()
    if given.again:
        again = ranges_again(given.again)
        print(json.dumps(tables(again.forecasts, again.now), indent=1))
        return
    if given.load == "philly":
        cluster, jobs, seconds = philly(given.jobs, given.skip, given.days)
    else:
        cluster, jobs, seconds = sample(given.load, given.seconds, given.seed)
    policy = PRESETS[given.policy]
    run = ForecastingRun(
        cluster, policy, jobs, seconds, given.every, declared=given.declared, keep_in=given.keep
    )
    run.run()
    print(json.dumps(report(run), indent=1))


if __name__ == "__main__":
    main()
