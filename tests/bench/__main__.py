"""python -m tests.bench [--json] [--quick] [--save] [--only PART] [--also PART]: how fast sessions,
requests, writes, pages and the start are.

Each part has a process of its own, which is ended if it takes far too long. One that fails is told,
and does not end the others.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import UTC, datetime
from time import monotonic

from tests.bench.one_part import PartFailedError, measured_apart, stop_in_order
from tests.bench.parts import PARTS
from tests.bench.progress import Progress
from tests.bench.runs import Rows, commit_here, processor_seconds_of_children, run_of, save_run
from tests.bench.server import drop_databases, one_server

_GRACE = 60.0  # seconds that a part has beyond its own


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    stop_in_order()
    began = datetime.now(UTC)
    about = {
        "quick": options.quick,
        "whole": not options.only,
        "repetitions": options.repeat,
        "loadAtTheStart": round(os.getloadavg()[0], 1),
        "commit": commit_here(),
    }
    parts = Measured(options)
    parts.measure_all()
    run = run_of(parts.rows, began, **about, secondsOfParts=parts.seconds, failed=parts.failed)
    if options.json:
        print(json.dumps(run, indent=2))
    if options.save:
        print(f"kept as {save_run(run)}", file=sys.stderr)
    print(f"{run['seconds']} s in all", file=sys.stderr)
    for name, why in parts.failed.items():
        print(f"\n{name} failed: {why}", file=sys.stderr)
    return 1 if parts.failed else 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the sizes, for trying the benchmark itself"
    )
    parser.add_argument(
        "--repeat", type=int, default=5, help="repetitions of each measurement (default 5)"
    )
    for option, what in (
        ("--only", "only this part"),
        ("--also", "this part too, of those that take long"),
    ):
        parser.add_argument(
            option,
            choices=sorted(PARTS),
            action="append",
            default=[],
            help=f"{what}; may be given several times",
        )
    parser.add_argument(
        "--patience",
        type=float,
        default=3,
        help="end a part after so many times what it may take (default 3; more if others work too)",
    )
    parser.add_argument(
        "--save", action="store_true", help="keep the run as a file under var/bench/"
    )
    return parser.parse_args(arguments)


class Measured:
    """What the parts of one run found, and why some found nothing."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.rows: dict[str, Rows] = {}
        self.seconds: dict[str, dict[str, float]] = {}
        self.failed: dict[str, str] = {}
        self._options = options
        self._names = options.only or [
            name for name, part in PARTS.items() if not part.is_extra or name in options.also
        ]
        self._progress = Progress({name: PARTS[name].seconds for name in self._names})

    def measure_all(self) -> None:
        print("making a database for all parts", file=sys.stderr)
        with one_server():
            for name in self._names:
                try:
                    self._measure(name)
                except KeyboardInterrupt:
                    self.failed[name] = "interrupted"
                    return
                drop_databases()

    def _measure(self, name: str) -> None:
        self._progress.begin(name)
        began = monotonic()
        processor = processor_seconds_of_children()
        try:
            self.rows[name] = measured_apart(
                name,
                0.1 if self._options.quick else 1.0,
                self._options.repeat,
                _GRACE + PARTS[name].seconds * self._options.patience,
                self._progress.tell,
            )
        except PartFailedError as error:
            self.failed[name] = str(error).rpartition("\n")[2]
            print(f"\n{error}", file=sys.stderr)
        spent = {
            "clock": round(monotonic() - began, 1),
            "processor": round(processor_seconds_of_children() - processor, 1),
        }
        self.seconds[name] = spent
        ended = "failed after" if name in self.failed else "took"
        self._progress.end(f"{ended} {spent['clock']} s, {spent['processor']} s of processor")
        if name in self.rows and not self._options.json:
            _print(name, self.rows[name])


def _print(name: str, rows: Rows) -> None:
    print(f"\n{name}")
    for row in rows:
        figures = "  ".join(f"{key}={value}" for key, value in row.items() if key != "what")
        print(f"  {row['what']:<64} {figures}")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
