"""What a running installation keeps in `var/` for its processes: secret key, Redis address.

The settings import this module, so it cannot use Django.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import MutableMapping
from pathlib import Path

SECRET_KEY_FILE = "secret-key"  # noqa: S105 - the file's name
REDIS_URL_FILE = "redis-url"
ADDRESS_FILE = "address"  # where the site is while it runs
ADMIN_PASSWORD_FILE = "admin-password"  # noqa: S105 - the file's name
CLI_TOKEN_FILE = "cli-token"  # noqa: S105 - the file's name


def embedded_secret_key(var: Path) -> str:
    """The installation's own secret key, made on first use. Only its owner can read it."""
    path = var / SECRET_KEY_FILE
    if not path.exists():
        write_private(path, secrets.token_urlsafe(64))
    return path.read_text().strip()


def lend_secret_key(environment: MutableMapping[str, str], var: Path) -> None:
    """For a command beside `make run`: use the key of that installation if none is given.

    Servers do not get it: they must be given a key of their own.
    """
    with contextlib.suppress(OSError):
        if not environment.get("SECRET_KEY"):
            environment["SECRET_KEY"] = (var / SECRET_KEY_FILE).read_text().strip()


def embedded_redis_url(var: Path) -> str:
    """The address of the supervised Redis. Empty if none is running."""
    path = var / REDIS_URL_FILE
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def write_private(path: Path, text: str) -> None:
    """Replace the whole file in one step, with mode 0600 from the first byte."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
    os.replace(temporary, path)
