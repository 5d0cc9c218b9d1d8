"""Weights count wherever nobody names a deserved: in what queues deserve, in whose turn it is, and
in who may take back.
"""

from __future__ import annotations

import pytest

from scheduler.engine.presets import VOLCANO
from scheduler.scenarios.world import advance
from tests.engine.builders import cluster, cores, job, node, queue, run, with_actions

WEIGHTS = range(1, 9)
SHARES = {f"q{weight}": float(2 * weight) for weight in WEIGHTS}  # of 72 cores


def team(parent="root"):
    return [queue(f"q{weight}", weight=weight, parent=parent) for weight in WEIGHTS]


TREES = {
    "nobody names a deserved": team(),
    "a sibling names one": [queue("rich", deserved=8), *team()],
    "a sibling of their parent names one": [
        queue("rich", deserved=8),
        queue("team"),
        *team("team"),
    ],
    "their parent names one": [
        queue("rich", deserved=8),
        queue("team", deserved=72),
        *team("team"),
    ],
    "others are promised everything": [queue("rich", deserved=80), queue("team"), *team("team")],
}


def crowd(queues, running=()):
    """Each of eight queues asks for more than there is: 72 cores, and 8 more where a queue of its
    own has a claim to them.
    """
    has_rich = any(found.name == "rich" for found in queues)
    jobs = [job(f"{name}-{number}", name, cpu=1) for name in SHARES for number in range(40)]
    nodes = [node(f"n{number}", cpu=8) for number in range(9)] + (
        [node("n9", cpu=8)] if has_rich else []
    )
    rich = [job("rich", "rich", tasks=8, cpu=1, on="n9")] if has_rich else []
    return cluster(nodes=nodes, queues=[queue("root"), *queues], jobs=[*jobs, *rich, *running])


def held(outcome):
    allocated = cores(outcome, "allocated")
    return {name: allocated[name] for name in SHARES}


@pytest.mark.parametrize("tree", TREES)
def test_what_eight_queues_get_follows_their_weights(tree):
    outcome = run(crowd(TREES[tree]), with_actions(VOLCANO, "enqueue allocate"))

    assert held(outcome) == pytest.approx(SHARES, abs=1.0)


@pytest.mark.parametrize(
    "tree", [name for name in TREES if name != "others are promised everything"]
)
def test_what_eight_queues_deserve_follows_their_weights(tree):
    deserved = cores(run(crowd(TREES[tree])))

    assert {name: deserved[name] for name in SHARES} == pytest.approx(SHARES, abs=0.01)


def test_a_queue_that_has_everything_gives_up_what_the_weights_give_to_others():
    greedy = [job(f"greedy-{number}", "q1", cpu=1, on=f"n{number // 8}") for number in range(72)]
    snapshot = crowd(TREES["a sibling names one"], running=greedy)

    for _ in range(4):
        outcome = run(snapshot)
        snapshot = advance(snapshot, outcome)

    assert held(outcome) == pytest.approx(SHARES, abs=2.0)
