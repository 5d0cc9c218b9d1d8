"""Random lives of jobs, each from a seed: between any two deeds the promises hold, and when all has
calmed down everything has ended.
"""

from __future__ import annotations

import pytest

from tests.job_lives import JobLives, broken_promises, unfinished_business

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def live_and_calm_down(seed: int, steps: int) -> None:
    lives = JobLives(seed)
    for _ in range(steps):
        lives.step()
        assert broken_promises() == [], "\n".join(lives.done)
    lives.calm_down()
    assert [*broken_promises(), *unfinished_business()] == [], "\n".join(lives.done)


# Each broke a promise once: a gang completed too early, one waited for itself, one had failed.
@pytest.mark.parametrize("seed", [1, 6, 308])
def test_no_promise_is_broken_in_a_random_life(seed: int):
    live_and_calm_down(seed, steps=60)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_nor_in_many_and_longer_ones(seed: int):
    live_and_calm_down(seed, steps=100)
