"""Names of podgroups of Kubernetes itself, beside those of Volcano."""

from __future__ import annotations

from scheduler.domain.native_groups import native_name, shown_beside_namesake, stored_name


def test_a_stored_name_gives_back_the_name_in_the_cluster():
    assert native_name(stored_name("train")) == "train"


def test_the_name_of_another_podgroup_is_no_native_one():
    assert native_name("train") == ""


def test_beside_a_namesake_it_is_shown_under_a_name_that_nobody_can_take():
    assert shown_beside_namesake("train", "u1") == "train_native"


def test_a_name_that_would_be_too_long_is_shown_by_its_uid():
    assert shown_beside_namesake("a" * 250, "u1") == "u1_native"
