"""vcctl node, pause and unpause."""

from __future__ import annotations

from tests.dashboard.cli.conftest import Type
from tests.worlds import node


def test_nodes(vcctl: Type):
    node("n1", cpu="8", memory="32Gi")

    assert vcctl("vcctl node cordon n1").code == 0
    assert vcctl("vcctl node list").rows[0][:2] == ["n1", "Cordoned"]
    assert vcctl("vcctl node uncordon n1").code == 0
    assert vcctl("vcctl node drain n1 --dry-run").code == 0
    assert vcctl("vcctl node drain n1").code == 2
    assert vcctl("vcctl node list").rows[0][1] == "Ready"
    assert vcctl("vcctl node drain n1 --yes").code == 0
    assert vcctl("vcctl node cordon n2").code == 3
    assert vcctl("vcctl node cordon").code == 2


def test_pause_and_unpause(vcctl: Type):
    assert vcctl('vcctl pause --reason "moving the racks"').out == "Scheduling is paused.\n"
    assert "already" in vcctl("vcctl pause").out
    assert vcctl("vcctl unpause").out == "Scheduling is resumed.\n"
