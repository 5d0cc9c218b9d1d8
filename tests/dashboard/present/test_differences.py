"""Differences between two versions of an object, as the audit log shows them."""

from __future__ import annotations

from dashboard.present.differences import Difference, differences


def test_only_what_differs_is_told_by_its_path():
    before = {"spec": {"weight": 1, "parent": "root"}}
    after = {"spec": {"weight": 2, "parent": "root"}}

    assert differences(before, after) == [Difference("spec.weight", "1", "2")]


def test_an_empty_text_is_as_good_as_none():
    assert differences(None, {"user": "sam", "group": ""}) == [Difference("user", None, "sam")]
    assert differences({"reason": "dust"}, {"reason": ""}) == [Difference("reason", "dust", None)]
