"""Volcano's short programs: vsub, vjobs, vqueues and their siblings."""

from __future__ import annotations

from tests.dashboard.cli.conftest import Type


def test_volcanos_short_programs(vcctl: Type):
    vcctl("vcctl queue create q")

    assert vcctl("vsub -n train -N default -q q").out == "job/default/train created\n"
    assert vcctl("vjobs -q q").rows[0][0] == "train"
    assert vcctl("vqueues -n q").out.splitlines()[0].split() == [
        "Name",
        "Weight",
        "State",
        "Inqueue",
        "Pending",
        "Running",
        "Unknown",
    ]
    assert vcctl("vqueues").rows[1][0] == "q"
    assert vcctl("vsuspend -n train").code == 0
    assert vcctl("vresume -n train").code == 0
    assert vcctl("vcancel -n train --yes").out == "job/default/train deleted\n"
    assert vcctl("vcancel").code == 2
