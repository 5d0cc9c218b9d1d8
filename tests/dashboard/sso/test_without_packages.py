"""Where requirements-sso.txt is not installed: everything else works, and what needs it says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HIDE = """
import importlib.util, os, sys

found = importlib.util.find_spec
def find_spec(name, package=None):
    if name.partition(".")[0] == "allauth":
        return None
    return found(name, package)
importlib.util.find_spec = find_spec
sys.modules["allauth"] = None  # an import of it fails
"""
USE = """
import django
from django.core.management import call_command

django.setup()
call_command("makemigrations", check=True, dry_run=True)
call_command("check")
from django.test import Client
from django.urls import NoReverseMatch, reverse
try:
    reverse("second-step")
    raise SystemExit("there are addresses of the extra")
except NoReverseMatch:
    pass
page = Client().get("/accounts/login/", headers={"host": "127.0.0.1"})
assert page.status_code == 200, page.content
print("it works")
"""


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HIDE + program],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": "sqlite://:memory:", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_everything_else_works():
    done = run(USE)

    assert done.stdout.endswith("it works\n"), done.stderr


def test_a_sign_on_that_is_asked_for_is_a_clear_error_at_the_start():
    done = run("import dashboard.settings", SSO_ISSUER="https://sso.example.com", **CLIENT)

    assert done.returncode == 1
    assert "Install requirements-sso.txt, or leave SSO_ISSUER out." in done.stderr


CLIENT = {"SSO_CLIENT_ID": "fumarole", "SSO_CLIENT_SECRET": "secret"}
