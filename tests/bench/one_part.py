"""python -m tests.bench.one_part PART FILE SCALE REPETITIONS: one part, its rows as JSON in a file.

Each part has a process of its own: none finds what another has loaded, and Django settles its
database once. Whatever a part does, its process ends, and so does everything that it started.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from types import FrameType

from tests.bench.runs import Rows
from tests.bench.start import processes_under

Tell = Callable[[float], None]
"""Is told again and again how many seconds have passed."""

_LOOKS_EVERY = 1.0
_SECONDS_TO_STOP = 20.0
_LINES_OF_A_FAILURE = 15


class PartFailedError(Exception):
    """Says why."""


def measured_apart(name: str, scale: float, repetitions: int, most: float, tell: Tell) -> Rows:
    """The rows of a part. It is ended after `most` seconds."""
    with tempfile.TemporaryDirectory(prefix="fumarole-bench-") as folder:
        rows = Path(folder) / "rows.json"
        log = Path(folder) / "log"
        command = [sys.executable, "-m", "tests.bench.one_part"]
        command += [name, str(rows), str(scale), str(repetitions)]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
            is_in_time = watch(process, most, tell)
        if not is_in_time:
            raise PartFailedError(f"{_last_lines(log)}\ntook longer than {most:.0f} s")
        if process.returncode:
            raise PartFailedError(_last_lines(log) or f"exit code {process.returncode}")
        found: Rows = json.loads(rows.read_text())
        return found


def _last_lines(log: Path) -> str:
    lines = log.read_text(errors="replace").rstrip().splitlines()
    return "\n".join(lines[-_LINES_OF_A_FAILURE:])


def watch(process: subprocess.Popen[bytes], most: float, tell: Tell) -> bool:
    """Whether it ended in time. None of its processes is there any more."""
    began = monotonic()
    started: dict[int, str] = {}
    try:
        while process.poll() is None and monotonic() - began < most:
            started |= _with_their_starts(process.pid)
            tell(monotonic() - began)
            _wait(process, _LOOKS_EVERY)
        return process.poll() is not None
    finally:
        started |= _with_their_starts(process.pid)
        _end(process, started)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _end(process: subprocess.Popen[bytes], started: dict[int, str]) -> None:
    """It first, which may end what it started in order. Then what is left."""
    if process.poll() is None:
        process.terminate()
        _wait(process, _SECONDS_TO_STOP)
    for number, start in started.items():
        while _start_of(number) == start:
            _kill(number)
            sleep(0.01)
    process.wait()


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _with_their_starts(process: int) -> dict[int, str]:
    """A number is given to another process some day. The moment of its start tells them apart."""
    found = {}
    for number in processes_under(process):
        if start := _start_of(number):
            found[number] = start
    return found


def _start_of(process: int) -> str:
    """Empty of one that has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


# In the process of the part


def main(arguments: list[str]) -> int:
    name, file, scale, repetitions = arguments
    stop_in_order()
    atexit.register(_end_what_is_left)  # the first that is registered is the last that is done
    _keep_orphans()
    from tests.bench.parts import PARTS

    rows = PARTS[name].measure(float(scale), int(repetitions))
    Path(file).write_text(json.dumps(rows))
    return 0


def stop_in_order() -> None:
    """When it is told to end, this process leaves every block, which ends what it started."""
    signal.signal(signal.SIGTERM, _stop)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit("stopped")


def _end_what_is_left() -> None:
    for number in processes_under(os.getpid())[1:]:
        _kill(number)


def _keep_orphans() -> None:
    """What a process of this part leaves behind is found under this one, and not under init."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
