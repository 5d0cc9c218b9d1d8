"""vcctl queue list by figures, vcctl queue compare, and jobs in groups."""

from __future__ import annotations

from tests.dashboard.cli.conftest import Type
from tests.dashboard.work import submitted
from tests.worlds import node, run_session


def test_queues_are_sorted_and_compared(vcctl: Type):
    node("n1", cpu="8", memory="32Gi")
    vcctl("vcctl queue create small --deserved cpu=1")
    vcctl("vcctl queue create large --deserved cpu=4")
    run_session()

    listed = vcctl("vcctl queue list --sort-by -deserved:cpu -o name")
    compared = vcctl("vcctl queue compare small large")
    refused = vcctl("vcctl queue compare small")
    wrong = vcctl("vcctl queue list --sort-by colour")

    names = [line.rpartition("/")[2] for line in listed.out.split()]
    assert names.index("large") < names.index("small")
    assert compared.out.splitlines()[0].split() == ["small", "large"]
    assert "Name 2 to 4 queues" in refused.err
    assert "cannot be sorted by “colour”" in wrong.err


def test_jobs_are_listed_in_groups(vcctl: Type):
    vcctl("vcctl queue create q")
    submitted("one", "q", "ann", replicas=2)
    submitted("two", "q", "ann", replicas=3)

    done = vcctl("vcctl job list --group-by user --queue q")
    wrong = vcctl("vcctl job list --group-by colour")

    assert "ann" in done.out
    assert done.out.splitlines()[-1].split()[:4] == ["ann", "2", "2", "5"]
    assert "write one of state, queue, user" in wrong.err
