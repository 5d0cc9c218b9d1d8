"""Other schedulers to compare with: kube-scheduler and Volcano's own.

Few need them, so they are no part of the control plane, and CI does not build them:
`make control-plane SCHEDULERS=1` does. They are kept in a folder of their own, so the control plane
stays as it is.

kube-scheduler is made of the same sources as the API server. Volcano's scheduler is made of what
its own go.mod names, so it is what its users run.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.control_plane.builder import Kept, answer_of_go, module_folder, run_go
from tests.control_plane.process import Process
from tests.control_plane.programs import BUILD_OPTIONS, MODULE, VOLCANO, copy_sources

if TYPE_CHECKING:  # make builds them without the packages that it needs
    from tests.control_plane.plane import ControlPlane

KUBE_SCHEDULER = "kube-scheduler"
VC_SCHEDULER = "vc-scheduler"
_KUBE_PACKAGE = "k8s.io/kubernetes/cmd/kube-scheduler"
_APIS = "volcano.sh/apis"


@dataclass(frozen=True, slots=True)
class Schedulers:
    """A folder with both programs."""

    folder: Path

    @contextmanager
    def volcano(self, plane: ControlPlane, *options: str) -> Iterator[Process]:
        """Volcano's scheduler with its usual settings, beside that control plane."""
        yield from self._beside(
            VC_SCHEDULER,
            plane,
            f"--kubeconfig={plane.kubeconfig}",
            "--leader-elect=false",
            "--enable-healthz=false",
            "--enable-metrics=false",
            *options,
        )

    @contextmanager
    def kube_scheduler(self, plane: ControlPlane, *options: str) -> Iterator[Process]:
        yield from self._beside(
            KUBE_SCHEDULER,
            plane,
            f"--kubeconfig={plane.kubeconfig}",
            f"--authentication-kubeconfig={plane.kubeconfig}",
            f"--authorization-kubeconfig={plane.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            *options,
        )

    def _beside(self, program: str, plane: ControlPlane, *options: str) -> Iterator[Process]:
        command = [str(self.folder / program), *options]
        process = Process(program, command, plane.folder / f"{program}.log")
        try:
            yield process
        finally:
            process.stop()


def find() -> Schedulers:
    """What was built before. Raises NoControlPlane, with what to do."""
    return Schedulers(KEPT.find())


def _build_into(folder: Path) -> None:
    target = str(folder / KUBE_SCHEDULER)
    run_go("build", "-v", "-o", target, *BUILD_OPTIONS, _KUBE_PACKAGE, folder=MODULE)
    _build_volcano(folder)


def _build_volcano(folder: Path) -> None:
    source = folder / "unfinished"
    shutil.rmtree(source, ignore_errors=True)
    copy_sources(module_folder(VOLCANO, named_in=MODULE), source)
    _name_published_apis(source)
    target = str(folder / VC_SCHEDULER)
    run_go("build", "-v", "-o", target, *BUILD_OPTIONS, "./cmd/scheduler", folder=source)
    shutil.rmtree(source)


def _name_published_apis(source: Path) -> None:
    """Its go.mod takes the package `apis` from a folder that is not part of the module."""
    module_file = source / "go.mod"
    lines = []
    for line in module_file.read_text().splitlines():
        if line.strip().startswith(f"{_APIS} =>"):
            line = f"\t{_APIS} => {_APIS} {_version_of_apis()}"
        lines.append(line)
    module_file.write_text("\n".join(lines) + "\n")
    sums = [
        line
        for line in (MODULE / "go.sum").read_text().splitlines()
        if line.startswith(f"{_APIS} ")
    ]
    with (source / "go.sum").open("a") as file:
        file.write("\n".join(sums) + "\n")


def _version_of_apis() -> str:
    """The one that the control plane uses, which may stand in the place of another."""
    form = "{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}"
    return answer_of_go("list", "-m", "-f", form, _APIS, folder=MODULE)


KEPT = Kept("schedulers", MODULE, "make control-plane SCHEDULERS=1", _build_into, BUILD_OPTIONS)
