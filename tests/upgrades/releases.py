"""A backup of a database as a released version left it, for the tests of upgrades.

`python -m tests.upgrades.releases VERSION COMMIT` checks the commit out beside this one, runs its
own sample cluster for a while, and keeps what is in its database then. The version is noted in
CHANGELOG.md.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.running import BASE, random_port

FOLDER = Path(__file__).with_name("data")
_SECONDS_OF_LIFE = 25


def backups() -> dict[str, Path]:
    """By version, the oldest first."""
    found = {file.name.removesuffix(".backup"): file for file in FOLDER.glob("*.backup")}
    return dict(sorted(found.items(), key=lambda pair: [int(n) for n in pair[0].split(".")]))


def keep(version: str, commit: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        var = Path(folder) / "var"
        _run("git", "worktree", "add", "--detach", str(tree), commit)
        try:
            _let_live(tree, var)
        finally:
            _run("git", "worktree", "remove", "--force", str(tree))
        _back_up(version, var)


def _let_live(tree: Path, var: Path) -> None:
    environment = {**os.environ, "FUMAROLE_VAR": str(var), "PORT": str(random_port()), "DEMO": "1"}
    environment.pop("DATABASE_URL", None)
    process = subprocess.Popen([sys.executable, "manage.py", "up"], cwd=tree, env=environment)
    try:
        while not (var / "admin-password").exists():
            if process.poll() is not None:
                sys.exit(f"The release ended with {process.returncode}.")
            time.sleep(0.5)
        time.sleep(_SECONDS_OF_LIFE)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def _back_up(version: str, var: Path) -> None:
    FOLDER.mkdir(exist_ok=True)
    file = FOLDER / f"{version}.backup"
    environment = {**os.environ, "FUMAROLE_VAR": str(var), "SECRET_KEY": "not needed"}
    command = [sys.executable, "manage.py", "backup", "--force", str(file)]
    subprocess.run(command, cwd=BASE, env=environment, check=True)


def _run(*command: str) -> None:
    subprocess.run(command, cwd=BASE, check=True)


if __name__ == "__main__":
    keep(*sys.argv[1:])
