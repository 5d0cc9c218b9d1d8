"""Which error an answer becomes, and what it says."""

from __future__ import annotations

import json

import pytest

from scheduler.clusters.kubernetes import errors


def answer(status: int, reason: str = "", body: bytes | None = None, **headers: str):
    told = {
        "kind": "Status",
        "message": "words",
        "reason": reason,
        "details": {"retryAfterSeconds": 3},
    }
    content = json.dumps(told).encode() if body is None else body
    return errors.error_of_answer("GET /x", status, content, headers)


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Expired),
        (410, "Gone", errors.Expired),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooMany),
        (500, "InternalError", errors.ServerError),
        (503, "ServiceUnavailable", errors.Unavailable),
        (504, "Timeout", errors.ServerError),
        (418, "", errors.ApiError),
    ],
)
def test_every_status_has_its_error(status, reason, kind):
    error = answer(status, reason)

    assert type(error) is kind
    assert (error.status, error.reason, str(error)) == (status, reason, "GET /x: words")


@pytest.mark.parametrize("status", [400, 403, 409])
def test_what_a_webhook_refuses_is_no_conflict_and_no_lack_of_rights(status):
    words = 'admission webhook "queues.fumarole.io" denied the request: research is Open.'
    body = json.dumps({"kind": "Status", "message": words, "reason": "Conflict"}).encode()

    error = answer(status, body=body)

    assert type(error) is errors.Denied
    assert error.refusal == "research is Open."


def test_how_long_to_wait_comes_from_the_header_or_the_details():
    assert answer(429, **{"Retry-After": "7"}).retry_after == 7.0
    assert answer(429).retry_after == 3.0
    assert answer(429, body=b"", **{"Retry-After": "soon"}).retry_after is None


def test_an_answer_of_something_in_between_is_shown_as_it_is():
    error = answer(502, body=b"<html>bad gateway")

    assert str(error) == "GET /x: <html>bad gateway"


def test_an_empty_answer_says_its_status():
    assert str(answer(500, body=b"")) == "GET /x: answered 500"
