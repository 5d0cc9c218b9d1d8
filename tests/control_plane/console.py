"""The real console beside a control plane: served over TLS, and asked by the API server."""

from __future__ import annotations

import os
import ssl
import sys
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection

from tests.control_plane.certificates import Authority
from tests.control_plane.plane import ControlPlane
from tests.control_plane.process import Process
from tests.running import BASE, random_port


def database_of_tests() -> str:
    """The address of the database that this test uses."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    server = urlsplit(os.environ["DATABASE_URL"])
    return server._replace(path=f"/{name}").geturl()


class TlsConsole:
    """uvicorn on the database at that address. It keeps its own when it is started again."""

    def __init__(
        self, plane: ControlPlane, database: str, folder: Path, **environment: str
    ) -> None:
        self._folder = folder
        self._authority = Authority(folder / "certificates")
        self._port = random_port()
        self._certificate, self._key = self._authority.issue_server("console", "127.0.0.1")
        self._process: Process | None = None
        self._environment = {
            **os.environ,
            "DATABASE_URL": database,
            "REDIS_URL": "redis://127.0.0.1:1/0",  # webhooks need none
            "SECRET_KEY": settings.SECRET_KEY,
            "ALLOWED_HOSTS": "127.0.0.1",
            "SCHEDULER_CLUSTER": "kubernetes",
            "KUBECONFIG": str(plane.kubeconfig),
            **environment,
        }

    @property
    def address(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def authority(self) -> Path:
        """What the API server must trust."""
        return self._authority.certificate

    def start(self) -> None:
        command = [
            sys.executable,
            *("-m", "uvicorn", "dashboard.asgi:application", "--port", str(self._port)),
            *("--ssl-certfile", str(self._certificate), "--ssl-keyfile", str(self._key)),
            *("--app-dir", str(BASE), "--timeout-graceful-shutdown", "1"),
        ]
        log = self._folder / "console.log"
        self._process = Process("the console", command, log, self._environment)
        self._process.wait_until(self._answers)

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
        self._process = None

    def _answers(self) -> bool:
        context = ssl.create_default_context(cafile=str(self.authority))
        try:
            with urllib.request.urlopen(
                f"{self.address}/healthz", timeout=1, context=context
            ) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False
