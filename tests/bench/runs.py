"""Runs of the benchmark as files, one for each run, and what moved between two of them.

    make bench-compare A=var/bench/….json B=var/bench/….json

Every row has one figure that is compared: its processor time if it has one, else its time by the
clock, else its memory. A row has moved if the medians differ by a twentieth and the spreads of both
runs do not touch. Without a spread it takes a tenth.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path("var/bench")
_WITH_SPREAD = 0.05
_WITHOUT_SPREAD = 0.10

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Figure:
    """What is compared of a row: the median, and the least and most where they are known."""

    unit: str
    median: float
    least: float | None = None
    most: float | None = None

    def __str__(self) -> str:
        if self.least is None or self.most is None:
            return f"{self.median:g} {self.unit}"
        return f"{self.median:g} {self.unit} ({self.least:g} to {self.most:g})"


_KINDS = (
    ("ms of CPU", "cpuMs", "cpuMinMs", "cpuMaxMs"),
    ("ms of CPU", "withServerCpuMs", "withServerCpuMinMs", "withServerCpuMaxMs"),
    ("ms of CPU", "cpuMsAnEvent", "", ""),
    ("ms", "medianMs", "minMs", "maxMs"),
    ("ms", "p50Ms", "p50MinMs", "p50MaxMs"),
    ("ms", "waitedMsMedian", "", ""),
    ("MB", "peakMB", "", ""),
)


def figure_of(row: Mapping[str, Any]) -> Figure | None:
    for unit, median, least, most in _KINDS:
        if median in row:
            return Figure(unit, row[median], row.get(least), row.get(most))
    return None


# A run


def run_of(parts: Mapping[str, Rows], began: datetime, **more: Any) -> dict[str, Any]:
    """The run as it is written down."""
    return {
        "date": began.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(UTC) - began).total_seconds()),
        "commit": commit_here(),  # unless what began it says which it was then
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "loadAtTheEnd": round(os.getloadavg()[0], 1),
        },
        **more,
        "parts": dict(parts),
    }


def save_run(run: Mapping[str, Any], folder: Path = FOLDER) -> Path:
    """Named by when it began and what it measured."""
    folder.mkdir(parents=True, exist_ok=True)
    began = run["date"][:19].replace(":", "")
    path = folder / f"{began}-{run['commit']}.json"
    path.write_text(json.dumps(run, indent=2) + "\n")
    return path


def read_run(path: Path) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(path.read_text())
    return run


def processor_seconds_of_children() -> float:
    """Of those that have ended, with theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def commit_here() -> str:
    """With + where files differ from it."""
    commit = _git("rev-parse", "--short=8", "HEAD")
    if not commit:
        return "unknown"
    if _git("status", "--porcelain", "--untracked-files=no"):
        return f"{commit}+"
    return commit


def _git(*arguments: str) -> str:
    try:
        ran = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return ran.stdout.strip()


def _processor() -> str:
    """As Linux names it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor()


# Two runs


@dataclass(frozen=True, slots=True)
class Move:
    """A row of both runs. `ratio` is the second by the first."""

    part: str
    what: str
    before: Figure
    after: Figure

    @property
    def ratio(self) -> float:
        if not self.before.median:
            return 1.0 if not self.after.median else float("inf")
        return self.after.median / self.before.median

    @property
    def has_moved(self) -> bool:
        change = abs(self.ratio - 1)
        first, second = self.before, self.after
        if None in (first.least, first.most, second.least, second.most):
            return change >= _WITHOUT_SPREAD
        apart = second.least > first.most or second.most < first.least  # type: ignore[operator]
        return apart and change >= _WITH_SPREAD

    def __str__(self) -> str:
        word = "slower" if self.ratio > 1 else "faster"
        if self.before.unit == "MB":
            word = "more" if self.ratio > 1 else "less"
        return (
            f"{self.ratio:5.2f} x {word:<6}  {self.part}: {self.what}: {self.before} -> "
            f"{self.after}"
        )


def moves_between(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[Move]:
    for part, rows in first["parts"].items():
        others = {row["what"]: row for row in second["parts"].get(part, [])}
        for row in rows:
            other = others.get(row["what"])
            before = figure_of(row)
            after = figure_of(other) if other is not None else None
            if before and after and before.unit == after.unit:
                yield Move(part, row["what"], before, after)


def rows_of_one(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Names of rows that only the first run has."""
    there = {(part, row["what"]) for part, rows in second["parts"].items() for row in rows}
    found = []
    for part, rows in first["parts"].items():
        for row in rows:
            if (part, row["what"]) not in there:
                found.append(f"{part}: {row['what']}")
    return found


def comparison(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """What moved most comes first."""
    lines = [f"A  {_title(first)}", f"B  {_title(second)}", ""]
    moves = list(moves_between(first, second))
    moved = sorted((move for move in moves if move.has_moved), key=lambda move: -_size(move))
    lines += [str(move) for move in moved] or ["Nothing moved."]
    lines += ["", f"{len(moves) - len(moved)} of {len(moves)} rows stayed within their spread."]
    for name, missing in (("A", rows_of_one(first, second)), ("B", rows_of_one(second, first))):
        lines += [f"Only in {name}: {row}" for row in missing]
    if first["machine"]["processor"] != second["machine"]["processor"]:
        lines.append("The runs are of different processors: compare ratios within each, not times.")
    return "\n".join(lines)


def _size(move: Move) -> float:
    return max(move.ratio, 1 / move.ratio if move.ratio else float("inf"))


def _title(run: Mapping[str, Any]) -> str:
    machine = run["machine"]
    return (
        f"{run['date'][:16]}  {run['commit']}  {machine['cores']} cores, "
        f"load {machine['loadAtTheEnd']}, {run['seconds']} s"
    )


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or not all(arguments):
        print("Name two runs: make bench-compare A=var/bench/….json B=var/bench/….json")
        return 2
    try:
        first, second = (read_run(Path(name)) for name in arguments)
    except (OSError, ValueError) as error:
        print(f"A run cannot be read: {error}")
        return 2
    print(comparison(first, second))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
