"""vcctl node fragmentation, largest-gang and waiting."""

from __future__ import annotations

from tests.dashboard.cli.conftest import Type
from tests.worlds import job, node, queue, run_session


def test_what_is_free_and_who_would_start_there(vcctl: Type):
    node("n1", cpu="4")
    node("n2", cpu="4")
    queue("batch", capability={"cpu": "6"})
    job("small", "batch", replicas=2)
    job("big", "batch", replicas=9)
    run_session()

    spread = vcctl("vcctl node fragmentation -o json").json["status"]["resources"]
    assert [found["message"] for found in spread] == ["6 CPU free, up to 4 on one node"]
    largest = vcctl("vcctl node largest-gang --queue batch --shape cpu=1").out.splitlines()
    assert largest[0] == "A gang of up to 4 pods of 1 CPU each would start now in batch."
    assert largest[1].startswith("  One pod more: Needs 5 cpu at once; batch")
    assert "“much”" in vcctl("vcctl node largest-gang --shape cpu=much").err
    waiting = vcctl("vcctl node waiting n1")
    assert waiting.rows[0][:3] == ["default/big", "batch", "fits"]
    assert "Room here now for" in waiting.out
    assert vcctl("vcctl node waiting n9").code == 3
    assert vcctl("vcctl node waiting").code == 2
