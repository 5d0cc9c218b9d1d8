"""The definitions of Queue, PodGroup, Job and Command: Volcano's own, with Suspended added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.control_plane import objects, programs
from tests.control_plane.api import ApiError
from tests.control_plane.plane import ControlPlane

_FOLDER = Path(__file__).resolve().parent.parent.parent / "deploy/kubernetes/crds"
_FILES = sorted(_FOLDER.glob("*.yaml"))
_QUEUES = objects.QUEUES


@pytest.mark.kubernetes
@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_nothing_but_the_state_differs_from_volcanos_own(file: Path) -> None:
    ours = _read(file)
    stock = {each.name: each for each in programs.find().crds()}
    if file.name == "scheduling.volcano.sh_queues.yaml":
        _take_out_what_is_added(ours)

    assert ours == _read(stock[file.name])


def test_the_four_kinds_that_are_mirrored_are_defined() -> None:
    kinds = {_read(file)["spec"]["names"]["kind"] for file in _FILES}

    assert kinds == {"Queue", "PodGroup", "Job", "Command"}


def test_a_queue_can_be_wanted_and_be_suspended(extended_control_plane: ControlPlane) -> None:
    api = extended_control_plane.api
    api.post(_QUEUES, objects.queue("research", state="Suspended"))
    api.patch(f"{_QUEUES}/research/status", {"status": {"state": "Suspended"}})

    stored = api.get(f"{_QUEUES}/research")

    assert stored["spec"]["state"] == "Suspended"
    assert stored["status"]["state"] == "Suspended"
    table = extended_control_plane.kubectl("get", "queues.scheduling.volcano.sh", "research")
    assert "Suspended" in table


@pytest.mark.parametrize("state", ["Closing", "Unknown", "open"])
def test_what_nobody_can_want_is_refused(extended_control_plane: ControlPlane, state: str) -> None:
    with pytest.raises(ApiError, match="Unsupported value") as refused:
        extended_control_plane.api.post(_QUEUES, objects.queue("research", state=state))

    assert refused.value.code == 422


def test_volcanos_own_programs_leave_the_requested_state_as_it_is(
    extended_control_plane: ControlPlane,
) -> None:
    plane = extended_control_plane
    operate = ("queue", "operate", "--name", "research")
    plane.api.post(_QUEUES, objects.queue("research", state="Suspended", weight=1))
    with plane.volcano_controllers():
        objects.wait_until(lambda: _state(plane) == "Open", "a state given by Volcano")
        plane.vcctl(*operate, "--action", "update", "--weight", "4")
        plane.vcctl(*operate, "--action", "close")
        objects.wait_until(lambda: _state(plane) == "Closed", "the queue to be closed")

    spec = plane.api.get(f"{_QUEUES}/research")["spec"]
    assert spec["state"] == "Suspended"
    assert spec["weight"] == 4


def _take_out_what_is_added(crd: dict[str, Any]) -> None:
    (version,) = crd["spec"]["versions"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]
    del fields["spec"]["properties"]["state"]
    fields["status"]["properties"]["state"]["enum"].remove("Suspended")
    version["additionalPrinterColumns"] = [
        column for column in version["additionalPrinterColumns"] if column["name"] != "STATE"
    ]


def _state(control_plane: ControlPlane) -> str:
    status = control_plane.api.get(f"{_QUEUES}/research").get("status", {})
    return str(status.get("state"))


def _read(file: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(file.read_text())
    return loaded
