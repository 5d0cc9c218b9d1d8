"""Admission webhooks for queues, asked as a real API server asks."""

from __future__ import annotations

import pytest
from django.test import Client

from scheduler.models import Command, Event, Queue
from tests.dashboard.api.webhook_objects import job, manifest
from tests.dashboard.reviews import UID, answer, causes, patch_of, review
from tests.services.queues.builders import podgroup, queue

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("version", ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
def test_a_good_queue_is_allowed_in_both_versions_of_the_review(client: Client, version: str):
    response = answer(client, "queues", review("queues", "CREATE", manifest("a"), version=version))

    assert response == {"uid": UID, "allowed": True}


def test_the_api_group_of_the_first_design_is_understood(client: Client):
    old_style = {**manifest("a", state="Closed"), "apiVersion": "scheduling.sigs.dev/v1alpha2"}

    response = answer(
        client,
        "queues",
        review("queues", "CREATE", old_style, api=("scheduling.sigs.dev", "v1alpha2", "Queue")),
    )

    assert response["allowed"]


def test_a_refusal_has_a_code_a_message_and_every_cause(client: Client):
    response = answer(
        client,
        "queues",
        review(
            "queues",
            "CREATE",
            manifest("a", parent="ghost", capability={"cpu": "-1"}, weight=-3),
        ),
    )

    assert not response["allowed"]
    assert response["status"]["code"] == 400
    assert causes(response) == ["weight_out_of_range", "negative_quantity", "parent_not_found"]
    assert response["status"]["message"] == (
        "spec.weight is -3; it must be from 1 to 65535. Write a number from 1 to 65535. "
        "spec.capability.cpu is -1; it must be 0 or more. "
        "Write 0 or more. a cannot be put there: ghost, its parent, does not exist. "
        "Create ghost first, or name another queue."
    )
    assert response["status"]["details"]["causes"][1] == {
        "reason": "negative_quantity",
        "field": "spec.capability.cpu",
        "message": "spec.capability.cpu is -1; it must be 0 or more. Write 0 or more.",
    }


def test_what_the_state_forbids_is_a_conflict(client: Client):
    queue("a")
    podgroup("g", "a")

    response = answer(client, "queues", review("queues", "DELETE", None, manifest("a"), name="a"))

    assert (response["status"]["code"], causes(response)) == (
        409,
        ["queue_not_closed", "has_podgroups"],
    )


def test_a_closed_queue_may_be_deleted(client: Client):
    queue("a", state="Closed")

    assert answer(client, "queues", review("queues", "DELETE", None, manifest("a"), name="a"))[
        "allowed"
    ]


def test_warnings_are_told_with_an_allowed_object(client: Client):
    queue("p", state="Suspended")

    response = answer(
        client,
        "queues",
        review("queues", "CREATE", manifest("a", parent="p", wieght=3)),
    )

    assert response["warnings"] == [
        "spec.wieght is not known and was ignored; did you mean weight?",
        "a is Suspended at once, because p above it is suspended.",
    ]


def test_an_update_is_compared_with_the_old_object(client: Client):
    queue("a", weight=2)

    allowed = answer(
        client,
        "queues",
        review(
            "queues",
            "UPDATE",
            manifest("a", weight=4, parent="root"),
            manifest("a", weight=2, parent="root"),
        ),
    )
    refused = answer(
        client,
        "queues",
        review("queues", "UPDATE", manifest("a", parent="a"), manifest("a", parent="root")),
    )

    assert allowed["allowed"]
    assert causes(refused) == ["self_parent"]


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        ("Odd", "Odd", True),
        ("Open", "Odd", False),
        ("Odd", "Odder", False),
        ("Odd", "Closed", True),
    ],
)
def test_an_update_may_carry_on_the_state_that_is_stored(
    client: Client,
    before: str,
    after: str,
    allowed: bool,
):
    queue("a")
    old, new = (
        {**manifest("a", weight=weight), "status": {"state": state}}
        for weight, state in ((1, before), (2, after))
    )

    response = answer(client, "queues", review("queues", "UPDATE", new, old))

    assert response["allowed"] is allowed, response
    assert allowed or causes(response) == ["invalid_state"]


def test_a_deletion_that_names_nothing_is_refused(client: Client):
    assert causes(answer(client, "queues", review("queues", "DELETE", None, None))) == [
        "name_required"
    ]


def test_a_change_of_state_below_a_closed_queue_is_refused(client: Client):
    queue("p", state="Closed")
    queue("c", "p", state="Closed")

    response = answer(
        client,
        "queues",
        review(
            "queues",
            "UPDATE",
            manifest("c", parent="p", state="Open"),
            manifest("c", parent="p", state="Closed"),
        ),
    )

    assert (causes(response), response["status"]["code"]) == (["parent_not_open"], 409)


def test_root_is_protected(client: Client):
    response = answer(
        client,
        "queues",
        review("queues", "UPDATE", manifest("root", capability={"cpu": "1"}), manifest("root")),
    )

    assert causes(response) == ["root_protected"]


def test_defaults_come_as_a_patch(client: Client):
    response = answer(client, "queues", review("queues", "CREATE", manifest("a")), "mutate")

    assert response["allowed"]
    assert patch_of(response) == {
        "/spec/weight": 1,
        "/spec/reclaimable": True,
        "/spec/parent": "root",
        "/spec/dequeueStrategy": "traverse",
        "/spec/state": "Open",
    }


def test_what_is_complete_needs_no_patch(client: Client):
    whole = manifest(
        "a",
        weight=1,
        reclaimable=False,
        parent="root",
        dequeueStrategy="fifo",
        state="Closed",
    )

    assert answer(client, "queues", review("queues", "CREATE", whole), "mutate") == {
        "uid": UID,
        "allowed": True,
    }


@pytest.mark.parametrize("dry_run", [True, False])
def test_nothing_is_ever_written(client: Client, dry_run: bool):
    queue("a")
    before = (Queue.objects.count(), Event.objects.count(), Command.objects.count())

    answer(client, "queues", review("queues", "CREATE", manifest("new"), dryRun=dry_run))
    answer(
        client,
        "queues",
        review("queues", "UPDATE", manifest("a", state="Closed"), manifest("a"), dryRun=dry_run),
    )
    answer(client, "queues", review("queues", "CREATE", manifest("new"), dryRun=dry_run), "mutate")
    answer(client, "jobs", review("jobs", "CREATE", job("a"), dryRun=dry_run))

    assert (Queue.objects.count(), Event.objects.count(), Command.objects.count()) == before
    assert Queue.objects.get(name="a").wish == "Open"
