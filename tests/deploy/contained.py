"""Images and processes in them, on a machine that has neither an engine nor a registry.

buildah makes the image. The base is a Debian of debootstrap under the name that the Dockerfile asks
for, so its Python is Debian's. A process runs in the image as compose.yaml wants it: as nobody,
without rights to gain, on a file system that cannot be written but for /tmp and /var/lib/fumarole,
with process numbers of its own. The network is the machine's.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOBODY = 10001
DATABASE_SOCKET = ".s.PGSQL.5432"
_DEBIAN = ("buildah", "debootstrap", "unshare", "setpriv", "chroot")
_INCLUDE = "python3,python3-venv,ca-certificates"
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

# $1: the file system of the image; $2: what becomes /var/lib/fumarole; $3: a folder of sockets
_ENTER = f"""
set -e
root=$1 var=$2 sockets=$3; shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o size=256m,mode=1777 tmpfs "$root/tmp"
mount --bind "$var" "$root/var/lib/fumarole"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir "$root/tmp/postgres"
touch "$root/tmp/postgres/{DATABASE_SOCKET}"
mount --bind "$sockets/{DATABASE_SOCKET}" "$root/tmp/postgres/{DATABASE_SOCKET}"
exec chroot "$root" setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups --no-new-privs \\
    --bounding-set=-all --inh-caps=-all -- env --chdir=/opt/fumarole "$@"
"""


def missing() -> str:
    """What this machine lacks for it, as a sentence; empty if it has all."""
    if os.geteuid() != 0:
        return "only root can mount the file system of an image"
    without = [name for name in _DEBIAN if shutil.which(name) is None]
    if without:
        return f"no {', '.join(without)}: install the packages “buildah” and “debootstrap”"
    return ""


class Images:
    """A storage of images in a folder, which is removed with them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def make_base(self, name: str) -> None:
        """A Debian with Python, as the image of that name."""
        root = self._folder / "debian"
        _run("debootstrap", "--variant=minbase", f"--include={_INCLUDE}", "stable", str(root))
        (root / "usr/bin/python").symlink_to("python3")
        self._trust_what_this_machine_trusts(root)
        container = self._buildah("from", "scratch")
        self._buildah("add", "--quiet", container, str(root), "/")
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self._buildah("config", "--env", path, container)
        self._buildah("commit", "--quiet", "--rm", container, f"localhost/{name}")
        shutil.rmtree(root)

    def _trust_what_this_machine_trusts(self, root: Path) -> None:
        """A package index may be reached through a proxy that looks into everything."""
        if _CERTIFICATES.exists():
            shutil.copyfile(_CERTIFICATES, root / _CERTIFICATES.relative_to("/"))
        text = f"[global]\ncert = {_CERTIFICATES}\n"
        (root / "etc/pip.conf").write_text(text)

    def build(self, dockerfile: Path, folder: Path, name: str, extras: str = "") -> None:
        options = ["--isolation=chroot", "--pull-never", "--quiet", f"--file={dockerfile}"]
        options.append(f"--build-arg=EXTRAS={extras}")
        self._buildah("bud", *options, f"--tag={name}", str(folder))

    def settings_of(self, name: str) -> dict[str, Any]:
        told = json.loads(self._buildah("inspect", "--type=image", f"localhost/{name}"))
        found: dict[str, Any] = told["OCIv1"]["config"]
        return found

    @contextmanager
    def mounted(self, name: str) -> Iterator[Path]:
        container = self._buildah("from", "--pull-never", f"localhost/{name}")
        try:
            yield Path(self._buildah("mount", container))
        finally:
            self._buildah("umount", container)
            self._buildah("rm", container)

    def remove(self) -> None:
        self._buildah("rmi", "--all", "--force")

    def _buildah(self, *words: str) -> str:
        place = (f"--root={self._folder}/images", f"--runroot={self._folder}/running")
        return _run("buildah", *place, *words)


@dataclass(frozen=True, slots=True)
class Contained:
    """An image that is ready to run: its file system, and what its processes share."""

    root: Path
    var: Path
    sockets: Path
    environment: dict[str, str]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self._words(command), text=True, capture_output=True, check=False)

    def start(self, command: list[str], log: Path) -> Started:
        with log.open("wb") as file:
            return Started(subprocess.Popen(self._words(command), stdout=file, stderr=file))

    def _words(self, command: tuple[str, ...] | list[str]) -> list[str]:
        given = [f"{name}={value}" for name, value in self.environment.items()]
        enter = ("sh", "-c", _ENTER, "enter", str(self.root), str(self.var), str(self.sockets))
        apart = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
        return [*apart, *enter, "--ignore-environment", *given, *command]


@dataclass(frozen=True, slots=True)
class Started:
    around: subprocess.Popen[bytes]

    def status(self) -> dict[str, str]:
        """What the kernel says of the process in the image."""
        lines = Path(f"/proc/{self._inside()}/status").read_text().splitlines()
        return dict(line.split(":\t", 1) for line in lines if ":\t" in line)

    def stop(self, seconds: float) -> int:
        """Ask it to end, as an engine does. Its exit code; -9 if it had to be killed."""
        if self.around.poll() is None:
            os.kill(self._inside(), signal.SIGTERM)
        try:
            return self.around.wait(seconds)
        except subprocess.TimeoutExpired:
            self.around.kill()
            return self.around.wait()

    def _inside(self) -> int:
        number = self.around.pid
        return int(Path(f"/proc/{number}/task/{number}/children").read_text().split()[0])


def _run(*words: str) -> str:
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout.strip()
