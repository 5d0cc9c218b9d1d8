"""Rows as the values of a snapshot: whatever admission lets in can be read."""

from __future__ import annotations

from scheduler.selectors.sessions.snapshot_rows import constraint_of


def test_terms_of_an_affinity_that_are_left_empty_match_nothing():
    required = {"nodeSelectorTerms": [None, {"matchExpressions": None}]}
    preferred = [None, {"weight": None, "preference": None}]
    names = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )

    read = constraint_of(
        {},
        {"nodeAffinity": dict(zip(names, (required, preferred), strict=True))},
        [],
    )

    assert [(term.expressions, term.fields) for term in read.required] == [((), ()), ((), ())]
    assert [wish.weight for wish in read.preferred] == [1]
