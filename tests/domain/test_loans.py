"""The ledger: who uses whose idle share, at the level of the tree where both meet."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.domain.loans import NOBODY, Holding, Loan, accounts_of, loans_across, loans_of

unhurried = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)  # the machine may have other work to do


def held(queue, parent, allocated, deserved):
    return Holding(queue, parent, allocated, deserved)


def parents_of(holdings):
    return {row.queue: row.parent for row in holdings}


def test_the_largest_borrower_takes_from_the_largest_lender():
    found = loans_of(
        [
            held("root", "", 40, 40),
            held("batch", "root", 28, 10),
            held("archive", "root", 4, 10),
            held("team-a", "root", 8, 20),
        ]
    )

    assert found == (
        Loan("team-a", "batch", "root", 12),
        Loan("archive", "batch", "root", 6),
    )


def test_what_is_not_assigned_is_used_first_and_the_queue_above_lends_it():
    found = loans_of(
        [held("root", "", 30, 40), held("batch", "root", 28, 10), held("team-a", "root", 2, 20)]
    )

    assert found == (Loan("root", "batch", "root", 10), Loan("team-a", "batch", "root", 8))


def test_a_loan_between_two_families_is_booked_where_they_meet():
    holdings = [
        held("root", "", 30, 40),
        held("research", "root", 26, 20),
        held("vision", "research", 8, 10),
        held("language", "research", 18, 10),
        held("sales", "root", 4, 20),
        held("emea", "sales", 1, 5),
        held("apac", "sales", 3, 15),
    ]

    found = loans_of(holdings)

    assert found == (
        Loan("apac", "language", "root", 6),
        Loan("vision", "language", "research", 2),
    )
    taken, given = loans_across(found, "research", parents_of(holdings))
    assert (taken, given) == ([found[0]], [])


def test_nobody_lends_where_nobody_borrows():
    assert (
        loans_of([held("root", "", 0, 9), held("a", "root", 0, 5), held("b", "root", 0, 4)]) == ()
    )


def test_a_queue_without_a_deserved_has_no_account_and_counts_for_the_one_above():
    found = loans_of(
        [
            held("root", "", 10, 10),
            held("a", "root", 6, 4),
            held("a-new", "a", 6, None),
            held("b", "root", 4, 6),
        ]
    )

    assert found == (Loan("b", "a", "root", 2),)


def test_what_is_above_all_that_the_cluster_has_is_lent_by_nobody():
    found = loans_of([held("root", "", 9, 8), held("a", "root", 9, 8)])

    assert found == (Loan(NOBODY, "a", "root", 1),)


@st.composite
def trees(draw, *, is_consistent=True):
    """Random trees; in a consistent one a queue has what the queues below it have together."""
    count = draw(st.integers(1, 14))
    parents = [""] + [f"q{draw(st.integers(0, place - 1))}" for place in range(1, count)]
    names = [f"q{place}" for place in range(count)]
    deserved = [draw(st.integers(0, 40)) for _ in names]
    allocated = [draw(st.integers(0, 40)) for _ in names]
    if is_consistent:
        inner = set(parents)
        allocated = [
            0 if name in inner else amount for name, amount in zip(names, allocated, strict=True)
        ]
        for place in range(count - 1, 0, -1):
            allocated[int(parents[place][1:])] += allocated[place]
    else:
        deserved = [draw(st.sampled_from([None, amount])) for amount in deserved]
    rows = []
    for name, parent, has, due in zip(names, parents, allocated, deserved, strict=True):
        rows.append(held(name, parent, has, due))
    return rows


@unhurried
@given(trees())
def test_what_crosses_the_edge_of_each_subtree_is_what_it_has_above_its_deserved(holdings):
    accounts = accounts_of(loans_of(holdings), parents_of(holdings))

    for row in holdings:
        account = accounts.get(row.queue)
        borrowed, lent = (account.borrowed, account.lent) if account else (0, 0)
        assert borrowed == max(0, row.balance)
        assert 0 <= lent <= max(0, -row.balance)


@unhurried
@given(trees())
def test_all_that_is_borrowed_from_a_queue_is_what_it_lends(holdings):
    found = loans_of(holdings)
    parents = parents_of(holdings)

    for row in holdings:
        taken, given_ = loans_across(found, row.queue, parents)
        account = accounts_of(found, parents).get(row.queue)
        assert sum(loan.amount for loan in taken) == (account.borrowed if account else 0)
        assert sum(loan.amount for loan in given_) == (account.lent if account else 0)


@unhurried
@given(st.one_of(trees(), trees(is_consistent=False)), st.randoms(use_true_random=False))
def test_amounts_are_positive_each_pair_is_one_loan_and_the_order_of_siblings_is_no_matter(
    holdings, chance: random.Random
):
    found = loans_of(holdings)

    assert all(isinstance(loan.amount, int) and loan.amount > 0 for loan in found)
    assert all(loan.lender != loan.borrower for loan in found)
    pairs = Counter((loan.lender, loan.borrower, loan.level) for loan in found)
    assert set(pairs.values()) <= {1}
    shuffled = sorted(holdings, key=lambda row: (_depth(row, holdings), chance.random()))
    assert loans_of(shuffled) == found


def _depth(row, holdings):
    parents = parents_of(holdings)
    depth = 0
    name = row.queue
    while parents[name]:
        name = parents[name]
        depth += 1
    return depth
