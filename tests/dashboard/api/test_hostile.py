"""What should never have been sent: each gets its clear refusal, and nothing is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from scheduler.models import AuditEntry, Queue
from tests.dashboard.api.conftest import Caller, queue

pytestmark = pytest.mark.django_db

DEEP_JSON = '{"spec":' * 5000 + "1" + "}" * 5000
NESTED_JSON = '{"a":' * 60 + "1" + "}" * 60
BOMB = 'a: &a ["x","x","x"]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\nmetadata: {name: bomb}\n'


@pytest.mark.parametrize(
    ("text", "kind", "code", "words"),
    [
        (DEEP_JSON, "application/json", 400, "nested"),
        (NESTED_JSON, "application/json", 400, "nested"),
        ('{"a": NaN}', "application/json", 400, "NaN"),
        ('{"a": 1, "a": 2}', "application/json", 400, "twice"),
        ('{"a": ' + "9" * 5000 + "}", "application/json", 400, "digits"),
        ("{", "application/json", 400, "line 1"),
        (BOMB, "application/yaml", 400, "anchors"),
        ("[" * 2000, "application/yaml", 400, "cannot be read"),
        ("a: !!python/object/apply:os.system [ls]", "application/yaml", 400, "tags"),
        ("a: b: c", "application/yaml", 400, "YAML"),
        ("<a/>", "application/xml", 415, "media type"),
        ("{}", "application/json; charset=utf-16", 415, "UTF-8"),
        ("[]", "application/json", 200, "results"),
        ('"text"', "application/json", 400, "object"),
        ("null", "application/json", 400, "object"),
        ("17", "application/json", 400, "object"),
    ],
)
def test_texts_that_are_no_objects(admin: Caller, text: str, kind: str, code: int, words: str):
    answer = admin.ask("POST", "queues/", text=text, content_type=kind, expect=code)

    assert words in json.dumps(answer)
    assert Queue.objects.count() == 2


def test_bytes_that_are_no_text(admin: Caller):
    response = admin.client.generic(
        "POST",
        "/api/v1/queues/",
        b"\xff\xfe{}",
        content_type="application/json",
        headers=admin.headers,
    )

    assert response.status_code == 400
    assert "UTF-8" in response.json()["detail"]


def test_more_than_the_server_reads(admin: Caller, settings: Any):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100_000

    answer = admin.ask("POST", "queues/", text="[" + "1," * 100_000 + "1]", expect=413)
    assert answer["title"] == "Too large"


def test_a_million_items(admin: Caller):
    answer = admin.ask("POST", "queues/", text="[" + "1," * 999_999 + "1]", expect=400)

    assert "1000000 objects" in answer["detail"]


@pytest.mark.parametrize(
    "quantity",
    [
        "2c",
        "1 Gi",
        "NaN",
        "inf",
        "1_000",
        "-",
        "",
        "0x10",
        "1e400",
        "9" * 70,
        "½",
        "١",
        "1Gi ",
        "++1",
        None,
        True,
        [],
        {},
        "1n",
    ],
)
def test_quantities_of_every_nonsense_form(admin: Caller, quantity: Any):
    answer = admin.post("queues/", queue("q", capability={"cpu": quantity}), expect=400)

    assert answer["violations"][0]["field"].startswith("spec.capability")


NAMES = [
    "Ünïcode",
    "名前",
    "a" * 254,
    "..",
    ".",
    "a/b",
    "../../etc/passwd",
    "%2e%2e",
    "a\x00b",
    "a b",
    "-a",
    "a-",
    "A",
    "'; DROP TABLE scheduler_queue; --",
    "{{ 7*7 }}",
    "<script>alert(1)</script>",
    "${jndi:ldap://x}",
    "a\nb",
    "\u202egnp",
    "\ud83d",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_none(admin: Caller, name: str):
    answer = admin.post("queues/", queue(name), expect=400)

    assert answer["violations"][0]["field"] in ("metadata.name", "metadata")
    assert "<script>" not in admin.last.headers.get("Content-Type", "")
    assert Queue.objects.count() == 2


@pytest.mark.parametrize(
    "text",
    [
        "'; DELETE FROM scheduler_queue; --",
        "{{ settings.SECRET_KEY }}",
        "<img src=x onerror=alert(1)>",
        "\\",
        '"',
    ],
)
def test_characters_of_other_languages_are_only_text(admin: Caller, text: str):
    admin.post(
        "queues/",
        {**queue("q", type=text[:100]), "metadata": {"name": "q", "annotations": {"note": text}}},
        expect=201,
    )
    admin.post("queues/q/suspend/", {"reason": text})

    assert admin.get("queues/q/")["metadata"]["annotations"] == {"note": text}
    page = admin.ask("GET", "queues/q/", Accept="text/html", expect=200)
    assert "<img src=x" not in page
    csv = admin.ask("GET", "audit/?action=SuspendQueue", Accept="text/csv", expect=200)
    assert text.replace('"', '""') in csv


def test_a_cell_that_a_spreadsheet_would_run_is_marked_as_text(admin: Caller):
    admin.post("queues/default/suspend/", {"reason": "=1+1"})

    assert "'=1+1" in admin.ask("GET", "audit/", Accept="text/csv", expect=200)


@pytest.mark.parametrize("reason", [7, ["x"], "x" * 1025, "a\x00b"])
def test_reasons_that_are_none(admin: Caller, reason: Any):
    admin.post("queues/default/suspend/", {"reason": reason}, expect=400)


def test_wrong_methods_and_places_are_problems_too(admin: Caller):
    assert admin.ask("PUT", "queues/", expect=405)["status"] == 405
    assert "GET" in admin.last["Allow"]
    assert admin.get("nowhere/", expect=404)["status"] == 404
    assert admin.get("/api/v2/queues/", expect=404)["status"] == 404
    assert admin.ask("GET", "queues/", Accept="image/png", expect=406)["status"] == 406
    assert admin.ask("DELETE", "policy/", expect=405)
    assert admin.last["X-Request-ID"]


def test_the_key_of_a_repeated_request_has_bounds(admin: Caller):
    admin.post("queues/", queue("a"), expect=400, **{"Idempotency-Key": "x" * 129})
    assert not AuditEntry.objects.filter(name="a").exists()


HALF = r'"\ud800"'


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("queues/", '{"metadata": {"name": "a", "labels": {"x": %s}}, "spec": {"parent": "root"}}'),
        ("queues/", '{"metadata": {"name": "a"}, "spec": {"parent": %s}}'),
        ("queues/default/suspend/", '{"reason": %s}'),
        ("commands/", '{"action": "SuspendQueue", "target": {"kind": "Queue", "name": %s}}'),
        (
            "jobs/",
            '{"metadata": {"name": "a", "annotations": {"x": %s}}, "spec": {"queue": "default"}}',
        ),
        ("users/", '{"username": "a", "email": %s, "password": "a long password"}'),
        ("groups/", '{"name": %s}'),
        ("grants/", '{"user": %s, "role": "viewer", "queue": "root"}'),
        ("tokens/", '{"name": %s, "scopes": ["read"]}'),
        ("policy/validate/", '{"spec": {"policy": %s}}'),
        ("validate/", '{"kind": "Queue", "metadata": {"name": %s}}'),
        ("apply/", '[{"kind": "Queue", "metadata": {"name": "a", "labels": {"x": %s}}}]'),
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "application/yaml"])
def test_half_a_character(admin: Caller, path: str, body: str, kind: str):
    answer = admin.client.post(
        f"/api/v1/{path}",
        body % HALF,
        content_type=kind,
        headers=admin.headers,
    )

    assert answer.status_code == 400
    assert "half of a character" in answer.json()["detail"]
    assert answer.json()["violations"][0]["field"]


def test_both_halves_of_a_character_are_one(admin: Caller):
    answer = admin.client.post(
        "/api/v1/groups/",
        r'{"name": "\ud83d\ude00"}',
        content_type="application/json",
        headers=admin.headers,
    )

    assert answer.json()["spec"]["name"] == "😀"
    assert answer["Location"] == "/api/v1/groups/%F0%9F%98%80/"


def test_half_a_character_in_a_review(db: None):
    head = '{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"'
    review = head + ', "request": {"uid": ' + HALF + "}}"

    answer = Client().post("/admission/queues/validate", review, content_type="application/json")

    assert answer.status_code == 400
    assert "half of a character" in answer.json()["detail"]


def test_a_packed_body_is_refused_as_what_it_is(admin: Caller):
    answer = admin.post("queues/", queue("a"), expect=415, **{"Content-Encoding": "gzip"})

    assert "compressed body (gzip)" in answer["detail"]
    admin.post("queues/", queue("a"), expect=201, **{"Content-Encoding": "identity"})


@pytest.mark.parametrize("body", [None, 5, "x"])
def test_a_body_that_is_no_object_is_told_so_in_a_sentence(admin: Caller, body: Any):
    answer = admin.ask("POST", "queues/", text=json.dumps(body), expect=400)

    assert answer["detail"].startswith("The body must be an object with metadata and spec, not ")
    assert "None" not in answer["detail"]


def test_a_page_refuses_what_is_too_large_with_413(settings: Any):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000

    assert (
        Client()
        .post(
            "/accounts/login/",
            {"username": "x" * 2000},
            content_type="application/x-www-form-urlencoded",
        )
        .status_code
        == 413
    )
