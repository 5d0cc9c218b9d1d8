from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.domain.resources import (
    NOTHING,
    QuantityError,
    Resources,
    format_quantity,
    parse_quantity,
    total,
)

RESOURCES = (
    "cpu",
    "memory",
    "nvidia.com/gpu",
    "pods",
    "ephemeral-storage",
    "hugepages-2Mi",
    "example.com/licence",
)


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("cpu", "500m", 500),
        ("cpu", "2", 2000),
        ("cpu", "1.5", 1500),
        ("cpu", ".5", 500),
        ("cpu", "0", 0),
        ("cpu", "1e3", 1_000_000),
        ("cpu", 2, 2000),
        ("cpu", 0.1, 100),
        ("memory", "4Gi", 4 * 2**30),
        ("memory", "1.5Gi", 3 * 2**29),
        ("memory", "128974848", 128974848),
        ("memory", "100M", 10**8),
        ("memory", "1E", 10**18),
        ("memory", "12e6", 12_000_000),
        ("memory", "1000m", 1),
        ("nvidia.com/gpu", "8", 8000),
        ("nvidia.com/gpu", "2000m", 2000),
        ("pods", "110", 110),
    ],
)
def test_a_quantity_is_read_exactly(resource: str, text: object, amount: int):
    assert parse_quantity(resource, text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "inf",
        "-inf",
        "1 Gi",
        " 1",
        "1_000",
        "",
        "1g",
        "0x10",
        "1e",
        "٣",
        "1,5",
        "2c",
        "--1",
        "Gi",
        "1e9999",
        "9" * 70,
    ],
)
def test_nonsense_is_refused_with_a_message_that_names_it(text: str):
    with pytest.raises(QuantityError) as refusal:
        parse_quantity("cpu", text)

    assert "cpu" in str(refusal.value)
    assert text[:20] in str(refusal.value)


@pytest.mark.parametrize("value", [None, True, [], {}, float("nan"), float("inf")])
def test_what_is_not_a_quantity_at_all_is_refused(value: object):
    with pytest.raises(QuantityError):
        parse_quantity("memory", value)


@pytest.mark.parametrize(
    ("resource", "text"),
    [
        ("memory", "0.5"),
        ("memory", "1m"),
        ("nvidia.com/gpu", "500m"),
        ("pods", "1.5"),
        ("cpu", "0.1m"),
    ],
)
def test_a_fraction_of_a_whole_thing_is_refused(resource: str, text: str):
    with pytest.raises(QuantityError, match=r"fraction|finer"):
        parse_quantity(resource, text)


def test_the_seeds_2c_is_refused_with_what_to_write():
    with pytest.raises(QuantityError, match="write 2 or 2000m"):
        parse_quantity("cpu", "2c")


@given(st.sampled_from(RESOURCES), st.integers(min_value=0, max_value=2**50))
def test_what_is_printed_reads_back_as_the_same_amount(resource: str, amount: int):
    if resource == "nvidia.com/gpu" or resource.startswith("example"):
        amount -= amount % 1000

    assert parse_quantity(resource, format_quantity(resource, amount)) == amount


def test_zero_and_absent_are_told_apart():
    assert Resources({"cpu": 0}) != NOTHING
    assert "cpu" in Resources({"cpu": 0})


def test_sums_keep_every_name():
    assert total(
        [Resources({"cpu": 1}), Resources({"memory": 2}), Resources({"cpu": 3})]
    ) == Resources({"cpu": 4, "memory": 2})
