"""Admission webhooks for jobs and podgroups."""

from __future__ import annotations

import pytest
from django.test import Client

from scheduler.models import Namespace
from tests.dashboard.api.webhook_objects import job
from tests.dashboard.reviews import answer, causes, patch_of, review
from tests.services.queues.builders import queue

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gone", "queue_not_open"),
        ("p", "queue_not_leaf"),
        ("root", "queue_is_root"),
        ("ghost", "queue_not_found"),
    ],
)
def test_work_meets_the_same_check_through_every_door(client: Client, name: str, expected: str):
    queue("gone", state="Closed")
    queue("p")
    queue("c", "p")
    annotated = {
        "metadata": {
            "name": "b",
            "namespace": "ns",
            "annotations": {"scheduling.volcano.sh/queue-name": name},
        },
        "spec": {"schedulerName": "volcano"},
    }
    gang = {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"queue": name}}

    assert causes(answer(client, "jobs", review("jobs", "CREATE", job(name)))) == [expected]
    assert causes(answer(client, "podgroups", review("podgroups", "CREATE", gang))) == [expected]
    assert causes(answer(client, "pods", review("pods", "CREATE", annotated))) == [expected]


def test_work_without_a_queue_is_given_one(client: Client):
    Namespace.objects.create(name="ns", annotations={"scheduling.volcano.sh/queue-name": "team"})
    queue("team")

    gang = {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"queue": "default"}}
    assert patch_of(answer(client, "podgroups", review("podgroups", "CREATE", gang), "mutate")) == {
        "/spec/queue": "team"
    }
    assert (
        patch_of(answer(client, "jobs", review("jobs", "CREATE", job(None)), "mutate"))[
            "/spec/queue"
        ]
        == "team"
    )


def test_the_namespace_and_the_begun_name_of_the_request_count(client: Client):
    Namespace.objects.create(name="ns", annotations={"scheduling.volcano.sh/queue-name": "shut"})
    queue("shut", state="Closed")
    made = {
        "metadata": {"generateName": "web-"},
        "spec": {"schedulerName": "volcano", "containers": []},
    }

    assert causes(answer(client, "pods", review("pods", "CREATE", made, namespace="ns"))) == [
        "queue_not_open"
    ]
    assert answer(client, "pods", review("pods", "CREATE", made, namespace="other"))["allowed"]


def test_a_job_stays_in_its_queue(client: Client):
    queue("other")

    assert causes(
        answer(client, "jobs", review("jobs", "UPDATE", job("other"), job("default")))
    ) == ["immutable_field_changed"]
