"""What queues may lose: one question in plain numbers, many at once as arrays, the same answers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from scheduler.engine import open_session
from tests.engine.builders import PROPORTION, TREE, cluster, job, node, queue

AMOUNTS = [None, 2, 4, 6]


def crowded(deserved, guarantee):
    """A queue with 6 cores, of which it deserves or is guaranteed a part, and one that asks."""
    capped = guarantee if deserved is None or guarantee is None else min(deserved, guarantee)
    return cluster(
        nodes=[node("n1", cpu=16)],
        queues=[
            queue("root"),
            queue("a", deserved=8),
            queue("b", deserved=deserved, guarantee=capped),
        ],
        jobs=[
            job("small", "b", tasks=4, cpu=1, on="n1"),
            job("large", "b", tasks=1, cpu=2, on="n1"),
            job("other", "b", tasks=1, memory="1Gi", on="n1"),
            job("asks", "a", tasks=2, cpu=2),
        ],
    )


@pytest.mark.parametrize("policy", [TREE, PROPORTION], ids=["capacity", "proportion"])
@pytest.mark.parametrize(("deserved", "guarantee"), list(product(AMOUNTS, AMOUNTS)))
def test_one_queue_gets_the_answer_that_it_gets_among_many(policy, deserved, guarantee):
    session = open_session(crowded(deserved, guarantee), policy)
    own, other = session.queue_tree.rows["a"], session.queue_tree.rows["b"]
    plugin = next(plugin for _, _, plugin in session._plugins if plugin.quotas() is not None)
    classes = range(len(session.request))

    for asking, going, count in product(classes, classes, (1, 2, 3, 5)):
        one = (np.array([other]), np.array([going]))
        many = (np.array([other] * 2), np.array([going] * 2))
        taken = plugin.may_take_from(own, asking, *one, count)
        kept = plugin.keeps_deserved(*one, asking, count)
        assert taken[0] == plugin.may_take_from(own, asking, *many, count)[0]
        assert kept[0] == plugin.keeps_deserved(*many, asking, count)[0]
