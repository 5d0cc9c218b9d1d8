"""The examples of docs/api.md, run in their order against a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard.api.conftest import Caller
from tests.needed import debian_program

PAGE = Path(__file__).parents[3] / "docs" / "api.md"


def examples() -> list[tuple[str, str]]:
    return re.findall(r"```(bash|python)\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.django_db(transaction=True)
def test_every_example_does_what_it_says(live_server: Any, tmp_path: Path):
    debian_program("curl", "curl")
    token = Caller("boss", superuser=True).token
    environment = {
        **os.environ,
        "FUMAROLE_URL": live_server.url,
        "FUMAROLE_TOKEN": token,
        "NO_PROXY": "*",
        "no_proxy": "*",
    }
    found = examples()
    assert len(found) >= 8

    for language, text in found:
        command = (
            ["bash", "-euo", "pipefail", "-c", text]
            if language == "bash"
            else [sys.executable, "-c", text]
        )
        done = subprocess.run(
            command,
            check=False,
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
