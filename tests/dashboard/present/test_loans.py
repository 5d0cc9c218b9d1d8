"""Loans in words, for a reader who may not know all queues."""

from __future__ import annotations

import pytest

from dashboard.http.visibility import Visibility
from dashboard.present.loans import loan_sentence, with_parts
from scheduler.domain.loans import Loan
from scheduler.selectors.queues.listing import queue_rows
from scheduler.selectors.queues.loans import Ledger, ledgers_of
from tests.dashboard.sample import GPU, load_tree

ALL = Visibility(None)


@pytest.mark.django_db
def test_the_ledger_of_a_tree_is_by_resource():
    load_tree()

    ledger = ledgers_of(queue_rows(), [GPU])[GPU]

    assert ledger.loans == (Loan("vision", "language", "research", 10_000),)
    assert loan_sentence(ledger, "vision", ALL) == "lending 10 to language"
    assert loan_sentence(ledger, "language", ALL) == "borrowing 10 from vision"
    assert loan_sentence(ledger, "research", ALL) == ""


def test_loans_of_queues_that_a_reader_may_not_see_are_summed():
    loans = (
        Loan("team-a", "batch", "root", 12_000),
        Loan("archive", "batch", "root", 4_000),
        Loan("attic", "batch", "root", 2_000),
    )
    ledger = Ledger(GPU, loans, {"team-a": "root", "batch": "root"})

    found = loan_sentence(ledger, "batch", Visibility({"batch", "team-a"}))

    assert found == "borrowing 18 from team-a (12), other queues (6)"


def test_the_smallest_of_many_are_counted():
    parts = [(f"q{place}", 1_000) for place in range(6)]

    assert with_parts("cpu", "from", parts) == "6 from q0 (1), q1 (1), q2 (1), q3 (1), 2 others (2)"
