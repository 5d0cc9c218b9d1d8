"""The parts of what a queue borrows: what lenders could take back, and what stays."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.domain.exposure import Exposure, Kept, Reach, exposures_of
from scheduler.domain.loans import NOBODY, Loan


def test_a_lender_that_lacks_it_takes_before_one_that_does_not_ask():
    loans = [Loan("team-a", "batch", "root", 12), Loan("archive", "batch", "root", 6)]

    found = exposures_of(loans, {"archive": 4}, {"batch": Reach(10, 15, 60.0)})

    assert found == {
        "batch": Exposure(
            18, asked=4, open=6, protected=5, kept=3, seconds=60.0, why=Kept.NOT_EVICTABLE
        )
    }


def test_a_lender_takes_what_it_lacks_once():
    loans = [Loan("a", "b", "root", 5), Loan("a", "c", "root", 5)]

    found = exposures_of(loans, {"a": 6}, {"b": Reach(5, 5), "c": Reach(5, 5)})

    assert [found["b"].asked, found["c"].asked] == [5, 1]
    assert found["c"].open == 4


def test_nobody_takes_back_what_nobody_lends():
    found = exposures_of([Loan(NOBODY, "b", "root", 3)], {}, {"b": Reach(3, 3)})

    assert found["b"] == Exposure(3, kept=3, why=Kept.NOBODYS)


amounts = st.integers(0, 20)
names = st.sampled_from(["a", "b", "c", NOBODY])


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(names, st.sampled_from(["x", "y"]), st.integers(1, 20)), max_size=8),
    st.dictionaries(st.sampled_from(["a", "b", "c"]), amounts),
    st.dictionaries(st.sampled_from(["x", "y"]), st.builds(Reach, amounts, amounts)),
)
def test_the_parts_add_up_and_none_is_negative(given_loans, gaps, reaches):
    loans = [Loan(lender, borrower, "root", amount) for lender, borrower, amount in given_loans]

    found = exposures_of(loans, gaps, reaches)

    for borrower, exposure in found.items():
        parts = (exposure.asked, exposure.open, exposure.protected, exposure.kept)
        assert min(parts) >= 0
        assert sum(parts) == exposure.borrowed
        assert exposure.borrowed == sum(loan.amount for loan in loans if loan.borrower == borrower)
    assert sum(exposure.asked for exposure in found.values()) <= sum(gaps.values())
