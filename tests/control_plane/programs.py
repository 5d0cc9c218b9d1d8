"""The programs of the control plane, and the definitions that it is given."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.control_plane.builder import CONTROL_PLANE, Kept, module_folder, run_go

MODULE = Path(__file__).resolve().parent

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
    return Programs(KEPT.find())


def build() -> Programs:
    """Build what is missing, and say on the way what is being built."""
    return Programs(KEPT.build())


def _build_into(folder: Path) -> None:
    unfinished = folder / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    module_file = _module_with_own_volcano(unfinished)
    options = ("-v", f"-modfile={module_file}", "-o", f"{unfinished}/programs/", *BUILD_OPTIONS)
    run_go("build", *options, *PACKAGES.values(), folder=MODULE)
    for name, package in PACKAGES.items():
        (unfinished / "programs" / _name_that_go_gives(package)).replace(folder / name)
    for name, sources in _MANIFESTS.items():
        _copy_manifests(sources, folder / name)
    shutil.rmtree(unfinished)


def _module_with_own_volcano(folder: Path) -> Path:
    """Another go.mod, which takes Volcano from a copy in which the moved type has its new name."""
    source = folder / "volcano"
    copy_sources(module_folder(VOLCANO, named_in=MODULE), source)
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
        for manifest in (module_folder(module, named_in=MODULE) / folder).glob("*.yaml"):
            if manifest.name != "kustomization.yaml":
                shutil.copyfile(manifest, target / manifest.name)


KEPT = Kept(
    CONTROL_PLANE,
    MODULE,
    "make control-plane",
    _build_into,
    (*BUILD_OPTIONS, *PACKAGES.values(), *_MOVED_TYPE),
)
