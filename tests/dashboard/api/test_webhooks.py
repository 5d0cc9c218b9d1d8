"""The admission webhooks, asked as a real API server asks."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import Command, Event, Namespace, Queue
from scheduler.services.queues.commands import command_queue
from tests.dashboard.reviews import UID, answer, causes, patch_of, post, review
from tests.services.queues.builders import podgroup, queue

pytestmark = pytest.mark.django_db


def manifest(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {
            "name": name,
            "uid": "c2b4",
            "creationTimestamp": "2026-11-16T06:21:00Z",
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": spec,
        "status": {},
    }


def job(queue_name: str | None, **spec: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "minAvailable": 1,
        "tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"containers": []}}}],
        **spec,
    }
    body |= {"queue": queue_name} if queue_name is not None else {}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ns"},
        "spec": body,
    }


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
            "queues", "CREATE", manifest("a", parent="ghost", capability={"cpu": "-1"}, weight=-3)
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
        client, "queues", review("queues", "CREATE", manifest("a", parent="p", wieght=3))
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
    client: Client, before: str, after: str, allowed: bool
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
        "a", weight=1, reclaimable=False, parent="root", dequeueStrategy="fifo", state="Closed"
    )

    assert answer(client, "queues", review("queues", "CREATE", whole), "mutate") == {
        "uid": UID,
        "allowed": True,
    }


@pytest.mark.parametrize(
    ("task", "operation"), [("validate", "CONNECT"), ("mutate", "UPDATE"), ("mutate", "DELETE")]
)
def test_an_operation_that_is_not_reviewed_is_refused(client: Client, task: str, operation: str):
    assert causes(
        answer(client, "queues", review("queues", operation, manifest("a"), manifest("a")), task)
    ) == ["invalid_operation"]


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


def test_a_status_is_not_asked_for_and_so_not_refused(client: Client):
    response = answer(
        client,
        "queues",
        review("queues", "UPDATE", manifest("a", weight=-1), manifest("a"), subResource="status"),
    )

    assert response["allowed"]


def test_another_kind_is_refused(client: Client):
    response = answer(
        client,
        "queues",
        review("queues", "CREATE", manifest("a"), api=("apps", "v1", "Deployment")),
    )

    assert not response["allowed"]
    assert "apps/v1/Deployment is not reviewed here" in response["status"]["message"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ("[" * 100_000, "too deeply"),
        ([], "The body is missing or not an object"),
        ({"kind": "Pod"}, "it must be AdmissionReview"),
        ({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v2"}, "it must be admission.k8s.io/v1 or"),
        ({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}, "request is missing"),
        (review("queues", "CREATE", manifest("a"), uid=""), "request.uid is missing"),
        (review("queues", "CREATE", manifest("a"), operation=3), "request.operation is missing"),
        (review("queues", "CREATE", None), "request.object is missing"),
        (review("queues", "CREATE", manifest("a"), object="text"), "request.object is missing or not an object"),
        (review("queues", "CREATE", manifest("a"), kind=None, resource=None), "request.kind is missing"),
    ],
)  # fmt: skip
def test_a_malformed_review_gets_a_sentence(client: Client, body: Any, sentence: str):
    response = post(client, "/admission/queues/validate", body)

    assert response.status_code == 400
    assert response["Content-Type"] == "application/problem+json"
    assert sentence in response.json()["detail"]


def test_a_review_that_is_too_large_is_refused(client: Client, settings: Any):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100

    assert (
        post(
            client, "/admission/queues/validate", review("queues", "CREATE", manifest("a"))
        ).status_code
        == 413
    )


def test_only_a_post_is_answered(client: Client):
    assert client.get("/admission/queues/validate").status_code == 405


@pytest.mark.parametrize(
    "path", ["/admission/pods/mutate", "/admission/nodes/validate", "/admission/queues/"]
)
def test_there_are_no_other_addresses(client: Client, path: str):
    assert post(client, path, {}).status_code == 404


def test_a_trailing_slash_does_no_harm(client: Client):
    assert (
        post(
            client, "/admission/queues/validate/", review("queues", "CREATE", manifest("a"))
        ).status_code
        == 200
    )


def test_without_a_token_only_this_machine_is_served(client: Client):
    body = review("queues", "CREATE", manifest("a"))

    assert post(client, "/admission/queues/validate", body, REMOTE_ADDR="::1").status_code == 200
    assert (
        post(client, "/admission/queues/validate", body, REMOTE_ADDR="10.0.0.7").status_code == 403
    )
    assert (
        post(
            client, "/admission/queues/validate", body, HTTP_X_FORWARDED_FOR="10.0.0.7"
        ).status_code
        == 403
    )


def test_with_a_token_whoever_has_it_is_served(client: Client, settings: Any):
    settings.ADMISSION_TOKEN = "s3cret"
    body = review("queues", "CREATE", manifest("a"))

    def status(**headers: str) -> int:
        return int(post(client, "/admission/queues/validate", body, **headers).status_code)

    assert status() == 401
    assert status(HTTP_AUTHORIZATION="Bearer wrong") == 401
    assert status(HTTP_AUTHORIZATION="Bearer s3cret", REMOTE_ADDR="10.0.0.7") == 200


def test_where_admission_is_public_everybody_is_served_unless_there_is_a_token(
    client: Client, settings: Any
):
    settings.ADMISSION_PUBLIC = True
    body = review("queues", "CREATE", manifest("a"))
    far = {"REMOTE_ADDR": "10.0.0.7"}

    assert post(client, "/admission/queues/validate", body, **far).status_code == 200
    settings.ADMISSION_TOKEN = "s3cret"
    assert post(client, "/admission/queues/validate", body, **far).status_code == 401


def test_no_session_and_no_csrf_token_are_needed():
    strict = Client(enforce_csrf_checks=True)

    assert (
        post(
            strict, "/admission/queues/validate", review("queues", "CREATE", manifest("a"))
        ).status_code
        == 200
    )


def test_the_number_of_queries_does_not_grow_with_the_tree(
    client: Client, django_assert_max_num_queries: Any
):
    for number in range(30):
        queue(f"q{number}")
    command_queue("q1", QueueCommand.CLOSE)

    with django_assert_max_num_queries(6):
        answer(client, "queues", review("queues", "CREATE", manifest("a")))
    with django_assert_max_num_queries(4):
        answer(client, "jobs", review("jobs", "CREATE", job("q2")))


_ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.sampled_from(["Queue", "CREATE", "root", "\ud800", "a\x00b"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=10,
)
_FIELDS = st.sampled_from(
    [
        "uid",
        "kind",
        "resource",
        "name",
        "namespace",
        "operation",
        "object",
        "oldObject",
        "subResource",
        "dryRun",
    ]
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    kind=st.sampled_from(["queues", "jobs", "podgroups", "pods"]),
    odd=st.dictionaries(_FIELDS, _ANYTHING, max_size=2),
    spec=st.dictionaries(
        st.sampled_from(
            ["queue", "parent", "tasks", "weight", "state", "capability", "schedulerName"]
        ),
        _ANYTHING,
    ),
)
def test_whatever_is_asked_the_answer_is_a_review_or_a_sentence(
    client: Client, kind: str, odd: dict[str, Any], spec: dict[str, Any]
):
    body = review(
        kind, "CREATE", {"metadata": {"name": "a", "namespace": "ns"}, "spec": spec}, **odd
    )

    response = post(client, f"/admission/{kind}/validate", body)

    assert response.status_code in (200, 400)
    assert (
        response.json()["response"]["allowed"] in (True, False)
        if response.status_code == 200
        else response.json()["detail"]
    )
