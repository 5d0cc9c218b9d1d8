"""A real API server that asks us over TLS, kubectl in front of it, and what kubectl is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest
import yaml
from django.core.management import call_command

from scheduler.models import Node, Queue
from tests.control_plane import objects
from tests.control_plane.api import ApiError
from tests.control_plane.console import TlsConsole
from tests.control_plane.objects import QUEUES, wait_until
from tests.control_plane.plane import ControlPlane, ProgramFailed
from tests.mirrored import kubernetes_mode

_HOOKS = "/apis/admissionregistration.k8s.io/v1"
CONFIGURATIONS = (
    f"{_HOOKS}/validatingwebhookconfigurations/fumarole-validate",
    f"{_HOOKS}/mutatingwebhookconfigurations/fumarole-mutate",
)
ConsoleOf = Callable[[ControlPlane], TlsConsole]


@contextmanager
def asked(plane: ControlPlane, console: TlsConsole, *options: str) -> Iterator[None]:
    """The API server asks us, until the end."""
    given = ("--webhooks", console.address, "--ca", str(console.authority), *options)
    with kubernetes_mode():
        call_command(
            "kubernetes",
            "install",
            "--kubeconfig",
            str(plane.kubeconfig),
            *given,
            stdout=StringIO(),
        )
    wait_until(lambda: _is_asked(plane), "the API server to ask")
    try:
        yield
    finally:
        for path in CONFIGURATIONS:
            plane.api.delete(path)
        wait_until(lambda: not _is_asked(plane), "the API server to ask nobody")


def _is_asked(plane: ControlPlane) -> bool:
    """Whether we, or the lack of us, keep a queue out that nothing else is wrong with."""
    trial = objects.queue("trial", parent="trial")
    try:
        plane.api.post(f"{QUEUES}?dryRun=All", trial)
    except ApiError as refusal:
        return "fumarole.io" in str(refusal)
    return False


@contextmanager
def running(console: TlsConsole) -> Iterator[None]:
    console.start()
    try:
        yield
    finally:
        console.stop()


def create(plane: ControlPlane, *manifests: dict[str, Any]) -> str:
    return plane.kubectl("create", "-f", "-", given=yaml.safe_dump_all(manifests))


def refusal(run: Callable[..., str], *given: Any) -> str:
    """What kubectl prints after “denied the request”, with the kind of answer before it."""
    with pytest.raises(ProgramFailed) as failed:
        run(*given)
    told = " ".join(str(failed.value).split())
    kind = told.partition("Error from server (")[2].partition(")")[0]
    return f"{kind}: {told.partition('denied the request: ')[2]}"


def wait_for_queue(name: str, **fields: Any) -> None:
    wait_until(lambda: Queue.objects.filter(name=name, **fields).exists(), f"{name} in the mirror")


def add_node(plane: ControlPlane, name: str, *, cpu: str) -> None:
    """And wait until we know of it."""
    plane.api.post("/api/v1/nodes", objects.node(name, cpu=cpu))
    wait_until(Node.objects.filter(name=name).exists, f"{name} in the mirror")


def stored(plane: ControlPlane, name: str) -> dict[str, Any]:
    return dict(plane.api.get(f"{QUEUES}/{name}"))
