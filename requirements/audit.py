"""Asks pip-audit for known holes in the packages that a file pins. A hole is a failure; data that cannot be reached is only told.

Called as: python requirements/audit.py requirements.txt
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_PATIENCE_SECONDS = 120
_REQUEST_SECONDS = 5


def main(requirements: str) -> int:
    """The exit code: 1 if a package has a known hole, else 0."""
    packages = _ask(requirements)
    if packages is None:
        print("pip-audit did not reach its data: no package was looked up.")
        return 0
    holes = list(known_holes(packages))
    unknown = sum("vulns" not in package for package in packages)
    for line in holes:
        print(line)
    print(f"pip-audit: {len(packages) - unknown} packages looked up, {len(holes)} known holes.")
    if unknown:
        print(f"pip-audit did not reach its data for {unknown} packages: those were not looked up.")
    return 1 if holes else 0


def known_holes(packages: Iterable[dict[str, Any]]) -> Iterable[str]:
    for package in packages:
        for hole in package.get("vulns", ()):
            mended = ", ".join(hole["fix_versions"]) or "no release yet"
            yield f"{package['name']} {package['version']}: {hole['id']}; mended in {mended}"


def _ask(requirements: str) -> list[dict[str, Any]] | None:
    """What pip-audit tells of each package; None where it could tell nothing."""
    program = Path(sys.executable).with_name("pip-audit")
    options = [
        "--disable-pip",
        "--require-hashes",
        "--progress-spinner=off",
        "--format=json",
        f"--timeout={_REQUEST_SECONDS}",
    ]
    try:
        done = subprocess.run(  # noqa: S603 - our own tool
            [program, *options, "-r", requirements],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    try:
        return list(json.loads(done.stdout)["dependencies"])
    except json.JSONDecodeError:
        print("\n".join(done.stderr.splitlines()[-1:]))
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
