"""Tests lie where their code lies: `tests/engine/actions` tests `scheduler/engine/actions`, and so
on.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

BASE = Path(__file__).resolve().parent.parent
TESTS = BASE / "tests"

OWN_ROOMS = {
    "bench": "measures speed, across all parts",
    "browser": "drives the pages of the whole site in Chromium",
    "conformance": "cases of Volcano's, as data, against engine and admission",
    "control_plane": "a real Kubernetes control plane for tests, and the tests of itself",
    "oracles": "the rules written a second time, which other tests compare with",
    "processes": "starts the real processes of an installation",
    "properties": "what holds for random clusters, trees and texts, across parts",
    "rules": "the rules of the test suite itself",
    "upgrades": "databases of each release, brought up to date",
    "tools": "measures and checks of the code itself: make metrics, make check",
}
"""Folders of tests that belong to no folder of code, and what they are for."""

TESTED_ELSEWHERE = {
    "dashboard/templatetags": "filters of templates: the pages that use them are tested in views",
    "scheduler/selectors/accounts": "who may do what: tests/services/accounts, and the API's tests",
    "scheduler/selectors/files": "manifests and reviews: tests/dashboard/api, apply and webhooks",
    "scheduler/selectors/usage": "sums and shares, with what is booked: tests/services/usage",
    "scheduler/selectors/notices": "inbox and rules: tests/services/notices, and the API's tests",
    "dashboard/management/commands": "a few lines each: tests/services/files",
    "scheduler/management/commands": "a few lines each, for the modules of scheduler/management",
}
"""Folders of code without a folder of tests, and where their tests are."""

NO_CODE_OF_OURS = ("scheduler/migrations",)


def code_folders() -> list[str]:
    """All folders below `scheduler/` and `dashboard/` that hold functions or classes."""
    found = {
        module.parent for package in ("scheduler", "dashboard") for module in _modules(package)
    }
    return sorted(folder.relative_to(BASE).as_posix() for folder in found)


def _modules(package: str) -> list[Path]:
    return [module for module in (BASE / package).rglob("*.py") if _has_logic(module)]


def _has_logic(module: Path) -> bool:
    if module.relative_to(BASE).as_posix().startswith(NO_CODE_OF_OURS):
        return False
    tree = ast.parse(module.read_text(encoding="utf-8"))
    return any(isinstance(node, (ast.FunctionDef, ast.ClassDef)) for node in ast.walk(tree))


def mirrored(folder: str) -> Path:
    """Where the tests of a folder of code lie: the rooms of the scheduler stand at the top."""
    return TESTS / folder.removeprefix("scheduler").removeprefix("/")


def folders_of_tests() -> list[str]:
    """All folders below `tests/` that mirror code, relative to it."""
    files = TESTS.rglob("test_*.py")
    folders = {file.parent.relative_to(TESTS).as_posix() for file in files}
    return sorted(folder for folder in folders if _room(folder) not in {".", *OWN_ROOMS})


def _room(folder: str) -> str:
    return folder.partition("/")[0]


def code_of(folder: str) -> Path:
    """Rooms of the scheduler come first; what it has not is at the top: dashboard, deploy, docs."""
    in_scheduler = BASE / "scheduler" / folder
    if (BASE / "scheduler" / _room(folder)).is_dir():
        return in_scheduler
    return BASE / folder


@pytest.mark.parametrize("folder", code_folders())
def test_every_folder_of_code_has_its_folder_of_tests(folder: str):
    tests = list(mirrored(folder).rglob("test_*.py"))

    assert bool(tests) is (folder not in TESTED_ELSEWHERE)


@pytest.mark.parametrize("folder", folders_of_tests())
def test_every_folder_of_tests_mirrors_a_folder_of_code(folder: str):
    assert code_of(folder).is_dir(), f"{folder} belongs to no folder: move it, or name it above"


def test_what_is_named_as_an_exception_exists():
    assert all((TESTS / room).is_dir() for room in OWN_ROOMS)
    assert all((BASE / folder).is_dir() for folder in TESTED_ELSEWHERE)


def test_no_test_lies_in_a_folder_that_pytest_does_not_take_for_a_package():
    """Without `__init__.py` two files of the same name in two folders are one to Python."""
    folders = {file.parent for file in TESTS.rglob("test_*.py")}

    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []
