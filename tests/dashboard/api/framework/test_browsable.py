"""The API in a browser: pages in the site's look, whose forms work without a script."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction
from django.test import Client

from dashboard.api.urls import COLLECTIONS, SINGLETONS
from scheduler.models import Queue
from scheduler.yaml_texts import to_yaml
from tests.dashboard.api.conftest import Caller, queue
from tests.dashboard.api.framework.test_permissions import World, body_for
from tests.dashboard.api.test_any_write import WRITES
from tests.dashboard.api.test_any_write import address as address_of
from tests.dashboard.work import text

pytestmark = pytest.mark.django_db


@pytest.fixture
def visitor() -> Client:
    client = Client(
        enforce_csrf_checks=True, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    )
    client.force_login(
        get_user_model().objects.get_or_create(
            username="boss", defaults={"is_superuser": True, "is_staff": True}
        )[0]
    )
    return client


def send(visitor: Client, path: str, **fields: str) -> Any:
    """As the page's form does it: its CSRF token goes along."""
    page = text(visitor.get(path))
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token, page[:500]
    return visitor.post(path, {"csrfmiddlewaretoken": token[1], **fields})


@pytest.mark.parametrize("name", ["", *COLLECTIONS, "policy", "cluster"])
def test_every_collection_is_a_page(visitor: Client, name: str):
    answer = visitor.get(f"/api/v1/{name}/" if name else "/api/v1/")
    page = text(answer)

    assert answer.status_code == 200
    assert "Copy as curl" in page
    assert '<nav class="rail"' in page  # the site's own frame
    assert "style=" not in page


def test_objects_are_made_changed_commanded_and_deleted_with_forms(visitor: Client):
    made = send(
        visitor,
        "/api/v1/queues/",
        _method="POST",
        _content="metadata: {name: a}\nspec: {weight: 2}\n",
    )
    assert made.status_code == 201
    changed = send(
        visitor,
        "/api/v1/queues/a/",
        _method="PATCH",
        _content='{"spec": {"weight": 3}}',
        _content_type="application/json",
    )
    assert (changed.status_code, Queue.objects.get(name="a").weight) == (200, 3)
    closed = visitor.get("/api/v1/queues/a/close/")
    assert closed.status_code == 405  # the page of a verb: nothing to read, a form to send
    assert "Send POST" in text(closed)
    assert (
        send(
            visitor, "/api/v1/queues/a/close/", _method="POST", _content="reason: done"
        ).status_code
        == 200
    )
    assert send(visitor, "/api/v1/queues/a/", _method="DELETE").status_code == 200
    assert not Queue.objects.filter(name="a").exists()


