"""Where the answer cannot go: a full disk, a closed output, a terminal without our letters.

A sentence at most, never a traceback.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
VCCTL = f"{sys.executable} -m dashboard.cli"


def shell(line: str, tmp_path: Path, **more: str) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "VCCTL_CONFIG": str(tmp_path / "contexts.json"), **more}
    return subprocess.run(line, shell=True, cwd=ROOT, env=env, capture_output=True, check=False)


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this system has no disk that is always full"
)
def test_a_full_disk_is_told_in_a_sentence(tmp_path: Path):
    done = shell(f"{VCCTL} --help > /dev/full", tmp_path)

    assert (done.returncode, done.stderr) == (
        1,
        b"The answer cannot be written: No space left on device.\n",
    )


def test_a_closed_output_is_nobody_s_business(tmp_path: Path):
    done = shell(f"{VCCTL} --version >&-", tmp_path)

    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_had_enough_is_no_error(tmp_path: Path):
    done = shell(f"{VCCTL} --help | head -n 1; echo", tmp_path)

    assert done.stderr == b""


def test_letters_that_the_terminal_does_not_have_become_question_marks(tmp_path: Path):
    script = (
        "from dashboard.cli import main, output; main.ready = lambda _: type('', (), {'main': "
        "lambda *_, **__: output.line('a “名” b')})"
    )
    line = f"{sys.executable} -c \"{script}; main.run(None, 'vcctl')\""

    done = shell(line, tmp_path, PYTHONIOENCODING="latin-1")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"a ??? b\n", b"")
