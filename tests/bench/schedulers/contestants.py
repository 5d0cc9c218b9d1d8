"""The schedulers: how each is started, what it needs beside it, and how its gangs are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import yaml

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.resources import PODGROUPS, Resource
from tests import postgres
from tests.control_plane import objects, schedulers
from tests.control_plane.fumarole import Fumarole
from tests.control_plane.placed import GROUP
from tests.control_plane.plane import ControlPlane

_FAST = ("--kube-api-qps=5000", "--kube-api-burst=5000")
"""The usual limit of Volcano's controllers is 50 requests a second, that of kube-scheduler too."""
_NATIVE_GROUPS = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", namespaced=True)

Pids = dict[str, int]
Running = AbstractContextManager[Pids]
"""The processes that belong to the scheduler, by name. With their children."""


@dataclass(frozen=True, slots=True)
class Contestant:
    name: str
    scheduler_name: str
    start: Callable[[ControlPlane, Path], Running]
    make_gang: Callable[[Client, str, int], None]
    mark: Callable[[dict[str, Any], str], dict[str, Any]]
    api_server_options: tuple[str, ...] = ()
    has_gangs: bool = True


# Fumarole


@contextmanager
def _fumarole(plane: ControlPlane, folder: Path) -> Iterator[Pids]:
    with ExitStack() as stack:
        database = stack.enter_context(postgres.another_cluster())
        running = stack.enter_context(
            Fumarole(
                folder / "fumarole",
                kubeconfig=plane.kubeconfig,
                database=database.replace("postgresql://", "postgres://"),
            )
        )
        yield {
            **{name: running.pid_of(name) for name in running.names},
            "redis": running.pid_of_redis,
            "postgresql": _pid_of_postgres(database),
        }


def _pid_of_postgres(database: str) -> int:
    with psycopg.connect(database) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    return int((Path(row[0]) / "postmaster.pid").read_text().split()[0])


# Volcano


@contextmanager
def _volcano(plane: ControlPlane, folder: Path) -> Iterator[Pids]:
    """Its controllers, too: they make the podgroups without which no single pod is placed."""
    with (
        plane.volcano_controllers(*_FAST) as controllers,
        schedulers.find().volcano(plane, *_FAST) as scheduler,
    ):
        yield {"vc-scheduler": scheduler.pid, "vc-controller-manager": controllers.pid}


def _make_podgroup(client: Client, gang: str, size: int) -> None:
    client.create(PODGROUPS, objects.podgroup(gang, min_member=size), "default")


def _named_by_annotation(pod: dict[str, Any], gang: str) -> dict[str, Any]:
    pod["metadata"]["annotations"] = {GROUP: gang}
    return pod


# kube-scheduler


@contextmanager
def _kube_scheduler(plane: ControlPlane, folder: Path) -> Iterator[Pids]:
    option = _configuration(plane, folder)
    with schedulers.find().kube_scheduler(plane, option) as process:
        yield {"kube-scheduler": process.pid}


@contextmanager
def _kube_scheduler_with_gangs(plane: ControlPlane, folder: Path) -> Iterator[Pids]:
    options = (
        _configuration(plane, folder),
        "--feature-gates=GenericWorkload=true,GangScheduling=true",
    )
    with schedulers.find().kube_scheduler(plane, *options) as process:
        yield {"kube-scheduler": process.pid}


def _configuration(plane: ControlPlane, folder: Path) -> str:
    connection = {"kubeconfig": str(plane.kubeconfig), "qps": 5000, "burst": 5000}
    written = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": connection,
        "leaderElection": {"leaderElect": False},
    }
    path = folder / "kube-scheduler.yaml"
    path.write_text(yaml.safe_dump(written))
    return f"--config={path}"


def _make_native_group(client: Client, gang: str, size: int) -> None:
    group = {
        "apiVersion": _NATIVE_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": gang},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
    }
    client.create(_NATIVE_GROUPS, group, "default")


def _named_natively(pod: dict[str, Any], gang: str) -> dict[str, Any]:
    pod["spec"]["schedulingGroup"] = {"podGroupName": gang}
    return pod


def _no_group(client: Client, gang: str, size: int) -> None:
    """Without gangs: the same pods, each for itself."""


def _unmarked(pod: dict[str, Any], gang: str) -> dict[str, Any]:
    return pod


CONTESTANTS = {
    contestant.name: contestant
    for contestant in (
        Contestant("fumarole", "fumarole", _fumarole, _make_podgroup, _named_by_annotation),
        Contestant("volcano", "volcano", _volcano, _make_podgroup, _named_by_annotation),
        Contestant(
            "kube-scheduler",
            "default-scheduler",
            _kube_scheduler,
            _no_group,
            _unmarked,
            has_gangs=False,
        ),
        Contestant(
            "kube-scheduler-gangs",
            "default-scheduler",
            _kube_scheduler_with_gangs,
            _make_native_group,
            _named_natively,
            api_server_options=(
                "--feature-gates=GenericWorkload=true",
                "--runtime-config=scheduling.k8s.io/v1alpha2=true",
            ),
        ),
    )
}