class Forms(HTMLParser):
    """Every form of a page with its fields, as a browser would send them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[dict[str, str]] = []
        self._area = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and given.get("method") == "post":
            self.forms.append({"action": given["action"]})
        elif tag == "input" and self.forms and "name" in given:
            self.forms[-1][given["name"]] = given.get("value", "")
        elif tag == "textarea":
            self._area = given["name"]
            self.forms[-1][self._area] = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.forms[-1][self._area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = ""


def form_on(visitor: Client, address: str, method: str) -> dict[str, str]:
    page = visitor.get(address).content.decode()  # as it came: YAML needs its line breaks
    return next(
        form
        for form in Forms(page).forms
        if form.get("_method") == method and form["action"].startswith("/api/")
    )


@pytest.fixture
def world(visitor: Client, admin: Caller) -> World:
    made = World(admin)
    admin.post("users/", {"username": "ann"}, expect=201)
    admin.user.set_password("an old password")
    admin.user.save()
    visitor.force_login(admin.user)
    return made


def sent(visitor: Client, form: dict[str, str], **fields: str) -> Any:
    return visitor.post(
        form["action"],
        {**{name: text for name, text in form.items() if name != "action"}, **fields},
    )


def test_every_write_has_a_form_that_works(visitor: Client, admin: Caller, world: World):
    """Found by walking the routes.

    Each is filled and sent as a browser does it, and undone afterwards.
    """
    wrong = []
    for route in WRITES:
        name, action, method, _ = route
        address = f"/api/v1/{address_of(route, admin, world)}"
        body = body_for(name, action, "own")
        form = form_on(visitor, address, method)
        with transaction.atomic():
            answer = sent(
                visitor,
                form,
                **({"_content": to_yaml(body)} if body is not None else {}),
            )
            transaction.set_rollback(True)
        visitor.force_login(
            admin.user
        )  # deleting an account, or changing a password, ends sessions
        if answer.status_code not in (200, 201, 202, 409) or 'id="answer"' not in text(answer):
            wrong.append(f"{method} {address}: {answer.status_code} {text(answer)[-300:]}")

    assert wrong == []


def test_a_form_of_a_change_can_be_sent_as_it_is(visitor: Client, admin: Caller, world: World):
    wrong = []
    for route in (route for route in WRITES if route[2] in ("PUT", "PATCH")):
        address = f"/api/v1/{address_of(route, admin, world)}"
        answer = sent(visitor, form_on(visitor, address, route[2]))
        if answer.status_code != 200:
            wrong.append(
                f"{route[2]} {address}: {answer.status_code} "
                f"{re.findall('role=.alert.>(.*?)</div>', text(answer))}"
            )

    assert wrong == []


def test_a_form_that_was_refused_keeps_what_was_typed_and_says_what_is_wrong(
    visitor: Client,
    admin: Caller,
    world: World,
):
    for route in (route for route in WRITES if route[2] != "DELETE"):
        address = f"/api/v1/{address_of(route, admin, world)}"
        answer = sent(
            visitor, form_on(visitor, address, route[2]), _content="] this is [ no object"
        )
        page = text(answer)

        assert (answer.status_code, 'role="alert"' in page) == (400, True), address
        assert form_in(page, route[2])["_content"] == "] this is [ no object", address


def form_in(page: str, method: str) -> dict[str, str]:
    return next(form for form in Forms(page).forms if form.get("_method") == method)


def test_a_form_takes_the_parameters_of_its_request(visitor: Client, admin: Caller):
    admin.post("queues/", [queue("a", state="Closed"), queue("b", "a", state="Closed")])
    form = form_on(visitor, "/api/v1/queues/a/", "DELETE")

    assert sent(visitor, form).status_code == 409
    tried = sent(visitor, form, **{"_query.cascade": "true", "_query.dry_run": "true"})
    assert (
        tried.status_code,
        "/api/v1/queues/a/?cascade=true&amp;dry_run=true" in text(tried),
    ) == (200, True)
    assert Queue.objects.filter(name="b").exists()
    assert sent(visitor, form, **{"_query.cascade": "true"}).status_code == 200
    assert not Queue.objects.filter(name="a").exists()
    assert (
        sent(
            visitor, form_on(visitor, "/api/v1/queues/", "POST"), **{"_query.nonsense": "1"}
        ).status_code
        == 400
    )


def test_options_tell_what_can_be_asked(admin: Caller):
    admin.ask("OPTIONS", "queues/", expect=204)
    assert admin.last.headers["Allow"] == "GET, HEAD, OPTIONS, POST"
    admin.ask("OPTIONS", "queues/root/tree/", expect=204)
    assert admin.last.headers["Allow"] == "GET, HEAD, OPTIONS"
    admin.ask("OPTIONS", "nowhere/", expect=404)
    assert Client().options("/api/v1/queues/").status_code == 401


def test_a_refusal_is_a_page_too(visitor: Client):
    answer = send(visitor, "/api/v1/queues/", _method="POST", _content="metadata: {name: Bad}")

    assert answer.status_code == 400
    assert "invalid_name" in text(answer)


def test_a_stranger_is_shown_the_way_in():
    answer = Client().get("/api/v1/queues/", headers={"Accept": "text/html"})

    assert answer.status_code == 401
    assert "/accounts/login/?next=/api/v1/queues/" in text(answer)


def test_the_format_can_be_chosen_in_the_address(visitor: Client):
    assert visitor.get("/api/v1/queues/?format=json")["Content-Type"] == "application/json"
    assert visitor.get("/api/v1/queues/?format=yaml")["Content-Type"].startswith("application/yaml")


def test_singletons_are_listed(visitor: Client):
    page = text(visitor.get("/api/v1/"))

    assert all(f"/api/v1/{name}" in page for name in SINGLETONS)
