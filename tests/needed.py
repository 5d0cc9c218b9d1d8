"""What a test needs of the machine. Without it the test is skipped, and fails in CI, which installs
everything (`.ci/run`).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from tests.control_plane.builder import Kept, NoControlPlane

_WITH_SERVERS = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"  # where Debian puts nginx


def do_without(missing: str) -> NoReturn:
    """`missing` is a sentence: what is not there, and how to get it."""
    if os.environ.get("CI"):
        pytest.fail(f"{missing}; in CI that is a failure", pytrace=False)
    pytest.skip(missing)


def debian_program(name: str, package: str) -> str:
    """The path of a program of a Debian package."""
    found = shutil.which(name, path=_WITH_SERVERS)
    if found is None:
        do_without(f"no {name} found: install the package “{package}”")
    return found


def built(kept: Kept) -> Path:
    """The folder of programs that `make control-plane` builds."""
    try:
        return kept.find()
    except NoControlPlane as reason:
        do_without(str(reason))
