"""The share of a queue."""

from __future__ import annotations

import pytest

from scheduler.domain.resources import Resources
from scheduler.engine.state.queue_quotas import queue_share
from tests.engine.builders import amounts


@pytest.mark.parametrize(
    ("deserved", "allocated", "share"),
    [
        ({}, {}, 1),
        ((2, 2), (1, 1), 0.5),
        ((2, 2), (3, 2), 1.5),
        ((2, 4), (1, 3), 0.75),
        ((0, 0), (1, 1), 1),
    ],
)
def test_e22_the_share_of_a_queue(deserved, allocated, share):
    def pair(values):
        return amounts(*values) if values else Resources()

    assert queue_share(pair(allocated), pair(deserved)) == share
