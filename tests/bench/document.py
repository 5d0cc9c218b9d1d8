"""python -m tests.bench.document [var/bench/….json]: shows a run in docs/performance.md.

Without a file it takes the newest one. The run is kept beside the page, in
docs/performance.json. The page's tables of aims and figures are made from it, and the history gets
a line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench import history
from tests.bench.runs import FOLDER, read_run

PAGE = Path("docs/performance.md")
SHOWN_RUN = Path("docs/performance.json")
BEGIN = "<!-- figures of a run: made by tests/bench/document.py -->"
END = "<!-- end of the figures -->"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A figure of a row: its keys, of which the first is the median, and its unit."""

    keys: tuple[str, ...]
    unit: str
    per_unit: float = 1  # what is stored, for one of the unit

    def of(self, row: Row) -> tuple[float, ...]:
        """The median, and the least and the most where they are known."""
        return tuple(row[key] / self.per_unit for key in self.keys if key in row)


CPU = Kind(("cpuMs", "cpuMinMs", "cpuMaxMs"), "ms")
SECONDS = Kind(("cpuMs", "cpuMinMs", "cpuMaxMs"), "s", 1000)
WALL = Kind(("medianMs", "minMs", "maxMs"), "ms")
WALL_SECONDS = Kind(("medianMs", "minMs", "maxMs"), "s", 1000)
OF_EMPTY = Kind(("ofEmpty", "ofEmptyMin", "ofEmptyMax"), "x")
P99_OF_EMPTY = Kind(("p99OfEmpty",), "x")
P99_OF_IDLE = Kind(("p99OfIdle",), "x")
TIMES = Kind(("ratio", "ratioMin", "ratioMax"), "x")
TIMES_THE_FLOOR = Kind(("timesTheFloorInCpu",), "x")
STATEMENTS = Kind(("statements",), "statements")
SERVER = Kind(("serverCpuMs",), "ms")
MEMORY = Kind(("peakMB",), "MB")
FOR_A_GANG = Kind(("microsecondsPerGang",), "µs")
SHARE = Kind(("percent",), "%")
WAITED_P99 = Kind(("waitedMsP99",), "ms")
ANSWERED_P99 = Kind(("answeredMsP99",), "ms")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table: which row of which part, which of its figures, and the aim if there is
    one. Figures are at most the aim, or at least where `at_least` says so.
    """

    label: str
    part: str
    what: str
    kind: Kind
    aim: float | None = None
    at_least: bool = False

    def cells(self, run: Mapping[str, Any]) -> tuple[str, str, str, str]:
        found = self._found(run)
        if not found:
            return self.label, self._aim(), "not measured in this run", ""
        return self.label, self._aim(), _words(found, self.kind.unit), self._verdict(found[0])

    def _found(self, run: Mapping[str, Any]) -> tuple[float, ...]:
        for row in run["parts"].get(self.part, []):
            if row["what"] == self.what:
                return self.kind.of(row)
        return ()

    def _aim(self) -> str:
        if self.aim is None:
            return ""
        word = "at least" if self.at_least else "at most"
        return f"{word} {self.aim:,g} {self.kind.unit}"

    def _verdict(self, median: float) -> str:
        if self.aim is None:
            return ""
        is_met = median >= self.aim if self.at_least else median <= self.aim
        return "met" if is_met else "missed"


def _words(found: tuple[float, ...], unit: str) -> str:
    median, *spread = (f"{figure:.3g}" if figure < 1000 else f"{figure:,.0f}" for figure in found)
    if len(spread) == 2 and spread[0] != spread[1]:
        return f"{median} {unit} ({spread[0]} to {spread[1]})"
    return f"{median} {unit}"


# What the tables show

_GANGS = "1,000 nodes, 1,000 pending in gangs, 10,000 running, 100 queues"
_SINGLES = "1,000 nodes, 1,000 pending one by one, 10,000 running, 100 queues"
_WIDE = "10,000 nodes, 500 pending in gangs, 100,000 running, 100 queues"
_RECLAIM = "10,000 full nodes, a gang of 16 reclaims from 100,000 running"
_LISTS = ("queues/, the first 100 of 1,000", "queues/?page_size=1000", "jobs/, a page of 100")
_SUBMIT = "submit a gang of 4"
_HUNDRED = "100 running pods changed"
_PLACED = "every pending pod placed"
_SIZES = {"nodes": 3.0, "running": 1.3, "pending": 14.0, "queues": 1.6}
_WRITES = {"one create": 10, "one patch": 10, "one close": 10}

ENGINE = (
    Line(f"session: {_GANGS}", "sessions", _GANGS, CPU, 40),
    Line(f"session: {_SINGLES}", "sessions", _SINGLES, CPU, 215),
    Line(f"session: {_WIDE}", "sessions", _WIDE, CPU, 130),
    Line(f"session: {_RECLAIM}", "sessions", _RECLAIM, CPU),
    Line("the naive twin, gangs", "twin", "twin, gangs", TIMES, 200, at_least=True),
    Line("the naive twin, one by one", "twin", "twin, one by one", TIMES, 200, at_least=True),
    *(
        Line(f"ten times the {of}", "growth", f"10 x {of}", TIMES, aim)
        for of, aim in _SIZES.items()
    ),
    Line("200 gangs reclaim at once", "crowds", "reclaim, 200 gangs at once", CPU),
    Line("1,000 gangs preempt at once", "crowds", "preempt, 1000 gangs at once", CPU),
    Line(
        "beside 10,000 gangs that can never start, each",
        "crowds",
        "a session beside 10000 gangs that can never start",
        FOR_A_GANG,
    ),
    Line(
        "50 gangs reclaim from 4,000 alike pods",
        "alike",
        "50 gangs of 8 reclaim from 4,000 pods on 500 nodes, volcano",
        CPU,
        19,
    ),
    Line(
        "50 gangs preempt among 4,000 alike pods",
        "alike",
        "50 gangs of 8 preempt among 4,000 pods on 500 nodes, volcano",
        CPU,
        22,
    ),
    Line(
        "10,000 single pods, 5,000 empty nodes",
        "alike",
        "10,000 single pods, 5,000 empty nodes, 1 queue, volcano",
        CPU,
        400,
    ),
    Line("snapshot of 100,500 pods", "memory", "snapshot, 10,000 nodes, 100,500 pods", MEMORY),
    Line("a session on it", "memory", "session, 10,000 nodes, 100,500 pods", MEMORY),
)
DATABASE = (
    Line("nothing changed, our process", "database", "no change (0 pods)", CPU, 2),
    Line("nothing changed, the server", "database", "no change (0 pods)", SERVER),
    Line("100 pods changed, our process", "database", "100 changes (100 pods)", CPU, 10),
    Line("100 pods changed, the server", "database", "100 changes (100 pods)", SERVER),
    Line(
        "10,000 placements, by the clock",
        "database",
        "full change: every pending pod placed",
        WALL,
        400,
    ),
    Line("read everything, by the clock", "database", "read everything (cold start)", WALL, 2000),
    Line(
        "write-back, of a bare update",
        "database",
        "write-back of pods, podgroups and decisions",
        TIMES_THE_FLOOR,
        3,
    ),
    *(
        Line(
            f"all placed, ten times the {of}",
            "database-growth",
            f"{_PLACED}, 10 x {of}",
            TIMES,
            aim,
        )
        for of, aim in _SIZES.items()
    ),
    *(
        Line(
            f"100 changed, ten times the {of}",
            "database-growth",
            f"{_HUNDRED}, 10 x {of}",
            TIMES,
            aim,
        )
        for of, aim in {**_SIZES, "running": 1.15}.items()
    ),
    Line(
        "100 submits a second: p99 from submit to place",
        "submits",
        "100 submits a second for 60 s, by HTTP",
        WAITED_P99,
        2100,
    ),
    Line(
        "the same: p99 of the answer",
        "submits",
        "100 submits a second for 60 s, by HTTP",
        ANSWERED_P99,
    ),
)
API = (
    *(
        Line(f"{what}: idle p99", "api", f"idle: {what}", P99_OF_EMPTY, 2)
        for what in (*_LISTS, _SUBMIT, "explain")
    ),
    *(
        Line(
            f"{what}: p99 during sessions, of its idle one",
            "api",
            f"during sessions: {what}",
            P99_OF_IDLE,
            2,
        )
        for what in (*_LISTS, _SUBMIT, "explain")
    ),
    *(
        Line(f"{what}: processor, nothing written since", "requests", what, OF_EMPTY, 2)
        for what in _LISTS
    ),
    *(
        Line(
            f"{what}: processor, right after a submit",
            "requests",
            f"{what}, after a submit",
            OF_EMPTY,
            2,
        )
        for what in _LISTS
    ),
    Line(f"{_SUBMIT}: processor", "requests", _SUBMIT, OF_EMPTY),
    Line("one queue: processor", "requests", "one queue", OF_EMPTY),
)
WRITES = (
    *(
        Line(
            f"{what} beside 1,000 queues, PostgreSQL",
            "queue-writes",
            f"PostgreSQL: {what}, 1000 queues there",
            CPU,
            aim,
        )
        for what, aim in _WRITES.items()
    ),
    Line(
        "1,000 queues created by one POST, PostgreSQL",
        "queue-writes",
        "PostgreSQL: 1000 queues created by one POST",
        CPU,
    ),
    Line(
        "1,000 queues applied from one file, PostgreSQL",
        "queue-writes",
        "PostgreSQL: 1000 queues applied from one file",
        CPU,
    ),
)
PAGES = (
    Line(
        "tree of 1,048 queues, of json.dumps", "console", "the whole page of 1,048 queues", TIMES, 5
    ),
    Line("tree of 1,048 queues, server", "console", "the whole page of 1,048 queues", WALL),
    Line("its first paint", "console", "first paint of 1,048 queues", WALL, 300),
    Line("100 changed rows applied in the page", "console", "100 changed rows applied", WALL, 50),
    Line(
        "bytes of one changed queue, of the page", "console", "bytes of one changed queue", SHARE, 1
    ),
    Line(
        "1,000 sockets, commit to last, of bare ones",
        "console",
        "1,000 sockets, commit to last delivery",
        TIMES,
        2,
    ),
)
START = (
    Line("`make run` to the first page, by the clock", "start", "first page", WALL_SECONDS, 10),
    Line("the same, processor time of what lives then", "start", "first page", SECONDS),
    Line("memory of all processes (PSS)", "start", "memory, in sum", MEMORY, 400),
    *(
        Line(f"memory of {name}", "start", f"memory, {name}", MEMORY)
        for name in ("web", "scheduler", "worker", "beat", "supervisor", "Redis")
    ),
)

TABLES = {
    "The engine, processor time": ENGINE,
    "Sessions on PostgreSQL, 100,000 running pods": DATABASE,
    "The API on PostgreSQL, as times of an empty view with one `SELECT 1`": API,
    "Writing queues": WRITES,
    "The console": PAGES,
    "The start of the sample": START,
}


# The page


def figures(run: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the block."""
    yield _about(run)
    for title, lines in TABLES.items():
        yield f"\n### {title}\n"
        yield "| what | aim | measured | |"
        yield "|---|---|---|---|"
        for line in lines:
            yield f"| {' | '.join(line.cells(run))} |"


