"""python -m tests.bench [--json] [--quick] [--save] [--only PART] [--skip PART]: how fast a session
is, against a naive twin, and how it grows; what requests and writes cost.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from time import monotonic

from tests.bench.parts import PARTS
from tests.bench.runs import Rows, commit_here, run_of, save_run


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the sizes, for trying the benchmark itself"
    )
    parser.add_argument(
        "--repeat", type=int, default=7, help="repetitions of each measurement (default 7)"
    )
    parser.add_argument(
        "--only",
        choices=sorted(PARTS),
        action="append",
        help="only this part; may be given several times",
    )
    parser.add_argument(
        "--skip",
        choices=sorted(PARTS),
        action="append",
        default=[],
        help="all but this part; may be given several times",
    )
    parser.add_argument(
        "--save", action="store_true", help="keep the run as a file under var/bench/"
    )
    options = parser.parse_args(arguments)
    began = datetime.now(UTC)
    load = round(os.getloadavg()[0], 1)
    commit = commit_here()
    parts: dict[str, Rows] = {}
    answer: dict[str, object] = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "quick": options.quick,
    }
    names = [name for name in options.only or PARTS if name not in options.skip]
    seconds: dict[str, int] = {}
    failed = []
    for name in names:
        alone = len(names) == 1
        begin = monotonic()
        try:
            rows = (
                PARTS[name](0.1 if options.quick else 1.0, options.repeat)
                if alone
                else _in_a_process_of_its_own(name, options)
            )
        except subprocess.CalledProcessError as error:
            failed.append(name)
            print(f"{name} failed: {error}", file=sys.stderr)
            continue
        parts[name] = rows
        seconds[name] = round(monotonic() - begin)
        if not options.json:
            _print(name, rows)
    if options.json:
        print(json.dumps({**answer, **parts}, indent=2))
    if options.save:
        run = run_of(
            parts,
            began,
            quick=options.quick,
            repetitions=options.repeat,
            loadAtTheStart=load,
            commit=commit,
            secondsOfParts=seconds,
            failed=failed,
        )
        print(f"kept as {save_run(run)}", file=sys.stderr)
    return 1 if failed else 0


def _in_a_process_of_its_own(name: str, options: argparse.Namespace) -> Rows:
    """No part finds what another has loaded, and Django settles its database once."""
    command = [
        sys.executable,
        "-m",
        "tests.bench",
        "--json",
        "--only",
        name,
        "--repeat",
        str(options.repeat),
    ]
    ran = subprocess.run(
        [*command, *(["--quick"] if options.quick else [])], stdout=subprocess.PIPE, check=True
    )
    rows: Rows = json.loads(ran.stdout)[name]
    return rows


def _print(name: str, rows: Rows) -> None:
    print(f"\n{name}")
    for row in rows:
        figures = "  ".join(f"{key}={value}" for key, value in row.items() if key != "what")
        print(f"  {row['what']:<64} {figures}")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
