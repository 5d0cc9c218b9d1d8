"""python -m tests.processes.faults [--binds N] [--rounds N] [--only WORDS]: faults of every
kind while gangs are bound on a real API server, and the table of what was found.

Ends with 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests import postgres
from tests.control_plane import programs
from tests.control_plane.plane import ControlPlane
from tests.processes.faults.harness import run
from tests.processes.faults.kinds import KINDS


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    kinds = [name for name in KINDS if options.only in name]
    with tempfile.TemporaryDirectory() as folder:
        place = options.keep_logs or Path(folder)
        with ControlPlane(programs.find(), place / "plane") as plane:
            report = run(
                plane,
                postgres.new_database("fumarole_faults"),
                place / "fumarole",
                binds=options.binds,
                nodes=options.nodes,
                seed=options.seed,
                kinds=kinds,
                rounds=options.rounds,
            )
    for line in report.lines():
        print(line)
    print("load: " + ", ".join(f"{load:.1f}" for load in os.getloadavg()))
    return 1 if report.problems else 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.processes.faults", description=__doc__)
    parser.add_argument("--binds", type=int, default=5000, help="at least so many")
    parser.add_argument("--nodes", type=int, default=40, help="of 16 cores")
    parser.add_argument("--rounds", type=int, default=3, help="each kind at least so often")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="kinds of faults with these words in them")
    parser.add_argument("--keep-logs", type=Path, help="a folder for what the processes wrote")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
