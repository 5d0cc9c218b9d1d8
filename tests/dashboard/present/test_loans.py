"""Who lends to whom among siblings."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.present.loans import NOBODY, Loan, ledger, loans
from scheduler.selectors.queues.listing import queue_rows
from tests.dashboard.sample import GPU, load_tree


def test_the_largest_borrower_takes_from_the_largest_lender():
    found = list(loans({"batch": 18, "archive": -6, "team-a": -12}, free=0))

    assert found == [Loan("team-a", "batch", 12), Loan("archive", "batch", 6)]


def test_what_is_nobodys_is_used_first():
    assert list(loans({"batch": 18, "team-a": -12}, free=10)) == [
        Loan(NOBODY, "batch", 10),
        Loan("team-a", "batch", 8),
    ]


def test_nobody_lends_where_nobody_borrows():
    assert list(loans({"a": -5, "b": 0}, free=3)) == []


@settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)  # the machine may have other work to do
@given(st.lists(st.integers(-50, 50), max_size=8), st.integers(0, 60))
def test_nobody_lends_more_than_he_leaves_unused_and_nobody_is_lent_more_than_he_borrows(
    amounts: list[int], free: int
):
    balances = {f"queue-{place}": amount for place, amount in enumerate(amounts)}
    found = list(loans(balances, free))

    for name, balance in balances.items():
        assert sum(loan.amount for loan in found if loan.lender == name) <= max(0, -balance)
        assert sum(loan.amount for loan in found if loan.borrower == name) <= max(0, balance)
    lendable = free - sum(min(0, balance) for balance in balances.values())
    assert sum(loan.amount for loan in found) == min(
        lendable, sum(max(0, balance) for balance in balances.values())
    )


@pytest.mark.django_db
def test_the_ledger_of_a_tree_is_by_parent_and_resource():
    load_tree()

    assert ledger(queue_rows(), [GPU]) == {("research", GPU): (Loan("vision", "language", 10_000),)}
