"""Clients of an API server: a fake one with faults, and a real one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.credentials import Credentials, Identity, Server, from_kubeconfig
from tests.control_plane.fake.server import FakeApiServer


def credentials_for(address: str) -> Credentials:
    return Credentials(Server(address), lambda: Identity(token="secret"))


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as running:
        yield running


@pytest.fixture
def client(server: FakeApiServer) -> Iterator[Client]:
    """Of the fake server."""
    asking = Client(credentials_for(server.address))
    yield asking
    asking.close()


@pytest.fixture
def real_client(control_plane) -> Iterator[Client]:
    """Of a real server, with the rights of an administrator."""
    asking = Client(from_kubeconfig(control_plane.kubeconfig))
    yield asking
    asking.close()
