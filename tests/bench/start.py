"""python -m tests.bench.start [--port 8169]: how long `make run` takes to the first living page,
and what memory all its processes have a while later.

It starts the sample in an empty folder of its own, with the packages that are installed, and stops
it. Memory is what each process has to itself, and its part of what it shares (PSS, Linux).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic, sleep
from urllib.error import URLError
from urllib.request import urlopen

from tests.bench.measuring import Timing

_LONGEST = 300.0
_MOST_STARTS = 3
_TICKS = os.sysconf("SC_CLK_TCK")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.start", description=__doc__)
    parser.add_argument("--port", type=int, default=8169)
    parser.add_argument(
        "--settle", type=float, default=20.0, help="seconds until memory is looked at (default 20)"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measured(Path(folder), options.port, options.settle), indent=2))
    return 0


def start(_scale: float, repetitions: int) -> list[dict[str, object]]:
    """A few times, each in an empty folder; memory is that of the last."""
    seconds = []
    for last in range(min(repetitions, _MOST_STARTS) - 1, -1, -1):
        with tempfile.TemporaryDirectory() as folder:
            found = measured(Path(folder), free_port(), settle=0 if last else 20)
        clock = float(str(found["secondsToTheFirstPage"]))
        seconds.append((clock, float(str(found["processorSecondsOfWhatLivesThen"]))))
    memory = found["memoryMB"]
    assert isinstance(memory, dict)
    sums: dict[str, float] = {}
    for process, megabytes in memory.items():
        name = str(process).rpartition(" ")[0]
        sums[name] = sums.get(name, 0.0) + megabytes
    return [
        {"what": "first page", **Timing(*zip(*seconds, strict=True)).as_json()},
        {"what": "memory, in sum", "peakMB": found["memoryInSumMB"]},
        *({"what": f"memory, {name}", "peakMB": round(sums[name], 1)} for name in sums),
    ]


def measured(folder: Path, port: int, settle: float) -> dict[str, object]:
    environment = {**os.environ, "PORT": str(port), "FUMAROLE_VAR": str(folder)}
    began = monotonic()
    load = os.getloadavg()[0]
    run = subprocess.Popen(["make", "--silent", "run"], env=environment, stdout=subprocess.DEVNULL)
    try:
        seconds = _until_it_answers(f"http://127.0.0.1:{port}/accounts/login/", began, run)
        processor = sum(map(processor_seconds, processes_under(run.pid)))
        sleep(settle)
        found = [process for process in processes_under(run.pid) if memory_of(process)]
        memory = {f"{name_of(process)} {process}": memory_of(process) for process in found}
    finally:
        run.send_signal(signal.SIGTERM)
        run.wait()
    return {
        "secondsToTheFirstPage": round(seconds, 1),
        "processorSecondsOfWhatLivesThen": round(processor, 1),
        "loadBefore": round(load, 1),
        "memoryMB": {name: round(size, 1) for name, size in memory.items()},
        "memoryInSumMB": round(sum(memory.values()), 1),
    }


def _until_it_answers(address: str, began: float, run: subprocess.Popen[bytes]) -> float:
    while monotonic() - began < _LONGEST and run.poll() is None:
        try:
            with urlopen(address, timeout=5):
                return monotonic() - began
        except (URLError, OSError):
            sleep(0.05)
    raise RuntimeError("the site did not answer")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# Processes


def processes_under(root: int) -> list[int]:
    """This one and all that it started, and those that they did."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            children.setdefault(_parent_of(folder), []).append(int(folder.name))
    found = [root]
    for process in found:
        found.extend(children.get(process, []))
    return found


def _parent_of(folder: Path) -> int:
    fields = _after_the_name(folder)
    return int(fields[1]) if fields else 0


def _after_the_name(folder: Path) -> list[str]:
    """What /proc/…/stat says behind the name, which may have blanks."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has just ended
        return []


def processor_seconds(process: int) -> float:
    """Its own, and that of its children that have ended."""
    fields = _after_the_name(Path(f"/proc/{process}"))
    return sum(map(int, fields[11:15])) / _TICKS


def memory_of(process: int) -> float:
    """PSS in MB; 0 of one that has just ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    sizes = [int(line.split()[1]) for line in lines if line.startswith("Pss:")]
    return sum(sizes) / 1024


def name_of(process: int) -> str:
    """The word of its command that tells most."""
    command = Path(f"/proc/{process}/cmdline").read_text().split("\0")
    for word in ("beat", "scheduler", "default", "up"):
        if word in command:
            return {"default": "worker", "up": "supervisor"}.get(word, word)
    if any("uvicorn" in part for part in command):
        return "web"
    name = Path(command[0]).name
    return "Redis" if name.startswith("redis-server") else name


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
