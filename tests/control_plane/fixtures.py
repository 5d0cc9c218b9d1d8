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

from tests.control_plane import objects, programs
from tests.control_plane.builder import NoControlPlane

if TYPE_CHECKING:
    from tests.control_plane.plane import ControlPlane

MARK = "kubernetes"
_FIXTURE = "control_plane"
_DEPLOY = Path(__file__).resolve().parent.parent.parent / "deploy"
_EXTENDED_QUEUES = _DEPLOY / "kubernetes/crds/scheduling.volcano.sh_queues.yaml"


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
    except NoControlPlane as reason:
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


@pytest.fixture
def extended_control_plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The same, with our definition of queues in place of Volcano's: with `spec.state`."""
    import yaml

    control_plane.install_crd(yaml.safe_load(_EXTENDED_QUEUES.read_text()))
    objects.wait_until(lambda: _knows_state(control_plane) is True, "our definition of queues")
    yield control_plane
    control_plane.reset()
    objects.wait_until(lambda: _knows_state(control_plane) is False, "Volcano's own definition")


def _knows_state(control_plane: ControlPlane) -> bool | None:
    """Whether `spec.state` is kept: a field that is not defined is left out without a word.

    None while neither definition is served.
    """
    from tests.control_plane.api import ApiError

    trial = objects.queue("trial", state="Suspended")
    try:
        made = control_plane.api.post(f"{objects.QUEUES}?dryRun=All", trial)
    except ApiError:
        return None
    return "state" in made["spec"]


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
