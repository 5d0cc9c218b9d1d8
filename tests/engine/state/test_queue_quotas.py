"""The share of a queue."""

from __future__ import annotations

import pytest

from tests.engine.builders import CAPACITY, cluster, job, node, queue, run, with_actions


@pytest.mark.parametrize(
    ("deserved", "allocated", "share"),
    [
        (None, None, 1),
        ((2, 2), (1, 1), 0.5),
        ((2, 2), (3, 2), 1.5),
        ((2, 4), (1, 3), 0.75),
        (None, (1, 1), 1),
    ],
)
def test_e22_the_share_of_a_queue(deserved, allocated, share):
    """Amounts are cores and GiB."""
    snapshot = cluster(
        nodes=[node("n1", cpu=8, memory="32Gi")],
        queues=[queue("q", deserved=amounts(deserved))],
        jobs=[job("runs", "q", on="n1", **amounts(allocated))] if allocated else [],
    )

    outcome = run(snapshot, with_actions(CAPACITY, "enqueue"))

    assert outcome.queues["q"].share == share


def amounts(pair):
    if pair is None:
        return {}
    cores, gibibytes = pair
    return {"cpu": cores, "memory": f"{gibibytes}Gi"}
