"""vcctl timeline."""

from __future__ import annotations

from tests.dashboard.cli.conftest import Type
from tests.worlds import job, node, queue, run_session


def test_the_timeline_lists_what_happened_and_names_the_session_of_a_moment(vcctl: Type):
    node("n1", cpu="4")
    queue("batch")
    job("small", "batch")
    run_session()
    vcctl("vcctl queue suspend batch")
    vcctl("vcctl node cordon n1")

    seen = vcctl("vcctl timeline --span 1h")
    assert "queue batch was suspended" in seen.out
    assert "node n1 was cordoned" in seen.out
    only = vcctl("vcctl timeline --span 1h --lane nodes").out
    assert "batch" not in only
    assert vcctl("vcctl timeline --at 2126-01-01T00:00Z").out.startswith("Session 1 of ")
    assert "gossip" in vcctl("vcctl timeline --lane gossip").err
