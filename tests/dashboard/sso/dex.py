"""A real provider: Dex, which `make control-plane DEX=1` builds."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import requests

from tests.control_plane.build import DEX
from tests.dashboard.conftest import free_port
from tests.dashboard.sso.provider import CLIENT, SECRET
from tests.needed import built


@contextmanager
def running_dex(*callbacks: str, screen: bool = False) -> Iterator[str]:
    """Its issuer. Whoever signs on is Kilgore Trout, in the group authors."""
    address = f"127.0.0.1:{free_port()}"
    issuer = f"http://{address}/dex"
    command = [str(built(DEX) / "dex"), "-listen", address, "-issuer", issuer]
    command += ["-client", CLIENT, "-secret", SECRET, f"-screen={str(screen).lower()}", *callbacks]
    process = subprocess.Popen(command)
    try:
        _wait_for(issuer, process)
        yield issuer
    finally:
        process.kill()
        process.wait()


def _wait_for(issuer: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        assert process.poll() is None, "Dex has ended"
        try:
            if requests.get(f"{issuer}/.well-known/openid-configuration", timeout=5).ok:
                return
        except requests.ConnectionError:
            time.sleep(0.05)
    raise AssertionError("Dex did not start")
