"""python -m tests.bench.schedulers [--pods N] [--nodes N] [--schedulers a,b]: one table of all.

For each scheduler a fresh API server with etcd, KWOK's nodes, and the same pods, created as fast as
the API server takes them, or --rate a second: most in gangs of 20, the rest alone. A process of its
own watches the pods and notes when each was there, bound and running; so all are measured by the
same clock. Processor time is of each process alone. Times depend on the machine: all share it.

Needs `make control-plane SCHEDULERS=1`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from tests.bench.schedulers.contestants import CONTESTANTS
from tests.bench.schedulers.load import Load
from tests.bench.schedulers.race import race
from tests.bench.schedulers.table import as_markdown

_USUAL = "fumarole,volcano,kube-scheduler,kube-scheduler-gangs"


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    load = Load(options.pods, options.nodes, options.rate)
    results = []
    for name in options.schedulers.split(","):
        with tempfile.TemporaryDirectory(prefix="fumarole-race-") as made:
            folder = (options.keep_logs or Path(made)) / name
            folder.mkdir(parents=True, exist_ok=True)
            print(f"{name}: {load.in_words()}", file=sys.stderr, flush=True)
            results.append(race(CONTESTANTS[name], load, folder))
            print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    whole = {"load": load.in_words(), "processors": os.cpu_count(), "results": results}
    if options.json:
        options.json.write_text(json.dumps(whole, indent=2) + "\n")
    print(as_markdown(load, results))
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.schedulers", description=__doc__)
    parser.add_argument("--pods", type=int, default=5_000)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--rate", type=float, default=0.0, help="pods a second; 0: all at once")
    parser.add_argument("--schedulers", default=_USUAL, help=f"of {', '.join(CONTESTANTS)}")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    parser.add_argument("--keep-logs", type=Path, help="a folder for what the processes wrote")
    options = parser.parse_args(arguments)
    for name in options.schedulers.split(","):
        if name not in CONTESTANTS:
            parser.error(f"there is no scheduler {name}: choose of {', '.join(CONTESTANTS)}")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
