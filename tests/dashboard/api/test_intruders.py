"""Callers who should get nothing: without a name, from other sites, with worthless tokens."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from scheduler.models import ApiToken, Queue
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.tokens import create_token
from tests.dashboard.api.conftest import Caller, queue

pytestmark = pytest.mark.django_db


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


def test_a_read_only_installation_takes_no_writes(admin: Caller, settings: Any):
    settings.READ_ONLY = True

    assert admin.post("queues/", queue("a"), expect=503)["detail"]
    assert admin.last["Retry-After"]
    admin.get("queues/")


def test_a_host_that_is_not_ours_is_refused_in_the_form_of_the_door():
    api, page = (
        Client().get(path, headers={"Host": "evil.example"})
        for path in ("/api/v1/queues/", "/queues/")
    )

    assert (api.status_code, api["Content-Type"]) == (400, "application/problem+json")
    assert (page.status_code, page["Content-Type"]) == (400, "text/html; charset=utf-8")
