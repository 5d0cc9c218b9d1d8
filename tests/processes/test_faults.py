"""Whatever fails while gangs are bound on a real API server: no pod is lost, no node is over-full,
and all gangs are whole at the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.control_plane.plane import ControlPlane
from tests.processes.faults.harness import Report, run
from tests.processes.faults.kinds import KINDS, clock_environment

pytestmark = pytest.mark.processes

LONG = int(os.environ.get("FAULTS_BINDS", "5000"))
IN_SHORT = (
    "kill -9 of a scheduler",
    "kill -9 of the watcher",
    "kill -9 of the dispatcher",
    "kill -9 of the API server",
    "storm of 429 to each bind",
    "node deleted with pods on it",
    "watcher's clock 90 s behind",
)


def bind_under_faults(
    plane: ControlPlane, database: str, folder: Path, kinds: Sequence[str], **amounts: int
) -> Report:
    report = run(plane, database, folder, seed=3, kinds=kinds, **amounts)
    for line in report.lines():
        print(line)
    assert report.problems == []
    assert report.binds >= amounts["binds"]
    assert all(tally.times for tally in report.tallies.values())
    return report


def test_gangs_are_bound_whole_whatever_fails(
    control_plane: ControlPlane, postgres_database: str, tmp_path: Path
):
    bind_under_faults(control_plane, postgres_database, tmp_path, IN_SHORT, binds=200, nodes=10)


@pytest.mark.long
def test_thousands_of_binds_under_all_kinds_of_faults(
    control_plane: ControlPlane, postgres_database: str, tmp_path: Path
):
    amounts = {"binds": LONG, "nodes": 40, "rounds": 3}
    bind_under_faults(control_plane, postgres_database, tmp_path, list(KINDS), **amounts)


def test_the_time_of_day_of_a_process_can_be_wrong():
    told = subprocess.run(
        [sys.executable, "-c", "import datetime; print(datetime.datetime.now().timestamp())"],
        env={**os.environ, **clock_environment(3600)},
        text=True,
        capture_output=True,
        check=True,
    )

    assert abs(float(told.stdout) - time.time() - 3600) < 300
