from __future__ import annotations

from scheduler.domain.timelines import average, averages, bands


def point(at: float, cpu: int, **more: object) -> tuple[float, dict[str, object]]:
    return at, {"allocated": {"cpu": cpu}, "state": "Open", **more}


def test_a_value_holds_until_the_next_one_and_counts_for_as_long_as_it_held():
    found = averages([point(0, 1000), point(15, 3000)], (0, 60, 120))

    assert found["allocated"]["cpu"] == [2500, 3000]


def test_nothing_is_known_before_the_first_point():
    found = averages([point(90, 1000)], (0, 60, 120, 180))

    assert found["allocated"]["cpu"] == [None, 1000, 1000]


def test_a_resource_that_is_not_named_counts_as_nothing():
    found = averages([point(0, 1000), (30, {"allocated": {}})], (0, 60))

    assert found["allocated"]["cpu"] == [500]


def test_a_limit_that_is_not_set_is_no_limit_of_zero():
    found = averages(
        [
            point(0, 1, capability={"cpu": 8000}),
            point(60, 1),
            point(150, 1, capability={"cpu": 4000}),
        ],
        (0, 60, 120, 180),
    )

    assert found["capability"]["cpu"] == [8000, None, 4000]


def test_large_amounts_that_do_not_change_come_out_exactly():
    amount = 2**45 + 1
    points = [(float(second), {"allocated": {"memory": amount}}) for second in range(0, 3000, 7)]

    assert averages(points, range(0, 3001, 60))["allocated"]["memory"] == [amount] * 50


def test_the_average_of_one_stretch_leaves_out_what_has_no_value():
    assert average([point(0, 10)], 0, 60) == {"allocated": {"cpu": 10}}


def test_bands_join_neighbours_of_the_same_state():
    points = [point(0, 1), point(10, 2), point(20, 2, state="Suspended"), point(40, 2)]

    assert bands(points, 5, 60) == [(5, 20, "Open"), (20, 40, "Suspended"), (40, 60, "Open")]
