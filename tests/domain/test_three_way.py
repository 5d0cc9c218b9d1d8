"""What two people changed, put together."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.domain.three_way import merge, merge_lines

BASE = {"spec": {"weight": 1, "deserved": {"cpu": "4", "nvidia.com/gpu": "2"}, "reclaimable": True}}


def changed(**spec: Any) -> dict[str, Any]:
    return {"spec": {**BASE["spec"], **spec}}


def test_only_what_i_changed_is_put_over_what_is_there_now():
    merged = merge(BASE, changed(weight=5), changed(deserved={"cpu": "8", "nvidia.com/gpu": "2"}))

    assert merged.value == changed(weight=5, deserved={"cpu": "8", "nvidia.com/gpu": "2"})
    assert [(change.field, change.base, change.theirs) for change in merged.kept] == [
        ("spec.deserved.cpu", "4", "8")
    ]
    assert merged.both == ()


def test_a_field_that_both_changed_is_named_with_all_three():
    merged = merge(BASE, changed(weight=5), changed(weight=7))

    (change,) = merged.both
    assert (change.field, change.base, change.mine, change.theirs) == ("spec.weight", 1, 5, 7)
    assert merged.value == changed(weight=5)


def test_two_who_want_the_same_do_not_disagree():
    assert merge(BASE, changed(weight=5), changed(weight=5)).both == ()


def test_what_i_took_away_goes_and_what_they_took_away_stays_gone():
    merged = merge(BASE, changed(deserved={"nvidia.com/gpu": "2"}), changed(deserved={"cpu": "4"}))

    assert merged.value == changed(deserved={})
    assert [change.field for change in merged.kept] == ["spec.deserved.nvidia.com/gpu"]


def test_removed_here_and_changed_there_is_a_disagreement():
    (change,) = merge(
        BASE,
        changed(deserved={"nvidia.com/gpu": "2"}),
        changed(deserved={"cpu": "9", "nvidia.com/gpu": "2"}),
    ).both

    assert (change.mine, change.theirs) == (None, "9")


LINES = "a\nb\nc\nd\ne\n"


@pytest.mark.parametrize(
    ("mine", "theirs", "both"),
    [
        ("A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n"),
        ("a\nb\nc\nd\ne\nf\n", "b\nc\nd\ne\n", "b\nc\nd\ne\nf\n"),
        ("a\nX\nc\nd\ne\n", "a\nY\nc\nd\ne\n", None),
        ("a\nX\nc\nd\ne\n", "a\nX\nc\nd\ne\n", "a\nX\nc\nd\ne\n"),
        (LINES, "a\n", "a\n"),
    ],
    ids=["apart", "added and removed", "the same line", "the same change", "only theirs"],
)
def test_texts_are_put_together_by_lines(mine: str, theirs: str, both: str | None):
    assert merge_lines(LINES, mine, theirs) == both
