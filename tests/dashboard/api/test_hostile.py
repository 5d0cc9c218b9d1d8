"""What should never have been sent: each gets its clear refusal, and nothing is written."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from scheduler.models import ApiToken, AuditEntry, Queue
from scheduler.services.accounts.access import create_token
from scheduler.services.accounts.actors import SYSTEM
from tests.dashboard.api.conftest import Caller, job, queue

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
    "Ünïcode", "名前", "a" * 254, "..", ".", "a/b", "../../etc/passwd", "%2e%2e", "a\x00b", "a b", "-a", "a-", "A",
    "'; DROP TABLE scheduler_queue; --", "{{ 7*7 }}", "<script>alert(1)</script>", "${jndi:ldap://x}", "a\nb", "\u202egnp", "\ud83d",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_none(admin: Caller, name: str):
    answer = admin.post("queues/", queue(name), expect=400)

    assert answer["violations"][0]["field"] in ("metadata.name", "metadata")
    assert "<script>" not in admin.last.headers.get("Content-Type", "")
    assert Queue.objects.count() == 2


@pytest.mark.parametrize(
    "name",
    [
        "%00",
        "..%2f..%2fadmin",
        "%2e%2e",
        "'%20OR%201=1--",
        "%F0%9F%98%80",
        "a%0d%0aX:%20y",
        "x" * 3000,
    ],
)
@pytest.mark.parametrize(
    "collection", ["queues", "jobs/default", "nodes", "users", "sessions", "tokens"]
)
def test_tricks_in_the_path(admin: Caller, name: str, collection: str):
    answer = admin.ask("GET", f"{collection}/{name}/", expect=404)

    assert answer["status"] == 404
    assert admin.last["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "text",
    ["%00", "'%20OR%20'1'='1", "{{7*7}}", "%25", "%5C", "a" * 4000, "%F0%9F%98%80", "*", "%22"],
)
@pytest.mark.parametrize(
    "parameter",
    [
        "search",
        "queue",
        "label",
        "user",
        "phase",
        "min_request",
        "older_than",
        "cursor",
        "fields",
        "ordering",
    ],
)
def test_tricks_in_parameters(admin: Caller, parameter: str, text: str):
    admin.post("jobs/", job("train"), expect=201)

    admin.ask("GET", f"jobs/?{parameter}={text}")
    assert admin.last.status_code in (200, 400)


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


def test_tokens_that_are_wrong_old_revoked_or_of_another_kind(admin: Caller):
    user = get_user_model().objects.create_user("ann")
    made = create_token(user, "t", ("read",), by=SYSTEM)
    client = Client()

    def code(header: str) -> int:
        return client.get(
            "/api/v1/queues/", headers={"Authorization": header, "Accept": "application/json"}
        ).status_code

    assert code(f"Bearer {made.secret}") == 200
    assert code(f"Bearer {made.secret}x") == 401
    assert code(f"Basic {made.secret}") == 401
    assert code("Bearer ") == 401
    assert code("Bearer \xff") == 401
    assert code(f"Bearer {made.token.digest}") == 401
    ApiToken.objects.filter(pk=made.token.pk).update(
        expires_at=timezone.now() - timedelta(seconds=1)
    )
    assert code(f"Bearer {made.secret}") == 401
    ApiToken.objects.filter(pk=made.token.pk).update(expires_at=None, revoked_at=timezone.now())
    answer = client.get(
        "/api/v1/queues/",
        headers={"Authorization": f"Bearer {made.secret}", "Accept": "application/json"},
    )
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, 'Bearer realm="Fumarole"')
    assert made.secret not in json.dumps(
        list(ApiToken.objects.values_list("digest", "prefix", "name"))
    )


def test_nobody_gets_in_without_a_name(db: None):
    answer = Client().get("/api/v1/queues/", headers={"Accept": "application/json"})

    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/problem+json"


def test_a_post_from_another_site_is_refused(db: None):
    user = get_user_model().objects.create_superuser("boss", password="pw")
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    body = json.dumps(queue("stolen"))

    plain = client.post(
        "/api/v1/queues/",
        body,
        content_type="application/json",
        headers={"Accept": "application/json"},
    )
    assert plain.status_code == 403
    assert "CSRF" in plain.json()["detail"]
    form = client.post(
        "/api/v1/queues/",
        {"_content": body, "_content_type": "application/json"},
        headers={"Origin": "https://evil.example"},
    )
    assert form.status_code in (403, 415)
    assert not Queue.objects.filter(name="stolen").exists()


def test_other_sites_may_not_read_unless_they_are_named(admin: Caller, settings: Any):
    asked = {"Origin": "https://other.example"}
    assert "Access-Control-Allow-Origin" not in admin.client.get(
        "/api/v1/queues/", headers={**admin.headers, **asked}
    )

    settings.CORS_ALLOWED_ORIGINS = ["https://other.example"]
    answer = admin.client.get("/api/v1/queues/", headers={**admin.headers, **asked})
    assert answer["Access-Control-Allow-Origin"] == "https://other.example"
    assert "Access-Control-Allow-Credentials" not in answer
    preflight = admin.client.options(
        "/api/v1/queues/", headers={**asked, "Access-Control-Request-Method": "POST"}
    )
    assert preflight.status_code == 204


def test_a_session_that_was_fixed_before_sign_in_is_worth_nothing(db: None):
    get_user_model().objects.create_superuser("boss", password="a long password")
    client = Client()
    client.get("/accounts/login/")
    session = client.session
    session["planted"] = True
    session.save()
    planted = session.session_key
    client.cookies["sessionid"] = planted

    client.post("/accounts/login/", {"username": "boss", "password": "a long password"})

    assert client.cookies["sessionid"].value != planted
    victim = Client()
    victim.cookies["sessionid"] = planted
    assert victim.get("/api/v1/queues/", headers={"Accept": "application/json"}).status_code == 401


def test_wrong_methods_and_places_are_problems_too(admin: Caller):
    assert admin.ask("PUT", "queues/", expect=405)["status"] == 405
    assert "GET" in admin.last["Allow"]
    assert admin.get("nowhere/", expect=404)["status"] == 404
    assert admin.get("/api/v2/queues/", expect=404)["status"] == 404
    assert admin.ask("GET", "queues/", Accept="image/png", expect=406)["status"] == 406
    assert admin.ask("DELETE", "policy/", expect=405)
    assert admin.last["X-Request-ID"]


def test_a_read_only_installation_takes_no_writes(admin: Caller, settings: Any):
    settings.READ_ONLY = True

    assert admin.post("queues/", queue("a"), expect=503)["detail"]
    assert admin.last["Retry-After"]
    admin.get("queues/")


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
        f"/api/v1/{path}", body % HALF, content_type=kind, headers=admin.headers
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


@pytest.mark.parametrize(
    "at",
    [
        "\ud800",
        "a\x00",
        "2020-01-01",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        2**70,
        float("nan"),
        None,
        [],
    ],
)
@pytest.mark.parametrize(
    ("collection", "ordering"),
    [("queues", "name"), ("queues", "created"), ("jobs", "queue"), ("users", "joined")],
)
def test_cursors_that_somebody_made_up(admin: Caller, collection: str, ordering: str, at: Any):
    cursors = [
        base64.urlsafe_b64encode(json.dumps([back, [at, 1]]).encode()).decode()
        for back in (True, False)
    ]

    address = f"/api/v1/{collection}/"
    codes = {
        admin.client.get(
            address, {"cursor": one, "ordering": ordering}, headers=admin.headers
        ).status_code
        for one in cursors
    }

    assert codes <= {200, 400}


@pytest.mark.parametrize("name", ["a/b", ".", ".."])
def test_names_that_no_address_can_hold(admin: Caller, name: str):
    admin.post("groups/", {"name": name}, expect=400)
    admin.post("users/", {"username": name, "password": "a long password"}, expect=400)


@pytest.mark.parametrize(
    "parameters", [{"lang": "../../x"}, {"version": "a\r\nX-Evil: 1"}, {"format": "x"}]
)
def test_the_description_takes_no_tricks(db: None, parameters: dict[str, str]):
    answer = Client().get("/api/schema/", parameters)

    assert answer.status_code in (200, 404)
    assert "X-Evil" not in answer


def test_a_packed_body_is_refused_as_what_it_is(admin: Caller):
    answer = admin.post("queues/", queue("a"), expect=415, **{"Content-Encoding": "gzip"})

    assert "compressed body (gzip)" in answer["detail"]
    admin.post("queues/", queue("a"), expect=201, **{"Content-Encoding": "identity"})


def test_a_format_that_is_not_known_is_a_bad_parameter(admin: Caller):
    (violation,) = admin.get("queues/?format=xml", expect=400)["violations"]

    assert (violation["field"], violation["fix"]) == ("format", "one of json, yaml, api")


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


def test_a_host_that_is_not_ours_is_refused_in_the_form_of_the_door():
    api, page = (
        Client().get(path, headers={"Host": "evil.example"})
        for path in ("/api/v1/queues/", "/queues/")
    )

    assert (api.status_code, api["Content-Type"]) == (400, "application/problem+json")
    assert (page.status_code, page["Content-Type"]) == (400, "text/html; charset=utf-8")


@pytest.mark.parametrize("address", ["/api/v1", "/api/docs", "/api/schema"])
def test_an_address_without_its_slash_leads_to_the_one_with_it(address: str):
    answer = Client().get(address)

    assert (answer.status_code, answer["Location"]) == (301, f"{address}/")


@pytest.mark.parametrize(
    "path", ["queues/?search=", "jobs/?user=", "audit/?search=", "jobs/?queue=", "apply/?prune="]
)
def test_a_parameter_too_long_to_be_compared_is_refused_by_name(admin: Caller, path: str):
    method = "POST" if path.startswith("apply") else "GET"
    answer = admin.ask(method, path + "a" * 60_000, expect=400)

    assert answer["violations"][0]["field"] == path.partition("?")[2].rstrip("=")


@pytest.mark.parametrize("path", ["/jobs/?q=", "/queues/?q=", "/nodes/?q=", "/audit/?q="])
def test_a_page_that_is_asked_for_too_long_a_word_says_so(admin: Caller, path: str):
    browser = Client()
    browser.force_login(admin.user)

    answer = browser.get(path + "a" * 60_000)

    assert (answer.status_code, "longer than 12,000 characters" in answer.content.decode()) == (
        400,
        True,
    )


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("path", ["queues/", "jobs/default/train/", "apply/"])
def test_more_parameters_than_are_read_are_a_bad_request(admin: Caller, method: str, path: str):
    many = "&".join(f"name=a{number}" for number in range(1_200))

    answer = admin.ask(method, f"{path}?{many}", expect=400)

    assert "1,000 parameters" in answer["detail"]


def test_more_conditions_than_a_database_takes_are_a_bad_request(admin: Caller):
    labels = ",".join(f"k{number}=v" for number in range(500))

    assert admin.get(f"jobs/?label={labels}", expect=400)["violations"][0]["field"] == "label"
    assert len(admin.get("jobs/?label=" + ",".join(["a=b"] * 20))["results"]) == 0
