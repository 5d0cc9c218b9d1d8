"""The kinds of faults. Each is a function that begins one, waits, and puts it right again."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.clusters.kubernetes.client import Client
from tests.control_plane.fumarole import (
    SPARE_WORKER,
    WATCHER,
    WORKER,
    Fumarole,
    scheduler_name,
)
from tests.control_plane.plane import ControlPlane
from tests.processes.faults.load import Load
from tests.processes.faults.proxy import Proxy
from tests.running import descendants_of

USER = "fumarole-under-faults"
FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
LEVELS = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
_STORM = "storm-of-binds"
_CLOCK = Path(__file__).resolve().parent / "clock"


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that can fail."""

    plane: ControlPlane
    proxy: Proxy
    fumarole: Fumarole
    load: Load
    chance: random.Random


Fault = Callable[[Scene], None]


def _killed(name: str) -> Fault:
    def kill(scene: Scene) -> None:
        scene.fumarole.kill(name)
        time.sleep(scene.chance.uniform(0.0, 1.5))
        scene.fumarole.start(name)

    return kill


def _kill_api_server(scene: Scene) -> None:
    scene.plane.kill_api_server()
    time.sleep(scene.chance.uniform(0.0, 1.0))
    scene.plane.start_api_server()


def _freeze_api_server(scene: Scene) -> None:
    with scene.plane.frozen_api_server():
        time.sleep(scene.chance.uniform(1.0, 15.0))


def _freeze_worker(scene: Scene) -> None:
    """Longer than its claims last: whatever it wakes up with is old."""
    stopped = [scene.fumarole.pid_of(WORKER), *descendants_of(scene.fumarole.pid_of(WORKER))]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    scene.fumarole.start(SPARE_WORKER)
    time.sleep(scene.chance.uniform(31.0, 36.0))
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    time.sleep(2.0)
    scene.fumarole.kill(SPARE_WORKER)


def _slow_api_server(scene: Scene) -> None:
    with scene.proxy.slow(scene.chance.uniform(0.2, 1.5)):
        time.sleep(scene.chance.uniform(4.0, 10.0))


def _cut_connections(scene: Scene) -> None:
    for _ in range(5):
        scene.proxy.cut()
        time.sleep(scene.chance.uniform(0.1, 0.8))


def _storm(scene: Scene) -> None:
    """The API server's own answer to too many requests: 429 to each bind."""
    api = scene.plane.api
    api.post(LEVELS, _no_seats())
    api.post(FLOWS, _flow_of_binds())
    time.sleep(scene.chance.uniform(4.0, 10.0))
    api.delete(f"{FLOWS}/{_STORM}")
    api.delete(f"{LEVELS}/{_STORM}")


def _no_seats() -> dict[str, Any]:
    limited = {
        "nominalConcurrencyShares": 0,
        "lendablePercent": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Reject"},
    }
    return {"metadata": {"name": _STORM}, "spec": {"type": "Limited", "limited": limited}}


def _flow_of_binds() -> dict[str, Any]:
    rule = {
        "subjects": [{"kind": "User", "user": {"name": USER}}],
        "resourceRules": [
            {
                "verbs": ["create"],
                "apiGroups": [""],
                "resources": ["pods/binding"],
                "namespaces": ["*"],
            }
        ],
    }
    spec = {
        "matchingPrecedence": 5,
        "priorityLevelConfiguration": {"name": _STORM},
        "rules": [rule],
    }
    return {"metadata": {"name": _STORM}, "spec": spec}


def _delete_node(scene: Scene) -> None:
    """With the pods that run on it, and those that are just being bound to it."""
    name = scene.chance.choice(scene.load.node_names)
    scene.load.delete_node(name)
    time.sleep(scene.chance.uniform(1.0, 5.0))
    scene.load.make_node(name)


def _skewed(name: str, seconds: int) -> Fault:
    def skew(scene: Scene) -> None:
        scene.fumarole.kill(name)
        scene.fumarole.start(name, clock_environment(seconds))
        time.sleep(scene.chance.uniform(12.0, 18.0))
        scene.fumarole.kill(name)
        scene.fumarole.start(name)

    return skew


def clock_environment(seconds: int) -> dict[str, str]:
    """For a Python process whose time of day is wrong by so much."""
    return {"SKEW_SECONDS": str(seconds), "PYTHONPATH": str(_CLOCK)}


KINDS: Mapping[str, Fault] = {
    "kill -9 of a scheduler": lambda scene: _killed(scheduler_name(scene.chance.randint(1, 2)))(
        scene
    ),
    "kill -9 of the watcher": _killed(WATCHER),
    "kill -9 of the dispatcher": _killed(WORKER),
    "kill -9 of the API server": _kill_api_server,
    "API server frozen for 1 to 15 s": _freeze_api_server,
    "dispatcher frozen past its claims": _freeze_worker,
    "slow API server, 0.2 to 1.5 s more": _slow_api_server,
    "all connections cut, five times": _cut_connections,
    "storm of 429 to each bind": _storm,
    "node deleted with pods on it": _delete_node,
    "scheduler's clock 90 s ahead": _skewed(scheduler_name(1), 90),
    "scheduler's clock an hour behind": _skewed(scheduler_name(2), -3600),
    "watcher's clock 90 s behind": _skewed(WATCHER, -90),
    "watcher's clock an hour ahead": _skewed(WATCHER, 3600),
    "dispatcher's clock an hour ahead": _skewed(WORKER, 3600),
    "dispatcher's clock 90 s behind": _skewed(WORKER, -90),
}


def allow_everything(plane: ControlPlane) -> None:
    """Our user is no administrator: an administrator meets no 429."""
    binding = {
        "metadata": {"name": USER},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
    }
    plane.api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)


def client_of(kubeconfig: Path) -> Client:
    from scheduler.clusters.kubernetes.credentials import from_kubeconfig

    return Client(from_kubeconfig(kubeconfig))
