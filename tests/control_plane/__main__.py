"""Start a control plane by hand: python -m tests.control_plane [--kwok] [--controllers]
[--volcano].
"""

from __future__ import annotations

import argparse
import signal
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.control_plane import programs
from tests.control_plane.plane import ControlPlane

_BESIDE = {
    "kwok": ControlPlane.kwok,
    "controllers": ControlPlane.controllers,
    "volcano": ControlPlane.volcano_controllers,
}


def main() -> None:
    chosen = _arguments()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fumarole-plane-"))
        plane = stack.enter_context(ControlPlane(programs.build(), Path(folder)))
        for name, start in _BESIDE.items():
            if getattr(chosen, name):
                stack.enter_context(start(plane))
        print(f"export KUBECONFIG={plane.kubeconfig}")
        print(f"export PATH={plane.programs.folder}:$PATH")
        print("Ctrl-C stops it.", flush=True)
        signal.pause()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.control_plane", description=__doc__)
    parser.add_argument("--kwok", action="store_true", help="KWOK plays the kubelets")
    parser.add_argument("--controllers", action="store_true", help="Kubernetes' controllers")
    parser.add_argument("--volcano", action="store_true", help="Volcano's controller manager")
    return parser.parse_args()


if __name__ == "__main__":
    # SIGINT too: a shell lets a command in the background ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        main()
