"""python -m tests.processes.soak [--seconds N] [--seed N] [--short] [--only WORDS]: everything at
once, everything failing, and what came of it. Ends with 1 if anything was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from tests.processes.soak.faults import IN_SHORT, possible_kinds
from tests.processes.soak.harness import run

_OWN_MOUNTS = "SOAK_HAS_ITS_OWN_MOUNTS"


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    if os.geteuid() == 0 and not os.environ.get(_OWN_MOUNTS):
        _begin_again_with_own_mounts(arguments)
    kinds = [name for name in possible_kinds() if options.only in name]
    if options.short:
        kinds = [name for name in kinds if name in IN_SHORT]
    with tempfile.TemporaryDirectory(prefix="fumarole-soak-") as folder:
        place = options.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o755)  # PostgreSQL is another user
        report = run(
            place,
            seconds=options.seconds,
            seed=options.seed,
            kinds=kinds,
            each_once=options.short,
            wait_seconds=0.5 if options.short else 1.0,
        )
    for line in report.lines():
        print(line)
    print("load: " + ", ".join(f"{load:.1f}" for load in os.getloadavg()))
    if options.json:
        print(json.dumps(report.as_json()))
    return 1 if report.problems else 0


def _begin_again_with_own_mounts(arguments: list[str]) -> None:
    """The small disk that is filled up goes away with this process, however it ends."""
    os.environ[_OWN_MOUNTS] = "1"
    own = ["unshare", "--mount", "--propagation", "private"]
    os.execvp(own[0], [*own, sys.executable, "-m", "tests.processes.soak", *arguments])


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.processes.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800.0, help="faults come for so long")
    parser.add_argument("--seed", type=int, default=1, help="what is done, and in which order")
    parser.add_argument("--short", action="store_true", help="a few kinds, each once")
    parser.add_argument("--only", default="", help="kinds of faults with these words in them")
    parser.add_argument("--keep", type=Path, help="an empty folder, for logs that are kept")
    parser.add_argument("--json", action="store_true", help="the same as JSON, in the last line")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
