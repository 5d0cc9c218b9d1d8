"""The programs of the control plane: found where they were built, and missed in plain words."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.control_plane import build, builder, programs
from tests.running import BASE

_A_TEST = "tests/control_plane/test_plane.py::test_the_version_is_told"


def test_without_go_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUMAROLE_CONTROL_PLANE", raising=False)
    monkeypatch.setattr(builder.shutil, "which", lambda _: None)

    with pytest.raises(builder.NoControlPlane, match=r"install Go 1\.26 or newer"):
        programs.find()


def test_a_build_that_was_interrupted_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FUMAROLE_CONTROL_PLANE", str(tmp_path))
    (tmp_path / "etcd").touch()

    with pytest.raises(builder.NoControlPlane, match="make control-plane"):
        programs.find()


def test_whoever_needs_the_programs_waits_while_they_are_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FUMAROLE_CONTROL_PLANE", str(tmp_path))
    found: list[programs.Programs] = []
    seeker = threading.Thread(target=lambda: found.append(programs.find()))

    with builder.lock(tmp_path):
        seeker.start()
        seeker.join(0.2)
        assert seeker.is_alive()
        (tmp_path / "complete").touch()
    seeker.join()

    assert found == [programs.Programs(tmp_path)]


def test_a_program_that_is_built_later_is_waited_for_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FUMAROLE_CONTROL_PLANE", str(tmp_path))
    found: list[Path] = []
    last = builder.Kept("last", tmp_path, "make last", lambda folder: (folder / "last").touch())
    seeker = threading.Thread(target=lambda: found.append(last.find()))

    def build_first(folder: Path) -> None:
        seeker.start()
        seeker.join(0.2)
        assert seeker.is_alive()

    build.build([builder.Kept("first", tmp_path, "make first", build_first), last])
    seeker.join()

    assert found == [tmp_path / "last"]
    assert (found[0] / "last").exists()


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
