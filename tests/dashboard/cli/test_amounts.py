"""Figures in base units as a terminal writes them, held against the domain's own."""

from __future__ import annotations

import pytest

from dashboard.cli.amounts import written
from scheduler.domain.resources import format_quantity


@pytest.mark.parametrize(
    "resource",
    ["cpu", "memory", "pods", "nvidia.com/gpu", "ephemeral-storage", "hugepages-2Mi", "count/jobs"],
)
@pytest.mark.parametrize("amount", [0, 1, 500, 1000, 2**20, 16 * 2**30, -1_024_000])
def test_an_amount_that_needs_no_rounding_reads_back(resource: str, amount: int):
    assert written(resource, amount) == format_quantity(resource, amount)


@pytest.mark.parametrize(
    ("amount", "text"),
    [(1536 * 2**20, "1.5Gi"), (12_345_678_901, "11.5Gi"), (200 * 2**30 + 1, "200Gi")],
)
def test_other_bytes_are_rounded_to_three_digits(amount: int, text: str):
    assert written("memory", amount) == text
