"""python -m tests.bench.document [var/bench/….json]: shows a run in docs/performance.md.

Without a file it takes the newest whole one. The run is kept beside the page, in
docs/performance.json, with the newest rows of parts that it did not measure. The page's tables of
aims and figures are made from it, and the history gets a line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.bench import history
from tests.bench.lines import Line
from tests.bench.runs import FOLDER, read_run
from tests.bench.tables import TABLES

PAGE = Path("docs/performance.md")
SHOWN_RUN = Path("docs/performance.json")
BEGIN = "<!-- figures of a run: made by tests/bench/document.py -->"
END = "<!-- end of the figures -->"

Run = Mapping[str, Any]

# The page


def figures(run: Run) -> Iterator[str]:
    """The lines of the block."""
    yield _about(run)
    yield f"\n{_summary(run)}"
    for title, lines in TABLES.items():
        yield f"\n### {title}\n"
        yield "| what | aim | measured | |"
        yield "|---|---|---|---|"
        for line in lines:
            yield f"| {' | '.join(line.cells(run))} |"
        yield from _other_runs(lines, run)


def _summary(run: Run) -> str:
    lines = [line for table in TABLES.values() for line in table if line.aim is not None]
    verdicts = [line.cells(run)[3] for line in lines]
    return (
        f"Of {len(lines)} aims {verdicts.count('met')} are met and {verdicts.count('missed')} "
        f"missed; {verdicts.count('')} were not measured."
    )


def _other_runs(lines: Iterable[Line], run: Run) -> Iterator[str]:
    for part in dict.fromkeys(line.part for line in lines if line.is_of_another_run(run)):
        of = run["otherRuns"][part]
        about = f"{_moment(of)}, commit {of['commit']}, load {of['load']}"
        yield f"\nAnother run: `--only {part}`, {about}."


def _moment(run: Run) -> str:
    return str(run["date"])[:16].replace("T", " ")


def _about(run: Run) -> str:
    machine = run["machine"]
    load = (
        f"{run.get('loadAtTheStart', 'unknown')} at the start, {machine['loadAtTheEnd']} at the end"
    )
    sentences = [
        f"The run of {_moment(run)}, commit {run['commit']}.",
        f"{machine['cores']} cores ({machine['processor']}), Python {machine['python']}.",
        f"Load {load}; {run['seconds']} s in all, {run['repetitions']} repetitions.",
    ]
    if failed := run.get("failed"):
        sentences.append(f"Parts that did not finish: {', '.join(failed)}.")
    if run["quick"]:
        sentences.append("**A quick run, with a tenth of the sizes.**")
    return " ".join(sentences)


def with_figures(page: str, run: Run) -> str:
    head, mark, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (mark and end):
        raise ValueError(f"the page has no place for the figures: {BEGIN} … {END}")
    return f"{head}{BEGIN}\n\n" + "\n".join(figures(run)) + f"\n\n{END}{tail}"


# The run that it shows


def newest_run(folder: Path = FOLDER) -> Path | None:
    """The newest of those that measured all that is measured as a rule.

    Their names begin with the date.
    """
    for path in sorted(folder.glob("*.json"), reverse=True):
        run = read_run(path)
        if run.get("whole") and not run["quick"]:
            return path
    return None


def with_other_runs(run: Run, others: Iterable[Run]) -> dict[str, Any]:
    """The run, and of each part that it did not measure the newest rows of the others."""
    found: dict[str, Any] = {}
    for other in others:
        measured = {part: _of_a_part(other, rows) for part, rows in other["parts"].items()}
        if other["quick"]:
            continue
        for part, rows in {**other.get("otherRuns", {}), **measured}.items():
            is_newer = part not in found or rows["date"] > found[part]["date"]
            if part in _SHOWN_PARTS and part not in run["parts"] and is_newer:
                found[part] = rows
    return {**run, "otherRuns": found}


_SHOWN_PARTS = {line.part for lines in TABLES.values() for line in lines}


def _of_a_part(run: Run, rows: Any) -> dict[str, Any]:
    load = run["machine"]["loadAtTheEnd"]
    return {"date": run["date"], "commit": run["commit"], "load": load, "rows": rows}


def main(
    arguments: list[str], page: Path = PAGE, shown: Path = SHOWN_RUN, folder: Path = FOLDER
) -> int:
    path = Path(arguments[0]) if arguments else newest_run(folder)
    if path is None:
        print(f"There is no whole run under {folder}. Make one with: make bench")
        return 2
    try:
        run = read_run(path)
    except (OSError, ValueError) as error:
        print(f"The run cannot be read: {error}")
        return 2
    others = [read_run(other) for other in (shown, *folder.glob("*.json")) if other.exists()]
    run = with_other_runs(run, others)
    page.write_text(history.with_runs(with_figures(page.read_text(), run), [run]))
    shown.write_text(json.dumps(run, indent=2) + "\n")
    print(f"{page} shows {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
