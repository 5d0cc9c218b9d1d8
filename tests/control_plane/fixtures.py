"""The fixture `control_plane`: a real API server, clean for each test.

Each pytest process (each worker of xdist) starts its own when the first test asks for it: two tests
that both make nodes and queues cannot share one. It ends as soon as the next test needs none, so it
does not slow down the rest of the suite, and with the process in any case.

A test that uses the fixture wears the mark `kubernetes`, whether its author wrote it or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.control_plane import programs

if TYPE_CHECKING:
    from tests.control_plane.plane import ControlPlane

MARK = "kubernetes"
_FIXTURE = "control_plane"


class _Running:
    """The control plane of this process, if there is one."""

    plane: ControlPlane | None = None

    def stop(self) -> None:
        if self.plane is not None:
            self.plane.stop()
        self.plane = None


_running = _Running()


@cache
def missing() -> str:
    """Why there is no control plane on this machine; empty if there is one."""
    try:
        programs.find()
    except programs.NoControlPlane as reason:
        return str(reason)
    return ""


def pytest_itemcollected(item: pytest.Item) -> None:
    if _FIXTURE in getattr(item, "fixturenames", ()):
        item.add_marker(MARK)


@pytest.fixture
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """A running control plane in the state after its start: no nodes, no queues, Volcano's CRDs."""
    plane = _running.plane
    if plane is not None and plane.is_ready():
        plane.reset()
        return plane
    _running.stop()  # a test has killed its server, and did not start it again
    _running.plane = _new_plane(tmp_path_factory.mktemp("control-plane"))
    _running.plane.start()
    return _running.plane


def _new_plane(folder: Path) -> ControlPlane:
    from tests.control_plane.plane import ControlPlane  # most runs need none

    return ControlPlane(programs.find(), folder)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    yield
    if nextitem is None or nextitem.get_closest_marker(MARK) is None:
        _running.stop()


def pytest_sessionfinish() -> None:
    _running.stop()
