"""The naive twin of the benchmark decides what the engine decides: two programs, written apart, one
answer.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.engine import run_session
from scheduler.engine.fair_share import fill
from scheduler.engine.presets import VOLCANO
from tests.bench.clusters import Size, roomy
from tests.bench.twin import Twin
from tests.bench.twin import fill as plain_fill

SIZES = {
    "gangs": Size(nodes=12, pending=60, running=60, queues=9, largest_gang=12),
    "one by one": Size(nodes=12, pending=40, running=60, queues=9, largest_gang=1),
    "many queues": Size(nodes=20, pending=120, running=100, queues=40, largest_gang=8),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", SIZES.values(), ids=list(SIZES))
def test_the_twin_places_every_pod_where_the_engine_does(size, seed):
    cluster = roomy(Size(**{**size.__dict__, "seed": seed}))

    outcome = run_session(cluster.snapshot(), VOLCANO)

    assert (outcome.evictions, outcome.reservations) == ((), ())
    assert len(outcome.binds) >= size.pending // 2
    assert Twin(cluster).run() == {bind.pod: bind.node for bind in outcome.binds}


amounts = st.integers(0, 60) | st.integers(0, 2**40)
rows = st.lists(
    st.tuples(st.integers(1, 7) | st.just(65535), amounts, amounts),
    min_size=1,
    max_size=6,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(amounts, rows)
def test_both_ways_of_dividing_by_weight_agree_to_the_last_unit(amount, rows):
    weights, floors, ceilings = (
        np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)
    )

    parts = fill(amount, weights, floors, ceilings)

    assert parts.tolist() == plain_fill(amount, rows)
