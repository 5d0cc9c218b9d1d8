"""The house rules that code can check: imports point one way, the command line stays light, no
migration is missing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

BASE = Path(__file__).resolve().parent.parent


def test_imports_point_one_way():
    linter = Path(sys.executable).parent / "lint-imports"

    done = subprocess.run(
        [linter, "--no-cache"],
        cwd=BASE,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "frameworks"),
    [
        ("dashboard.cli", {"django", "celery", "rest_framework", "channels"}),
        ("scheduler.supervisor.up", {"django", "celery", "rest_framework", "channels"}),
        ("scheduler.engine", {"django", "celery", "redis"}),
        ("scheduler.admission", {"django", "celery", "redis"}),
        ("scheduler.domain", {"django", "celery", "redis"}),
    ],
)
def test_importing_it_loads_no_framework(module: str, frameworks: set[str]):
    """The import contracts read the code.

    This is what really happens, parents of the package included.
    """
    program = (
        f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=BASE,
        capture_output=True,
        text=True,
        check=True,
    )

    assert not frameworks & set(done.stdout.split())


@pytest.mark.django_db
def test_no_migration_is_missing():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
