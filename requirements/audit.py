"""Asks pip-audit for known vulnerabilities in the packages that a file pins.

A vulnerability is a failure. If the data cannot be reached, that is only said.

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
    """The exit code: 1 if a package has a known vulnerability, otherwise 0."""
    packages = _ask(requirements)
    if packages is None:
        print("pip-audit did not reach its data: no package was looked up.")
        return 0
    found = list(known_vulnerabilities(packages))
    unknown = sum("vulns" not in package for package in packages)
    for line in found:
        print(line)
    looked_up = len(packages) - unknown
    print(f"pip-audit: {looked_up} packages looked up, {len(found)} known vulnerabilities.")
    if unknown:
        print(f"pip-audit did not reach its data for {unknown} packages: those were not looked up.")
    if found:
        return 1
    return 0


def known_vulnerabilities(packages: Iterable[dict[str, Any]]) -> Iterable[str]:
    for package in packages:
        for vulnerability in package.get("vulns", ()):
            fixed = ", ".join(vulnerability["fix_versions"]) or "no release yet"
            yield f"{package['name']} {package['version']}: {vulnerability['id']}; fixed in {fixed}"


def _ask(requirements: str) -> list[dict[str, Any]] | None:
    """What pip-audit knows of each package. None if it could not find out."""
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
