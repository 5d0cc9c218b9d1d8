"""What tests start besides the control plane, and `make control-plane`, which builds all of it:
python -m tests.control_plane.build [NAME …].
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from tests.control_plane import programs, schedulers
from tests.control_plane.builder import Kept, NoControlPlane, go_program, lock

_HERE = Path(__file__).resolve().parent
_CAPABILITIES = "helm.sh/helm/v3/pkg/chartutil"

HELM = go_program(
    "helm",
    _HERE / "helm",
    "helm.sh/helm/v3/cmd/helm",
    "make control-plane HELM=1",
    options=(
        "-trimpath",
        "-gcflags=all=-dwarf=false",
        # Without these it takes every cluster for Kubernetes 1.20 when it renders a chart.
        f"-ldflags=-s -w -X {_CAPABILITIES}.k8sVersionMajor=1"
        f" -X {_CAPABILITIES}.k8sVersionMinor=36",
    ),
)
"""Made of the same version of Kubernetes' libraries as the API server: Go has compiled most of it
already.
"""

DEX = go_program("dex", _HERE / "dex", ".", "make control-plane DEX=1")
"""A provider of OpenID Connect, for the tests of single sign-on."""

_ALL = {kept.name: kept for kept in (programs.KEPT, schedulers.KEPT, HELM, DEX)}


def build(chosen: list[Kept]) -> None:
    """One after the other. All are locked first, so a test that needs the last one waits for it."""
    with ExitStack() as locks:
        for kept in chosen:
            locks.enter_context(lock(kept.folder()))
        for kept in chosen:
            kept.build_locked()


if __name__ == "__main__":
    try:
        build([_ALL[name] for name in sys.argv[1:]])
    except NoControlPlane as reason:
        sys.exit(str(reason))
