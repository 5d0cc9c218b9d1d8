"""Ten thousand open pages on two web processes, as a part of the benchmark."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median

from tests.bench.runs import Rows

SOCKETS = 10_000


def sockets(scale: float, repetitions: int) -> Rows:
    """From the request of a change to the last page that knows, and who never learned of one."""
    program = [sys.executable, "-m", "tests.bench.many_sockets"]
    number = int(SOCKETS * scale)
    options = ["--sockets", str(number), "--rounds", str(repetitions)]
    ran = subprocess.run([*program, *options], stdout=subprocess.PIPE, check=True)
    found = json.loads(ran.stdout)
    times = found["msFromRequestToLast"]
    return [
        {
            "what": f"{number:,} sockets on two web processes",
            "medianMs": median(times),
            "minMs": min(times),
            "maxMs": max(times),
            "lost": found["socketsThatMissedSomething"],
            "secondsToOpenAll": found["secondsToOpenAll"],
        }
    ]
