"""A line of a table in docs/performance.md: which figure of a run it shows, and its aim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Run = Mapping[str, Any]


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
CPU_SECONDS = Kind(CPU.keys, "s", 1000)
WALL = Kind(("medianMs", "minMs", "maxMs"), "ms")
WALL_SECONDS = Kind(WALL.keys, "s", 1000)
SLOWEST = Kind(("maxMs",), "ms")
SERVER = Kind(("serverCpuMs",), "ms")
OF_EMPTY = Kind(("ofEmpty", "ofEmptyMin", "ofEmptyMax"), "x")
P99_OF_EMPTY = Kind(("p99OfEmpty", "p99OfEmptyMin", "p99OfEmptyMax"), "x")
P99_OF_IDLE = Kind(("p99OfIdle", "p99OfIdleMin", "p99OfIdleMax"), "x")
P99 = Kind(("p99Ms", "p99MinMs", "p99MaxMs"), "ms")
TIMES = Kind(("ratio", "ratioMin", "ratioMax"), "x")
TIMES_THE_FLOOR = Kind(("timesTheFloorInCpu",), "x")
EXPONENT = Kind(("exponent",), "")
MEMORY = Kind(("peakMB",), "MB")
FOR_A_GANG = Kind(("microsecondsPerGang",), "µs")
SORTING = Kind(("sortCpuMs",), "ms")
FOR_AN_EVENT = Kind(("cpuMsAnEvent",), "ms")
SHARE = Kind(("percent",), "%")
LOST = Kind(("lost",), "")
PER_SECOND = Kind(("perSecond",), "a second")
WAITED_P99 = Kind(("waitedMsP99",), "ms")
ANSWERED_P99 = Kind(("answeredMsP99",), "ms")


@dataclass(frozen=True, slots=True)
class Line:
    """Which row of which part, which of its figures, and the aim if there is one.

    Figures are at most the aim, or at least where `at_least` says so.
    """

    label: str
    part: str
    what: str
    kind: Kind
    aim: float | None = None
    at_least: bool = False

    def cells(self, run: Run) -> tuple[str, str, str, str]:
        found = self._found(run)
        if not found:
            return self.label, self._aim(), "not measured in this run", ""
        words = _words(found, self.kind.unit)
        if self.is_of_another_run(run):
            words += ", another run"
        return self.label, self._aim(), words, self._verdict(found[0])

    def is_of_another_run(self, run: Run) -> bool:
        """Whether this run did not measure its part, and another did."""
        return self.part not in run["parts"] and self.part in run.get("otherRuns", {})

    def _found(self, run: Run) -> tuple[float, ...]:
        for row in self._rows(run):
            if row["what"] == self.what:
                return self.kind.of(row)
        return ()

    def _rows(self, run: Run) -> list[Row]:
        if self.is_of_another_run(run):
            others: list[Row] = run["otherRuns"][self.part]["rows"]
            return others
        rows: list[Row] = run["parts"].get(self.part, [])
        return rows

    def _aim(self) -> str:
        if self.aim is None:
            return ""
        word = "at least" if self.at_least else "at most"
        return f"{word} {self.aim:,g} {self.kind.unit}".rstrip()

    def _verdict(self, median: float) -> str:
        if self.aim is None:
            return ""
        is_met = median >= self.aim if self.at_least else median <= self.aim
        return "met" if is_met else "missed"


def _words(found: tuple[float, ...], unit: str) -> str:
    median, *spread = (f"{figure:.3g}" if figure < 1000 else f"{figure:,.0f}" for figure in found)
    words = f"{median} {unit}".rstrip()
    if len(spread) == 2 and spread[0] != spread[1]:
        return f"{words} ({spread[0]} to {spread[1]})"
    return words
