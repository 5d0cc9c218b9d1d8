"""A real Redis for the websocket tests, on a port of its own, that a test may stop and
start again.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from channels.layers import channel_layers

from scheduler.supervisor.redis_server import answers, find_binary


class RedisServer:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            find_binary(),
            "--port",
            str(self.port),
            "--save",
            "",
            "--dir",
            str(self.folder),
            "--bind",
            "127.0.0.1",
        ]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        for _ in range(1200):
            if answers(self.url):
                return
            time.sleep(0.05)
        raise AssertionError("the Redis of the tests did not start")

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    @contextmanager
    def hung(self) -> Iterator[None]:
        """It runs, takes connections, and says nothing."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def redis_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def redis_server(redis_process: RedisServer, settings: Any) -> RedisServer:
    """The running server, with this test's channel layer pointed at it."""
    settings.REDIS_URL = redis_process.url
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "dashboard.live.layer.NewsLayer",
            "CONFIG": {"hosts": [redis_process.url]},
        }
    }
    channel_layers.backends.clear()
    return redis_process
