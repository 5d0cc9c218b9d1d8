"""One installation: the folder with its data, and the address it is reached at."""

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
_PORT_GRACE_SECONDS = 1.5  # the web process of a supervisor that was killed needs a moment to go


@dataclass(frozen=True, slots=True)
class Installation:
    var: Path
    port: int

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/"

    def environment(self) -> dict[str, str]:
        """What its processes get: the embedded settings, the same folder wherever they run, output at once, no warnings of Python."""
        own = {"FUMAROLE_EMBEDDED": "1", "FUMAROLE_VAR": str(self.var), "PYTHONUNBUFFERED": "1"}
        return {**_DEFAULTS, **os.environ, **own}

    def redis_url(self) -> str:
        """Of the server in use: the one that the environment names, or the one of this run."""
        return os.environ.get("REDIS_URL") or embedded_redis_url(self.var)


def installation_from(environment: Mapping[str, str]) -> Installation:
    return Installation(var_from(environment), _port(environment.get("PORT") or DEFAULT_PORT))


def var_from(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("FUMAROLE_VAR") or BASE / "var").absolute()


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise StartError(
            f"PORT={text} is not a port. Give a number from 1 to 65535, as in: make run PORT=8001"
        )
    return int(text)


def check_writable(var: Path) -> None:
    """Make the folder where it is missing, and write to it once: permissions alone do not tell, on a full or a read-only disk for one."""
    try:
        var.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=var) as probe:
            probe.write(b"\0" * _PROBE_BYTES)
    except OSError as error:
        raise StartError(
            f"The folder {var} can not be written ({error.strerror}). "
            "Make it writable for this user, or name another one: FUMAROLE_VAR=/path/to/folder"
        ) from error
    _check_contents_are_ours(var)


def _check_contents_are_ours(var: Path) -> None:
    """What a run by another user left there, as after `sudo make run`, is in the way file by file."""
    for path in sorted(var.rglob("*")):
        needed = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
        if not os.access(path, needed, effective_ids=True):
            raise StartError(
                f"{path} can not be written: it belongs to {_owner(path)}, perhaps because Fumarole was once run by that user. "
                f"Give it to this one (chown -R $(id -u) {var}), or name another folder: FUMAROLE_VAR=/path/to/folder"
            )


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
                f"Port {port} is in use by another program. Stop that one, or choose another port: make run PORT={_port_nearby(port)}"
            )
        time.sleep(0.1)


def _can_listen(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except PermissionError as error:
            raise StartError(
                f"Port {port} is for administrators only. Choose one from 1024: make run PORT={DEFAULT_PORT}"
            ) from error
        except OSError:
            return False
    return True


def _port_nearby(port: int) -> int:
    return next(
        (other for other in range(port + 1, min(port + 50, 65536)) if _can_listen(other)), port + 1
    )
