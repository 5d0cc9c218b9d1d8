"""Which server a command speaks to, and with which token.

Options count first, then the environment, then contexts, then this machine's installation.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dashboard.cli.accounts.contexts import Context, read_contexts
from dashboard.cli.problems import ExitCode, Problem, usage

# what `make run` leaves under var/
ADDRESS_FILE = "address"
TOKEN_FILE = "cli-token"  # noqa: S105
_NO_SERVER = (
    "No server is known. Start one here with make run, name one with --server or VCCTL_SERVER, or "
    "sign in with vcctl login."
)


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """What the user said on the command line."""

    server: str = ""
    context: str = ""
    token_file: str = ""
    ca_cert: str = ""
    insecure: bool = False
    timeout: float = 30.0


@dataclass(frozen=True, slots=True)
class Target:
    server: str  # without a slash at its end
    token: str
    ca_cert: str
    insecure: bool
    timeout: float
    origin: str  # for words: "context lab", "this machine", …


def find_target(options: ConnectionOptions) -> Target:
    """Raises `Problem` with the code for "no connection" where no server is known."""
    context, origin = _chosen_context(options)
    if not context.server:
        raise Problem(_NO_SERVER, ExitCode.NO_CONNECTION)
    server = _full_address(context.server)
    token = _token_of_user(options) or context.token or _local_token(server)
    insecure = options.insecure or context.insecure
    return Target(
        server,
        token,
        options.ca_cert or context.ca_cert or os.environ.get("VCCTL_CA_CERT", ""),
        insecure,
        options.timeout,
        origin,
    )


def _chosen_context(options: ConnectionOptions) -> tuple[Context, str]:
    """A server that is named goes before a context that is only current."""
    name = options.context or os.environ.get("VCCTL_CONTEXT", "")
    if options.server:
        return Context(options.server), "--server"
    if name:
        return read_contexts().named(name), f"context {name}"
    if os.environ.get("VCCTL_SERVER"):
        return Context(os.environ["VCCTL_SERVER"]), "VCCTL_SERVER"
    contexts = read_contexts()
    if contexts.current:
        return contexts.named(contexts.current), f"context {contexts.current}"
    return Context(_first_text(ADDRESS_FILE)), "this machine"


def _full_address(server: str) -> str:
    if "://" in server:
        address = server
    else:
        address = f"http://{server}"
    if not address.startswith(("http://", "https://")):
        raise usage(
            f"The server {server} is not an address. Write it as https://fumarole.example.com or "
            "http://127.0.0.1:8000."
        )
    return address.rstrip("/")


def _token_of_user(options: ConnectionOptions) -> str:
    if options.token_file:
        return _token_in(options.token_file)
    if os.environ.get("VCCTL_TOKEN"):
        return os.environ["VCCTL_TOKEN"].strip()
    if os.environ.get("VCCTL_TOKEN_FILE"):
        return _token_in(os.environ["VCCTL_TOKEN_FILE"])
    return ""


def _token_in(name: str) -> str:
    try:
        return Path(name).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise usage(
            f"The token file {name} cannot be read: "
            f"{getattr(error, 'strerror', None) or 'it is no text'}."
        ) from None


def _local_token(server: str) -> str:
    """This machine's own key goes to this machine's own server and to nobody else."""
    for folder in _installation_dirs():
        if _read_text(folder / ADDRESS_FILE).rstrip("/") == server:
            return _read_text(folder / TOKEN_FILE)
    return ""


def _installation_dirs() -> Iterable[Path]:
    """FUMAROLE_VAR alone where it is set.

    Else the checkout that this program belongs to, and the one we stand in.
    """
    named = os.environ.get("FUMAROLE_VAR", "")
    if named:
        return (Path(named),)
    return (Path(__file__).resolve().parents[2] / "var", Path.cwd() / "var")


def _first_text(name: str) -> str:
    return next(
        (text for folder in _installation_dirs() if (text := _read_text(folder / name))), ""
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
