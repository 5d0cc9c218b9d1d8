"""What is written back, against a real API server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import Conflict, NotFound
from scheduler.clusters.kubernetes.read import READERS
from scheduler.clusters.kubernetes.reports import (
    EVENTS,
    Event,
    send_event,
    set_pod_condition,
    set_podgroup_status,
    set_queue_status,
)
from scheduler.clusters.kubernetes.resources import PODGROUPS, PODS, QUEUES
from scheduler.clusters.kubernetes.values import Condition, ObjectMeta
from tests.control_plane import objects

MOMENT = datetime(2026, 11, 17, 12, 0, 0, 123456, tzinfo=UTC)


def meta_of(resource, raw) -> ObjectMeta:
    return READERS[resource](raw).meta


def test_a_condition_leaves_the_others_of_the_pod_alone(real_client):
    pod = meta_of(PODS, real_client.create(PODS, objects.pod("p"), "default"))
    set_pod_condition(
        real_client, pod, Condition("DisruptionTarget", "True", "Reclaimed", "for science")
    )

    set_pod_condition(
        real_client, pod, Condition("PodScheduled", "False", "Unschedulable", "no room", MOMENT)
    )
    set_pod_condition(
        real_client, pod, Condition("PodScheduled", "False", "QueueHeld", "held", MOMENT)
    )

    raw = real_client.get(PODS, "p", "default")
    assert len(raw["status"]["conditions"]) == 2
    scheduled = READERS[PODS](raw).scheduled
    assert scheduled == Condition(
        "PodScheduled", "False", "QueueHeld", "held", MOMENT.replace(microsecond=0)
    )


def test_a_later_pod_of_the_same_name_gets_no_condition(real_client):
    old = meta_of(PODS, real_client.create(PODS, objects.pod("p"), "default"))
    real_client.delete(PODS, "p", "default")
    real_client.create(PODS, objects.pod("p"), "default")

    with pytest.raises(Conflict):
        set_pod_condition(real_client, old, Condition("PodScheduled", "False", "Unschedulable"))


def test_an_event_is_there_for_the_pod(real_client):
    pod = meta_of(PODS, real_client.create(PODS, objects.pod("p"), "default"))

    send_event(real_client, Event(PODS, pod, "Scheduled", "placed on n1", at=MOMENT), "here")

    (event,) = real_client.list(EVENTS, "default")
    assert event["metadata"]["name"].startswith("p.")
    assert event["eventTime"] == "2026-11-17T12:00:00.123456Z"
    assert (event["reason"], event["note"], event["type"]) == (
        "Scheduled",
        "placed on n1",
        "Normal",
    )
    assert event["regarding"]["uid"] == pod.uid


def test_an_event_about_a_queue_has_a_long_note_cut(real_client):
    queue = meta_of(QUEUES, real_client.create(QUEUES, objects.queue("science")))

    send_event(real_client, Event(QUEUES, queue, "Held", "x" * 2000, type="Warning"), "here")

    (event,) = real_client.list(EVENTS, "default")
    assert (len(event["note"]), event["regarding"]["kind"]) == (1024, "Queue")


def test_the_status_of_a_queue_is_written_beside_its_spec(real_client):
    queue = meta_of(QUEUES, real_client.create(QUEUES, objects.queue("science", weight=3)))

    set_queue_status(real_client, queue, {"state": "Open", "running": 2, "allocated": {"cpu": "4"}})

    raw = real_client.get(QUEUES, "science")
    assert (raw["status"]["state"], raw["status"]["running"], raw["spec"]["weight"]) == (
        "Open",
        2,
        3,
    )
    with pytest.raises(Conflict):
        set_queue_status(real_client, queue, {"state": "Closed"})


def test_volcano_may_apply_another_state_and_leaves_the_rest_of_the_status(real_client):
    """As its controller does: without force, and with nothing but the state."""
    queue = meta_of(QUEUES, real_client.create(QUEUES, objects.queue("science")))
    set_queue_status(real_client, queue, {"state": "Closed", "running": 2})

    opened = apply_as_volcano(real_client, "Open")

    assert opened["status"] == {"state": "Open", "running": 2}
    queue = meta_of(QUEUES, opened)
    set_queue_status(real_client, queue, {"state": "Closing", "running": 1})
    set_queue_status(real_client, meta_of(QUEUES, stored_queue(real_client)), {"pending": 3})
    assert stored_queue(real_client)["status"] == {"state": "Closing", "running": 1, "pending": 3}
    assert apply_as_volcano(real_client, "Closed")["status"]["state"] == "Closed"


def test_a_state_that_somebody_set_by_hand_is_taken_over_for_volcano(real_client):
    real_client.create(QUEUES, objects.queue("science"))
    by_hand = {"status": {"state": "Closed"}}
    raw = real_client.patch(QUEUES, "science", by_hand, subresource="status")
    with pytest.raises(Conflict):
        apply_as_volcano(real_client, "Open")

    set_queue_status(real_client, meta_of(QUEUES, raw), {"state": "Open"})

    assert apply_as_volcano(real_client, "Closed")["status"]["state"] == "Closed"


def test_a_later_queue_of_the_same_name_gets_no_state(real_client):
    old = meta_of(QUEUES, real_client.create(QUEUES, objects.queue("science")))
    real_client.delete(QUEUES, "science")
    with pytest.raises(NotFound):
        set_queue_status(real_client, old, {"state": "Closed"})
    real_client.create(QUEUES, objects.queue("science"))

    with pytest.raises(Conflict):
        set_queue_status(real_client, old, {"state": "Closed"})


def stored_queue(client: Client) -> dict[str, Any]:
    return client.get(QUEUES, "science")


def apply_as_volcano(client: Client, state: str) -> dict[str, Any]:
    body = {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": "science"},
        "status": {"state": state},
    }
    return client.apply(
        QUEUES, "science", body, subresource="status", field_manager="queue-controller"
    )


def test_the_status_of_a_podgroup_is_a_field_as_any_other(real_client):
    group = meta_of(PODGROUPS, real_client.create(PODGROUPS, objects.podgroup("gang"), "default"))

    set_podgroup_status(real_client, group, {"phase": "Inqueue"})

    assert real_client.get(PODGROUPS, "gang", "default")["status"]["phase"] == "Inqueue"
    with pytest.raises(Conflict):
        set_podgroup_status(real_client, group, {"phase": "Running"})
