"""Water-filling against the same rule written out with fractions, and its promises."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from scheduler.engine.fair_share import fill, fill_each, int_sum


def by_the_book(total, weights, floors, ceilings):
    """The level at which the parts use up the total, found by walking along all bends."""
    ceilings = [max(pair) for pair in zip(floors, ceilings, strict=True)]
    if sum(floors) >= total:
        return floors
    if sum(ceilings) <= total:
        return ceilings

    def parts(level):
        return [
            min(max(level * weight, low), high)
            for weight, low, high in zip(weights, floors, ceilings, strict=True)
        ]

    before = Fraction(0)
    for bend in sorted(
        {
            Fraction(bound, weight)
            for bounds in (floors, ceilings)
            for bound, weight in zip(bounds, weights, strict=True)
        }
    ):
        if sum(parts(bend)) >= total:
            low = sum(parts(before))
            high = sum(parts(bend))
            return (
                parts(before + (bend - before) * (total - low) / (high - low))
                if high > low
                else parts(bend)
            )
        before = bend
    raise AssertionError("the ceilings reach the total, so some bend does")


def arrays(*columns):
    return [np.array(column, dtype=np.int64) for column in columns]


@pytest.mark.parametrize("seed", range(200))
def test_it_is_the_rule_to_within_a_unit_and_uses_up_the_total(seed):
    random = Random(seed)
    count = random.randint(1, 8)
    weights = [random.randint(1, 6) for _ in range(count)]
    floors = [random.choice((0, 0, random.randint(0, 30))) for _ in range(count)]
    ceilings = [random.randint(0, 60) for _ in range(count)]
    total = random.randint(0, 160)

    parts = fill(total, *arrays(weights, floors, ceilings)).tolist()

    assert all(
        abs(part - exact) < 1
        for part, exact in zip(parts, by_the_book(total, weights, floors, ceilings), strict=True)
    )
    if sum(floors) <= total:
        assert sum(parts) == min(
            total, sum(max(pair) for pair in zip(floors, ceilings, strict=True))
        )


def test_units_lost_by_rounding_go_to_the_first_who_lost_some():
    assert fill(10, *arrays([1, 1, 1], [0, 0, 0], [99, 99, 99])).tolist() == [4, 3, 3]


def test_a_weight_of_nothing_gets_the_floor():
    assert fill(10, *arrays([0, 1], [2, 0], [9, 9])).tolist() == [2, 8]


def test_amounts_whose_products_leave_64_bits_stay_exact():
    total = 2**58 + 1

    parts = fill(total, *arrays([65535, 1, 65534], [0, 0, 0], [2**60] * 3))

    assert int_sum(parts) == total
    assert abs(int(parts[1]) - Fraction(total, 131070)) < 1


def test_sums_do_not_overflow():
    assert int_sum(np.full(10, 2**62, dtype=np.int64)) == 10 * 2**62


def test_e3_each_resource_is_divided_on_its_own():
    ceilings = np.array([[16, 8], [8, 40]], dtype=np.int64)

    parts = fill_each(np.array([20, 40]), np.array([1, 1]), np.zeros_like(ceilings), ceilings)

    assert parts.tolist() == [[12, 8], [8, 32]]


def test_floors_that_exceed_the_total_are_given_as_they_are():
    """When nodes are lost, guarantees alone may exceed what is left: each queue deserves just its
    guarantee.
    """
    assert fill(5, np.array([1, 1]), np.array([4, 3]), np.array([10, 10])).tolist() == [4, 3]
