"""python -m tests.bench.history var/bench/….json …: adds runs to the history in
docs/performance.md.

The files of runs stay on the machine that made them. The history is a line for each, with a few
figures that tell most, the newest first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.bench.runs import figure_of, read_run

PAGE = Path("docs/performance.md")
BEGIN = "<!-- history of runs: made by tests/bench/history.py -->"
END = "<!-- end of the history -->"
MOST_RUNS = 12

COLUMNS = {
    "session, gangs": (
        "sessions",
        "1,000 nodes, 1,000 pending in gangs, 10,000 running, 100 queues",
    ),
    "nothing changed": ("database", "no change (0 pods)"),
    "100 changed": ("database", "100 changes (100 pods)"),
    "one create": ("queue-writes", "PostgreSQL: one create, 1000 queues there"),
    "100 queues": ("requests", "queues/, the first 100 of 1,000"),
    "1,000 queues": ("requests", "queues/?page_size=1000"),
    "100 jobs": ("requests", "jobs/, a page of 100"),
    "submit": ("requests", "submit a gang of 4"),
    "memory": ("start", "memory, in sum"),
}
"""Title of a column -> part and row of a run.

Requests are given as times of an empty view, all else as what `bench-compare` compares.
"""


def line_of(run: Mapping[str, Any]) -> str:
    machine = run["machine"]
    cells = [run["date"][:16].replace("T", " "), run["commit"]]
    cells.append(f"{machine['cores']} cores, load {machine['loadAtTheEnd']}")
    for part, what in COLUMNS.values():
        cells.append(_cell(run["parts"].get(part, []), what))
    return f"| {' | '.join(cells)} |"


def _cell(rows: Iterable[Mapping[str, Any]], what: str) -> str:
    for row in rows:
        if row["what"] != what:
            continue
        if "ofEmpty" in row:
            return f"{row['ofEmpty']} x ({row['ofEmptyMin']} to {row['ofEmptyMax']})"
        figure = figure_of(row)
        if figure is not None:
            return str(figure).replace(" of CPU", "")
    return ""


def with_runs(page: str, runs: Iterable[Mapping[str, Any]]) -> str:
    """The page with a line for each run. One that is there already is replaced."""
    head, _, rest = page.partition(BEGIN)
    section, mark, tail = rest.partition(END)
    if not mark:
        raise ValueError(f"the page has no place for the history: {BEGIN} … {END}")
    lines = {}
    for line in section.splitlines():
        if line.startswith("| 2"):
            lines[_key(line)] = line
    for run in runs:
        line = line_of(run)
        lines[_key(line)] = line
    newest = [lines[key] for key in sorted(lines, reverse=True)][:MOST_RUNS]
    titles = ["run", "commit", "machine", *COLUMNS]
    table = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}", *newest]
    return f"{head}{BEGIN}\n\n" + "\n".join(table) + f"\n\n{END}{tail}"


def _key(line: str) -> tuple[str, ...]:
    """When it began, and of what."""
    return tuple(cell.strip() for cell in line.split("|")[1:3])


def main(arguments: list[str], page: Path = PAGE) -> int:
    if not arguments:
        print("Name the files of one or more runs.")
        return 2
    runs = [read_run(Path(name)) for name in arguments]
    page.write_text(with_runs(page.read_text(), runs))
    print(f"{len(runs)} in {page}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
