"""`manage.py check --deploy`, as docs/security.md runs it, with the settings of production."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.running import BASE

PRODUCTION = {
    "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQR",
    "DATABASE_URL": "sqlite://:memory:",
    "ALLOWED_HOSTS": "queues.example.com",
    "CSRF_TRUSTED_ORIGINS": "https://queues.example.com",
    "TRUSTED_PROXIES": "127.0.0.1",
}

OF_THE_SUPERVISOR = {"FUMAROLE_EMBEDDED", "DATABASE_POOLED"}  # set by the program itself
_READ = re.compile(r"""\benv(?:\.\w+)?\(\s*"([A-Z_]+)\"""")


def check(**given: str) -> str:
    """What it says; empty if it has no remark."""
    said = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        env={"PATH": os.environ["PATH"], **PRODUCTION, **given},
        capture_output=True,
        text=True,
        check=False,
    )
    if said.returncode == 0:
        return ""
    return said.stdout + said.stderr


def test_the_settings_of_production_leave_nothing_to_remark():
    assert check() == ""


@pytest.mark.parametrize(
    ("given", "remark"),
    [
        pytest.param({"DEBUG": "1"}, "security.W018", id="debug"),
        pytest.param({"SECURE_COOKIES": "0"}, "security.W012", id="cookies over plain HTTP"),
        pytest.param({"TRUSTED_PROXIES": ""}, "security.W008", id="nobody sends to HTTPS"),
    ],
)
def test_settings_that_are_not_safe_are_remarked(given: dict[str, str], remark: str):
    assert remark in check(**given)


def test_every_variable_that_is_read_is_in_the_guide():
    read = set(_READ.findall((BASE / "dashboard/settings.py").read_text()))
    guide = (BASE / "docs/how-to/production.md").read_text()

    assert len(read) > 40
    assert {name for name in read - OF_THE_SUPERVISOR if f"`{name}" not in guide} == set()
