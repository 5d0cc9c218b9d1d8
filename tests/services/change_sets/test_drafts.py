"""Change sets as drafts: what they hold, who may change them, and what others changed meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.admission.violations import Rejected
from scheduler.domain.access import Forbidden, OutOfSight
from scheduler.domain.change_sets import edits_between
from scheduler.domain.jobs.commands import NotPossible
from scheduler.models import ChangeSet
from scheduler.selectors.change_sets.objects import manifests_now
from scheduler.services.change_sets.apply import apply_change_set
from scheduler.services.change_sets.drafts import (
    add_documents,
    add_queue,
    bring_up_to_date,
    create_change_set,
    discard,
    rename,
    revert,
    take_out,
)
from scheduler.services.change_sets.verdicts import verdict_on
from scheduler.services.files.versions import Stale
from scheduler.services.queues.create_update import update_queue
from scheduler.services.sessions.presets import preset_text
from tests.dashboard.work import person, small_cluster
from tests.services.change_sets.builders import edit, gone, machine, policy

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def fields(change_set: ChangeSet) -> dict[str, tuple[Any, Any]]:
    found = {}
    for item in change_set.changes:
        for change in item.edits:
            found[f"{item.name}.{change.field}"] = (change.before, change.after)
    return found


def test_a_document_says_what_is_to_be_and_leaves_the_rest():
    change_set = create_change_set(
        "quotas", [edit("vision", deserved={"cpu": "6000m"}), edit("batch")]
    )

    assert fields(change_set) == {"vision.spec.deserved.cpu": ("8", "6")}
    assert change_set.queues == ["vision"]


def test_later_edits_of_the_same_object_come_over_the_earlier_ones():
    number = create_change_set("quotas", [edit("vision", weight=4)]).pk

    add_documents(number, [edit("vision", deserved={"cpu": "6"})])
    change_set = add_documents(number, [edit("vision", weight=1), edit("batch", weight=2)])

    assert fields(change_set) == {
        "vision.spec.deserved.cpu": ("8", "6"),
        "batch.spec.weight": (1, 2),
    }


def test_a_form_replaces_the_queue_and_can_unset_a_field():
    number = create_change_set("quotas", [edit("vision", weight=4)]).pk
    opened: Any = manifests_now([("Queue", "vision")])["Queue", "vision"]
    typed = {**opened, "spec": {**opened["spec"], "owner": "sam"}}
    del typed["spec"]["capability"]

    change_set = add_queue(number, "vision", typed, opened=opened)

    assert fields(change_set) == {
        "vision.spec.weight": (1, 4),
        "vision.spec.owner": ("", "sam"),
        "vision.spec.capability.cpu": ("12", None),
    }


def test_what_cannot_be_read_is_told_with_its_place_and_nothing_is_kept():
    documents = [
        edit("vision", weight="many"),
        {"kind": "Job", "metadata": {"name": "j"}},
        gone("Queue", "nothing"),
        policy("actions: dance"),
    ]

    with pytest.raises(Rejected) as refused:
        create_change_set("wrong", documents)

    places = {violation.field for violation in refused.value.violations}
    assert {"[0].spec.weight", "[1].kind", "[2].metadata.name"} < places
    assert not ChangeSet.objects.exists()


def test_bringing_it_up_to_date_keeps_what_others_changed():
    change_set = create_change_set(
        "mine", [edit("vision", weight=4), edit("batch", weight=4), gone("Queue", "language")]
    )
    update_queue("vision", {"spec": {"owner": "theirs", "weight": 2}}, merge=True)
    update_queue("batch", {"spec": {"weight": 4}}, merge=True)

    renewed = bring_up_to_date(change_set.pk)

    assert not verdict_on(renewed.changes).crossings
    assert {item.name for item in renewed.changes} == {"vision", "language"}
    assert fields(renewed)["vision.spec.weight"] == (2, 4)
    assert "vision.spec.owner" not in fields(renewed)


def test_an_object_that_is_gone_is_taken_out_when_brought_up_to_date():
    made = create_change_set("make", [edit("speech", parent="research")])
    apply_change_set(made.pk)
    change_set = create_change_set("more", [edit("speech", weight=4), gone("Queue", "speech")][:1])
    apply_change_set(revert(made.pk).pk)

    assert bring_up_to_date(change_set.pk).changes == ()


def test_only_its_author_and_admins_of_the_cluster_change_a_draft():
    number = create_change_set("hers", [edit("vision", weight=4)], by=person("ruth")).pk

    add_documents(number, [edit("vision", weight=5)], by=person("admin"))
    number = create_change_set("admins", [edit("vision", weight=6)], by=person("admin")).pk
    with pytest.raises(Forbidden):
        add_documents(number, [edit("vision", weight=7)], by=person("ruth"))
    with pytest.raises(Forbidden):
        discard(number, by=person("ruth"))


def test_a_viewer_collects_nothing():
    with pytest.raises(Forbidden):
        create_change_set("mine", [edit("vision", weight=4)], by=person("vera"))


def test_nobody_collects_edits_of_queues_that_they_do_not_see():
    with pytest.raises(OutOfSight):
        create_change_set("mine", [edit("batch", weight=4)], by=person("ruth"))
    with pytest.raises(OutOfSight):
        create_change_set("mine", [edit("new", parent="batch")], by=person("ruth"))


def test_a_set_that_somebody_may_not_see_is_not_there():
    number = create_change_set("batch", [edit("batch", weight=4)]).pk

    with pytest.raises(ChangeSet.DoesNotExist):
        apply_change_set(number, by=person("ruth"))


def test_a_discarded_set_stays_on_record_and_is_not_applied():
    number = create_change_set("no", [edit("batch", weight=4)]).pk

    discard(number)

    assert ChangeSet.objects.get(pk=number).state == "Discarded"
    with pytest.raises(NotPossible):
        apply_change_set(number)
    with pytest.raises(NotPossible):
        revert(number)


def test_an_item_is_taken_out_and_a_set_renamed():
    change_set = create_change_set("a", [edit("batch", weight=4), machine("n3", "4")])

    take_out(change_set.pk, "Node", "n3")
    renamed = rename(change_set.pk, "  b   c ", "why")

    assert [item.key for item in renamed.changes] == [("Queue", "batch")]
    assert (renamed.name, renamed.description) == ("b c", "why")
    with pytest.raises(NotPossible):
        take_out(change_set.pk, "Node", "n3")


def test_a_draft_that_somebody_else_changed_is_stale():
    change_set = create_change_set("a", [edit("batch", weight=4)])
    add_documents(change_set.pk, [edit("batch", weight=5)])

    with pytest.raises(Stale):
        add_documents(change_set.pk, [edit("batch", weight=6)], expected_version=1)


def test_an_empty_set_and_one_without_a_name_are_refused():
    with pytest.raises(Rejected):
        create_change_set(" ")
    empty = create_change_set("empty")
    with pytest.raises(NotPossible, match="empty"):
        apply_change_set(empty.pk)


def test_edits_name_each_field_once():
    edits = edits_between({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3, "d": 4}})

    assert [(each.field, each.before, each.after) for each in edits] == [
        ("a.c", 2, 3),
        ("a.d", None, 4),
    ]


def test_a_policy_is_named_by_its_preset_or_written_out():
    (item,) = create_change_set(
        "policy", [{"kind": "Policy", "spec": {"preset": "volcano"}}]
    ).changes
    written = create_change_set("text", [policy(preset_text("volcano"))])

    assert item.wanted == {"policy": preset_text("volcano")}
    assert written.changes == (item,)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"preset": "none"}, "spec.preset"),
        ({"preset": 3}, "spec.policy"),
        ({}, "spec.policy"),
        ({"preset": "volcano", "policy": "actions: enqueue"}, "spec.policy"),
    ],
)
def test_a_policy_without_a_text_or_a_known_preset_is_refused(spec: dict[str, Any], field: str):
    with pytest.raises(Rejected) as refused:
        create_change_set("policy", [{"kind": "Policy", "spec": spec}])

    assert [violation.field for violation in refused.value.violations] == [field]
    assert not ChangeSet.objects.exists()
