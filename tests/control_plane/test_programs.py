"""The programs of the control plane: found where they were built, and missed in plain words."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.control_plane import programs
from tests.running import BASE

_A_TEST = "tests/control_plane/test_plane.py::test_the_version_is_told"


def test_without_go_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUMAROLE_CONTROL_PLANE", raising=False)
    monkeypatch.setattr(programs.shutil, "which", lambda _: None)

    with pytest.raises(programs.NoControlPlane, match=r"install Go 1\.26 or newer"):
        programs.find()


def test_a_build_that_was_interrupted_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FUMAROLE_CONTROL_PLANE", str(tmp_path))
    (tmp_path / "etcd").touch()

    with pytest.raises(programs.NoControlPlane, match="make control-plane"):
        programs.find()


def test_whoever_needs_the_programs_waits_while_they_are_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FUMAROLE_CONTROL_PLANE", str(tmp_path))
    found: list[programs.Programs] = []
    seeker = threading.Thread(target=lambda: found.append(programs.find()))

    with programs.lock(tmp_path):
        seeker.start()
        seeker.join(0.2)
        assert seeker.is_alive()
        (tmp_path / "complete").touch()
    seeker.join()

    assert found == [programs.Programs(tmp_path)]


@pytest.mark.parametrize(("in_ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_without_programs_a_test_is_skipped_but_fails_in_ci(
    tmp_path: Path, in_ci: str, outcome: str
) -> None:
    settings = {"FUMAROLE_CONTROL_PLANE": str(tmp_path), "CI": in_ci, "PYTEST_ADDOPTS": ""}
    inherited = {name: value for name, value in os.environ.items() if "XDIST" not in name}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", _A_TEST]

    done = subprocess.run(
        command,
        cwd=BASE,
        env={**inherited, **settings},
        text=True,
        capture_output=True,
        check=False,
    )

    assert outcome in done.stdout
    assert "no control plane: build it once with “make control-plane”" in done.stdout
