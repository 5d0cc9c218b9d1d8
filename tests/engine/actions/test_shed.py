"""Shed: a broken gang gives up the rest, after its grace."""

from __future__ import annotations

import pytest

from scheduler.domain.workloads import Phase
from tests.engine.builders import BASIC, TWO_QUEUES, configured, evicted, job, one_node, policy, run


def starving(session, since):
    """A job of three that lost two pods, in a queue that has all it deserves."""
    lost = job(
        "lost", "q1", tasks=3, cpu=1, on=["n1", "", ""], phase=Phase.RUNNING, starving_since=since
    )
    return one_node(
        lost,
        job("other", "q1", tasks=1, cpu=1, on="n1"),
        job("b", "q2", tasks=2, cpu=1, on="n1"),
        cpu=4,
        queues=TWO_QUEUES,
    ), session


@pytest.mark.parametrize(("grace", "victims", "noted"), [(3, [], {0: 5}), (2, ["lost-0"], {0: -1})])
def test_shed_waits_for_its_grace(grace, victims, noted):
    snapshot, session = starving(7, since=5)
    snapshot.session = session

    outcome = run(
        snapshot, configured(policy("shed", BASIC, ["proportion"]), shed={"graceSessions": grace})
    )

    assert evicted(outcome) == victims
    assert outcome.starving == noted


def test_shed_notes_when_it_first_saw_a_job_starving_and_forgets_one_that_recovered():
    snapshot, _ = starving(7, since=-1)
    snapshot.session = 7
    shed = policy("shed", BASIC, ["proportion"])
    assert run(snapshot, shed).starving == {0: 7}

    recovered = one_node(job("lost", tasks=1, cpu=1, on="n1", starving_since=3))

    assert run(recovered, shed).starving == {0: -1}
