"""Requests that admission webhooks answer or refuse: addresses, tokens, malformed reviews."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.domain.lifecycle import QueueCommand
from scheduler.services.queues.commands import command_queue
from tests.dashboard.api.webhook_objects import job, manifest
from tests.dashboard.reviews import answer, causes, post, review
from tests.services.queues.builders import queue

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("task", "operation"), [("validate", "CONNECT"), ("mutate", "UPDATE"), ("mutate", "DELETE")]
)
def test_an_operation_that_is_not_reviewed_is_refused(client: Client, task: str, operation: str):
    assert causes(
        answer(client, "queues", review("queues", operation, manifest("a"), manifest("a")), task)
    ) == ["invalid_operation"]


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
        (
            {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v2"},
            "it must be admission.k8s.io/v1 or",
        ),
        ({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}, "request is missing"),
        (review("queues", "CREATE", manifest("a"), uid=""), "request.uid is missing"),
        (review("queues", "CREATE", manifest("a"), operation=3), "request.operation is missing"),
        (review("queues", "CREATE", None), "request.object is missing"),
        (
            review("queues", "CREATE", manifest("a"), object="text"),
            "request.object is missing or not an object",
        ),
        (
            review("queues", "CREATE", manifest("a"), kind=None, resource=None),
            "request.kind is missing",
        ),
    ],
)
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
    with django_assert_max_num_queries(5):
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
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
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
    client: Client,
    kind: str,
    odd: dict[str, Any],
    spec: dict[str, Any],
):
    body = review(
        kind,
        "CREATE",
        {"metadata": {"name": "a", "namespace": "ns"}, "spec": spec},
        **odd,
    )

    response = post(client, f"/admission/{kind}/validate", body)

    assert response.status_code in (200, 400)
    assert (
        response.json()["response"]["allowed"] in (True, False)
        if response.status_code == 200
        else response.json()["detail"]
    )
