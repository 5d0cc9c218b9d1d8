"""The real web server for browser tests and screenshots: uvicorn on the database and the Redis it
is given.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from tests.dashboard.conftest import free_port

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 180  # on a machine with other work to do


class ConsoleServer:
    """Keeps its address when it is stopped and started again."""

    def __init__(self, database_url: str, redis_url: str, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "web.log"
        self.environment = {
            **os.environ,
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "SECRET_KEY": os.environ.get("SECRET_KEY", "x" * 60),
            "NOTICE_ALLOWED_NETWORKS": "127.0.0.1",
            "ALLOWED_HOSTS": "127.0.0.1",
            "SECURE_COOKIES": "0",
            "SECURE_HSTS_SECONDS": "0",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "dashboard.asgi:application",
            "--port",
            str(self.port),
        ]
        command += [
            "--http",
            "dashboard.http.protocol:TimedProtocol",
            "--ws",
            "websockets-sansio",
            "--ws-per-message-deflate",
            "false",
            "--timeout-graceful-shutdown",
            "1",
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        patience = time.monotonic() + START_SECONDS
        while time.monotonic() < patience and self._process.poll() is None:
            if self._answers():
                return
            time.sleep(0.1)
        raise AssertionError(
            f"the web server of the tests did not start:\n{self.log.read_text()[-2000:]}"
        )

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None
