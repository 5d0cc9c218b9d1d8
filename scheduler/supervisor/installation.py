"""One installation: the folder with its data, and its address."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scheduler.supervisor.problems import StartError
from scheduler.supervisor.runtime import embedded_redis_url

BASE = Path(__file__).resolve().parent.parent.parent
HOST = "127.0.0.1"
DEFAULT_PORT = "8000"
_DEFAULTS = {"PYTHONWARNINGS": "ignore"}
_PROBE_BYTES = 1 << 20
_PORT_GRACE_SECONDS = 1.5  # after a supervisor was killed, its web process needs a moment to end


@dataclass(frozen=True, slots=True)
class Installation:
    var: Path
    port: int

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/"

    def environment(self) -> dict[str, str]:
        """For its processes: embedded settings, one folder, output at once, no Python warnings."""
        own = {
            "FUMAROLE_EMBEDDED": "1",
            "FUMAROLE_VAR": str(self.var),
            "PYTHONUNBUFFERED": "1",
        }
        return {**_DEFAULTS, **os.environ, **own}

    def redis_url(self) -> str:
        """Of the server that the environment names, or of the one that this run started."""
        return os.environ.get("REDIS_URL") or embedded_redis_url(self.var)


def installation_from(environment: Mapping[str, str]) -> Installation:
    return Installation(var_from(environment), _port(environment.get("PORT") or DEFAULT_PORT))


def var_from(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("FUMAROLE_VAR") or BASE / "var").absolute()


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise StartError(
            f"PORT={text} is not a port. Give a number from 1 to 65535, as in: make run PORT=8001",
        )
    return int(text)


def check_writable(var: Path) -> None:
    """Create the folder if it is missing, and write to it once. Raises `StartError`.

    Permissions alone do not tell: the disk may be full or read-only.
    """
    try:
        var.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=var) as probe:
            probe.write(b"\0" * _PROBE_BYTES)
    except OSError as error:
        raise StartError(
            f"The folder {var} cannot be written ({error.strerror}). "
            "Make it writable for this user, or name another one: FUMAROLE_VAR=/path/to/folder",
        ) from error
    _check_contents_are_ours(var)


def _check_contents_are_ours(var: Path) -> None:
    """Any file there may belong to another user, for example after `sudo make run`."""
    for path in sorted(var.rglob("*")):
        if not _is_ours(path):
            raise StartError(
                f"{path} cannot be written: it belongs to {_owner(path)}, "
                "perhaps because Fumarole was once run by that user. "
                f"Give it to this one (chown -R $(id -u) {var}), "
                "or name another folder: FUMAROLE_VAR=/path/to/folder",
            )


def _is_ours(path: Path) -> bool:
    needed = os.R_OK | os.W_OK
    if path.is_dir():
        needed |= os.X_OK
    return os.access(path, needed, effective_ids=True)


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except (KeyError, OSError):
        return "another user"


def check_port_free(port: int) -> None:
    deadline = time.monotonic() + _PORT_GRACE_SECONDS
    while not _can_listen(port):
        if time.monotonic() > deadline:
            raise StartError(
                f"Port {port} is in use by another program. Stop that program, "
                f"or choose another port: make run PORT={_free_port_after(port)}",
            )
        time.sleep(0.1)


def _can_listen(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except PermissionError as error:
            raise StartError(
                f"Port {port} is for administrators only. "
                f"Choose one from 1024: make run PORT={DEFAULT_PORT}",
            ) from error
        except OSError:
            return False
    return True


def _free_port_after(port: int) -> int:
    for other in range(port + 1, min(port + 50, 65536)):
        if _can_listen(other):
            return other
    return port + 1
