"""The servers that the user has signed in to: one file, readable by its owner only."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dashboard.cli.problems import Problem, usage


@dataclass(frozen=True, slots=True)
class Context:
    """One server with the key for it."""

    server: str
    token: str = ""
    user: str = ""
    ca_cert: str = ""
    insecure: bool = False


@dataclass(slots=True)
class Contexts:
    current: str = ""
    known: dict[str, Context] = field(default_factory=dict)

    def named(self, name: str) -> Context:
        if name not in self.known:
            if self.known:
                there = f"there are {', '.join(sorted(self.known))}"
            else:
                there = "there is none yet; make one with vcctl login"
            raise usage(f"There is no context {name}: {there}.")
        return self.known[name]


def contexts_file() -> Path:
    """VCCTL_CONFIG, or the usual place for settings of the user."""
    named = os.environ.get("VCCTL_CONFIG", "")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "fumarole" / "contexts.json"


def read_contexts() -> Contexts:
    path = contexts_file()
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        return Contexts()
    except (OSError, ValueError) as error:
        raise Problem(
            f"The contexts file {path} cannot be read ({error}). Fix or remove it, or name another "
            "one in VCCTL_CONFIG."
        ) from None
    try:
        return Contexts(
            str(content.get("current", "")),
            {name: Context(**entry) for name, entry in content.get("contexts", {}).items()},
        )
    except (TypeError, AttributeError):
        raise Problem(
            f"The contexts file {path} is not one of vcctl's. Remove it and sign in again with "
            "vcctl login."
        ) from None


def write_contexts(contexts: Contexts) -> None:
    """Replaced at once, mode 0600 from the first byte: it holds tokens."""
    content: dict[str, Any] = {
        "current": contexts.current,
        "contexts": {name: asdict(one) for name, one in contexts.known.items()},
    }
    path = contexts_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = path.with_name(f"{path.name}.{os.getpid()}.new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(content, file, indent=2)
            file.write("\n")
        os.replace(new, path)
    except OSError as error:
        raise Problem(
            f"The contexts file {path} cannot be written ({error.strerror}). Name another one in "
            "VCCTL_CONFIG."
        ) from None
