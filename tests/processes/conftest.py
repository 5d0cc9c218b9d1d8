"""Servers that an installation can be pointed at."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.supervisor.redis_server import find_binary
from tests.running import random_port


@pytest.fixture
def external_redis(tmp_path: Path) -> Iterator[str]:
    port = random_port()
    command = [
        find_binary(),
        "--port",
        str(port),
        "--requirepass",
        "secret",
        "--dir",
        str(tmp_path),
        "--save",
        "",
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    yield f"redis://:secret@127.0.0.1:{port}/3"
    server.terminate()
    server.wait()
