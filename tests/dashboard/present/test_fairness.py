"""Shares of the cluster's room add up, also where they are rounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dashboard.present.fairness import percents


def test_rounded_shares_add_up():
    assert percents([8985, 259, 756]) == ["90\u00a0%", "3\u00a0%", "7\u00a0%"]
    assert percents([999, 1, 0]) == ["100\u00a0%", "under 1\u00a0%", "0\u00a0%"]
    assert percents([0, 0]) == ["–", "–"]


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=7).filter(any))
def test_any_shares_add_up_to_a_hundred(amounts: list[int]):
    shown = [share.removesuffix("\u00a0%") for share in percents(amounts)]

    assert sum(0 if share == "under 1" else int(share) for share in shown) == 100
