"""The API in a browser: pages in the site's look, whose forms work without a script."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from dashboard.api.urls import COLLECTIONS, SINGLETONS
from scheduler.models import Queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def visitor() -> Client:
    client = Client(enforce_csrf_checks=True, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    client.force_login(get_user_model().objects.create_superuser("boss"))
    return client


def send(visitor: Client, path: str, **fields: str) -> Any:
    """As the page's form does it: its CSRF token goes along."""
    page = visitor.get(path).content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token, page[:500]
    return visitor.post(path, {"csrfmiddlewaretoken": token[1], **fields})


@pytest.mark.parametrize("name", ["", *COLLECTIONS, "policy", "cluster"])
def test_every_collection_is_a_page(visitor: Client, name: str):
    answer = visitor.get(f"/api/v1/{name}/" if name else "/api/v1/")
    page = answer.content.decode()

    assert answer.status_code == 200
    assert "Copy as curl" in page
    assert '<nav class="rail"' in page  # the site's own frame
    assert "style=" not in page


def test_objects_are_made_changed_commanded_and_deleted_with_forms(visitor: Client):
    made = send(visitor, "/api/v1/queues/", _method="POST", _content="metadata: {name: a}\nspec: {weight: 2}\n")
    assert made.status_code == 201
    changed = send(visitor, "/api/v1/queues/a/", _method="PATCH", _content='{"spec": {"weight": 3}}', _content_type="application/json")
    assert (changed.status_code, Queue.objects.get(name="a").weight) == (200, 3)
    closed = visitor.get("/api/v1/queues/a/close/")
    assert closed.status_code == 405  # the page of a verb: nothing to read, a form to send
    assert "Send POST" in closed.content.decode()
    assert send(visitor, "/api/v1/queues/a/close/", _method="POST", _content="reason: done").status_code == 200
    assert send(visitor, "/api/v1/queues/a/", _method="DELETE").status_code == 200
    assert not Queue.objects.filter(name="a").exists()


def test_a_refusal_is_a_page_too(visitor: Client):
    answer = send(visitor, "/api/v1/queues/", _method="POST", _content="metadata: {name: Bad}")

    assert answer.status_code == 400
    assert "invalid_name" in answer.content.decode()


def test_a_stranger_is_shown_the_way_in():
    answer = Client().get("/api/v1/queues/", headers={"Accept": "text/html"})

    assert answer.status_code == 401
    assert "/accounts/login/?next=/api/v1/queues/" in answer.content.decode()


def test_the_format_can_be_chosen_in_the_address(visitor: Client):
    assert visitor.get("/api/v1/queues/?format=json")["Content-Type"] == "application/json"
    assert visitor.get("/api/v1/queues/?format=yaml")["Content-Type"].startswith("application/yaml")


def test_singletons_are_listed(visitor: Client):
    page = visitor.get("/api/v1/").content.decode()

    assert all(f"/api/v1/{name}" in page for name in SINGLETONS)
