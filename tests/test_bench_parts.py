"""Parts of the benchmark as processes: none is waited for without end, and none leaves another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import progress
from tests.bench.one_part import PartFailedError, measured_apart, watch
from tests.bench.parts import PARTS
from tests.running import is_running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

STARTS_ANOTHER = """
import subprocess, sys, time
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                         start_new_session=True)
open(sys.argv[1], "w").write(str(other.pid))
time.sleep(float(sys.argv[2]))
"""


def _tell_nobody(_seconds: float) -> None:
    pass


def _start(file: Path, seconds: float) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", STARTS_ANOTHER, str(file), str(seconds)])
    while not (file.exists() and file.read_text()):
        assert process.poll() is None
    return process


def test_a_part_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path):
    file = tmp_path / "pid"
    process = _start(file, 600)

    assert not watch(process, 0.1, _tell_nobody)
    assert process.returncode
    assert not is_running(int(file.read_text()))


def test_what_a_part_leaves_behind_is_ended(tmp_path: Path):
    file = tmp_path / "pid"
    process = _start(file, 1)

    assert watch(process, 600, _tell_nobody)
    assert process.returncode == 0
    assert not is_running(int(file.read_text()))


def test_a_part_that_fails_says_why():
    with pytest.raises(PartFailedError, match="KeyError: 'none'"):
        measured_apart("none", 1.0, 1, 600, _tell_nobody)


def test_all_parts_of_a_usual_run_take_ten_minutes():
    assert sum(part.seconds for part in PARTS.values() if not part.is_extra) <= 600


def test_it_is_told_which_part_runs_and_how_far_the_run_is(capsys: pytest.CaptureFixture[str]):
    told = progress.Progress({"sessions": 15, "twin": 45})

    told.begin("twin")
    told.tell(31)
    told.tell(32)
    told.end("took 33 s")

    assert capsys.readouterr().err.splitlines() == [
        " 2/2 twin               0 s of 45; in all   0 s of 60",
        " 2/2 twin              31 s of 45; in all   0 s of 60",
        " 2/2 twin             took 33 s",
    ]
