"""Addresses and parameters that should never have been sent."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from django.test import Client

from tests.dashboard.api.conftest import Caller, job

pytestmark = pytest.mark.django_db


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


def test_a_format_that_is_not_known_is_a_bad_parameter(admin: Caller):
    (violation,) = admin.get("queues/?format=xml", expect=400)["violations"]

    assert (violation["field"], violation["fix"]) == ("format", "one of json, yaml, api")


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
