"""Figures that tests measure: those of pages and sockets, which need the database of pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.bench.runs import Rows

_FILE_VARIABLE = "FUMAROLE_BENCH_ROWS"
CONSOLE = ("test_console.py", "test_page.py", "test_sockets.py")


def note(what: str, **figures: float) -> None:
    """A row of the run that these tests are a part of, if they are."""
    if path := os.environ.get(_FILE_VARIABLE):
        with Path(path).open("a") as file:
            file.write(json.dumps({"what": what, **figures}) + "\n")


def note_times(what: str, milliseconds: Sequence[float], **figures: float) -> None:
    least, most = min(milliseconds), max(milliseconds)
    times = {"medianMs": median(milliseconds), "minMs": least, "maxMs": most}
    note(what, **{name: round(value, 2) for name, value in times.items()}, **figures)


def console(_scale: float, _repetitions: int) -> Rows:
    """The tree of a thousand queues on the server and in a browser, and a thousand sockets."""
    with tempfile.NamedTemporaryFile("r") as file:
        tests = [f"tests/bench/{name}" for name in CONSOLE]
        subprocess.run(
            [sys.executable, "-m", "pytest", *tests, "-q", "-n", "0"],
            env={**os.environ, _FILE_VARIABLE: file.name},
            stdout=sys.stderr,
            check=True,
        )
        return [json.loads(line) for line in file]
