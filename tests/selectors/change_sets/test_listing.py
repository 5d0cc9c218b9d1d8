"""Who sees which change sets."""

from __future__ import annotations

import pytest

from scheduler.selectors.accounts.access import access_of
from scheduler.selectors.change_sets.listing import drafts_of, visible_sets
from scheduler.services.change_sets.apply import apply_change_set
from scheduler.services.change_sets.drafts import create_change_set, revert
from tests.dashboard.work import person, small_cluster
from tests.services.change_sets.builders import edit, machine

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def seen_by(name: str) -> set[str]:
    sets = visible_sets(access_of(person(name).user), name)
    return set(sets.values_list("name", flat=True))


def test_a_set_is_seen_by_who_sees_all_its_queues():
    create_change_set("vision", [edit("vision", weight=2)])
    create_change_set("both", [edit("vision", weight=2), edit("language", weight=2)])
    create_change_set("batch", [edit("vision", weight=2), edit("batch", weight=2)])
    create_change_set("new", [edit("speech", parent="research")])
    create_change_set("nodes", [machine("n3", "4")])

    assert seen_by("vera") == {"vision", "nodes"}
    assert seen_by("ruth") == {"vision", "both", "new", "nodes"}
    assert seen_by("admin") == {"vision", "both", "batch", "new", "nodes"}


def test_a_set_without_queues_of_another_tenant_is_not_seen():
    create_change_set("empty", [], by=person("ruth"))
    create_change_set("hers", [machine("n3", "4")], by=person("ruth"))
    create_change_set("admins", [], by=person("admin"))

    assert seen_by("ruth") == {"empty", "hers", "admins"}
    assert seen_by("vera") == {"admins"}


def test_a_queue_that_moves_shows_where_it_goes():
    create_change_set("away", [edit("language", parent="batch")])
    create_change_set("up", [edit("language", parent="root")])

    assert seen_by("ruth") == {"up"}


def test_its_author_sees_a_set_whose_queue_is_gone():
    made = create_change_set("make", [edit("speech", parent="research")], by=person("ruth"))
    apply_change_set(made.pk, by=person("ruth"))
    create_change_set("hers", [edit("speech", weight=2)], by=person("ruth"))
    apply_change_set(revert(made.pk).pk)

    assert "hers" in seen_by("ruth")


def test_drafts_to_add_to_are_ones_own():
    create_change_set("hers", [edit("vision", weight=2)], by=person("ruth"))
    create_change_set("admins", [edit("vision", weight=2)], by=person("admin"))

    own = drafts_of(access_of(person("ruth").user), "ruth")
    all_of_them = drafts_of(access_of(person("admin").user), "admin")

    assert [draft.name for draft in own] == ["hers"]
    assert {draft.name for draft in all_of_them} == {"hers", "admins"}
