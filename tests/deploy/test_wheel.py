"""`pip install .` gives vcctl alone: the wheel holds all that its commands load, and names all that
they need.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.deploy.installed import needed

BASE = Path(__file__).resolve().parent.parent.parent
PROJECT = tomllib.loads((BASE / "pyproject.toml").read_text())["project"]
UV = Path(sys.executable).with_name("uv")
pytestmark = pytest.mark.processes

# Run by the Python of the fresh environment: asks the program which commands there are, and each
# command for its help.
EVERY_HELP = """
import contextlib, io, sys
import typer
from dashboard.cli import main

def commands(command, words):
    yield words
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, [*words, name])

for words in list(commands(typer.main.get_command(main.program()), ["vcctl"])):
    sys.argv = [*words, "--help"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main.main()
    assert "Usage:" in said.getvalue(), (words, said.getvalue())
    print(*words)
"""


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it says it needs: nothing else of ours, and nothing of
    the tests'.
    """
    place = tmp_path_factory.mktemp("fresh")
    wheel = _build(place / "source", place)
    venv.create(place / "venv", with_pip=False)
    _lend_libraries(place / "venv")
    _pip(place / "venv", "install", "--offline", "--quiet", wheel)
    return place / "venv"


def _build(source: Path, target: Path) -> Path:
    """In a copy: setuptools leaves its traces where it builds."""
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(BASE / name, source)
    for package in ("dashboard", "scheduler"):
        shutil.copytree(
            BASE / package, source / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    _run(
        source,
        sys.executable,
        "-c",
        f"from setuptools import build_meta; build_meta.build_wheel({str(target)!r})",
    )
    return next(target.glob("*.whl"))


def _lend_libraries(environment: Path) -> None:
    """What the wheel needs is lent by the environment of the tests, package by package, so that no
    index is asked.
    """
    place = next(environment.glob("lib/python*/site-packages"))
    for name in needed([Requirement(text) for text in PROJECT["dependencies"]]):
        lent = distribution(name)
        for first in {
            file.parts[0] for file in lent.files or () if file.parts[0] not in ("..", "__pycache__")
        }:
            _lend(Path(str(lent.locate_file(first))), place / first)


def _lend(source: Path, target: Path) -> None:
    if source.suffix == ".dist-info":
        shutil.copytree(source, target)  # uv takes no link for one
    else:
        target.symlink_to(source)


def _pip(environment: Path, command: str, *words: str | Path) -> str:
    """uv's, which is quick and makes no second environment to build in."""
    return _run(environment, UV, "pip", command, "--python", environment / "bin/python", *words)


def _run(folder: Path, *command: str | Path) -> str:
    plain = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERMINAL_WIDTH": "120"}
    done = subprocess.run(
        command, cwd=folder, env=plain, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("program", PROJECT["scripts"])
def test_every_program_starts(fresh: Path, program: str):
    assert "Usage:" in _run(fresh, fresh / "bin" / program, "--help")


def test_every_command_says_its_help(fresh: Path):
    told = _run(fresh, fresh / "bin/python", "-P", "-c", EVERY_HELP).splitlines()

    assert {"vcctl session list", "vcctl queue tree", "vcctl job run", "vcctl apply"} <= set(told)


def test_what_the_wheel_needs_is_named_with_versions_that_fit(fresh: Path):
    assert "All installed packages are compatible" in _pip(fresh, "check")
