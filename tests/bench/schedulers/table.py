"""What was measured, as a table for docs/performance.md."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tests.bench.schedulers.load import Load

Result = Mapping[str, Any]

_ROWS = (
    ("all pods run after", "allRunningSeconds", "{:.1f} s"),
    ("all pods are bound after", "allBoundSeconds", "{:.1f} s"),
    ("binds a second", "bindsASecond", "{:.0f}"),
    ("from creation to bound, p50", "boundP50Seconds", "{:.2f} s"),
    ("the same, p99", "boundP99Seconds", "{:.2f} s"),
    ("processor time of the scheduler", "schedulerCpuSeconds", "{:.1f} s"),
    ("of API server and etcd", "serverCpuSeconds", "{:.1f} s"),
    ("memory of the scheduler at most", "memoryMegabytes", "{:.0f} MB"),
    ("nodes over-committed, gangs in part", "nodesOverCommittedOrGangsBroken", "{:.0f}"),
    ("all pods were created after", "createdSeconds", "{:.1f} s"),
    ("load of the machine before", "loadBefore", "{:.1f}"),
)


def as_markdown(load: Load, results: Sequence[Result]) -> str:
    names = [result["scheduler"] for result in results]
    lines = [
        f"{load.in_words()}; {os.cpu_count()} processors for everything.",
        "",
        f"| | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    for title, key, form in _ROWS:
        cells = [form.format(result[key]) for result in results]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    lines.append("")
    for result in results:
        lines.append(f"{result['scheduler']}, processor time: {_parts(result['cpuSeconds'])}.")
    return "\n".join(lines)


def _parts(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {amount:.1f} s" for name, amount in seconds.items())