def _about(run: Mapping[str, Any]) -> str:
    machine = run["machine"]
    load = (
        f"{run.get('loadAtTheStart', 'unknown')} at the start, {machine['loadAtTheEnd']} at the end"
    )
    sentences = [
        f"The run of {run['date'][:16].replace('T', ' ')}, commit {run['commit']}.",
        f"{machine['cores']} cores ({machine['processor']}), Python {machine['python']}.",
        f"Load {load}; {run['seconds']} s in all, {run['repetitions']} repetitions.",
    ]
    if failed := run.get("failed"):
        sentences.append(f"Parts that did not finish: {', '.join(failed)}.")
    if run["quick"]:
        sentences.append("**A quick run, with a tenth of the sizes.**")
    return " ".join(sentences)


def with_figures(page: str, run: Mapping[str, Any]) -> str:
    head, mark, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (mark and end):
        raise ValueError(f"the page has no place for the figures: {BEGIN} … {END}")
    return f"{head}{BEGIN}\n\n" + "\n".join(figures(run)) + f"\n\n{END}{tail}"


def newest_run(folder: Path = FOLDER) -> Path | None:
    """Their names begin with the date."""
    return max(folder.glob("*.json"), default=None)


def main(arguments: list[str], page: Path = PAGE, shown: Path = SHOWN_RUN) -> int:
    path = Path(arguments[0]) if arguments else newest_run()
    if path is None:
        print(f"There is no run under {FOLDER}. Make one with: make bench")
        return 2
    try:
        run = read_run(path)
    except (OSError, ValueError) as error:
        print(f"The run cannot be read: {error}")
        return 2
    page.write_text(history.with_runs(with_figures(page.read_text(), run), [run]))
    shown.write_text(path.read_text())
    print(f"{page} shows {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
