"""From a request to the session that it brought about: lines of one id."""

from __future__ import annotations

import logging

import pytest
from django.test import Client

from scheduler.logs import REQUESTS, SESSIONS, JsonLines, known_as
from tests.worlds import job, node, run_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each line as it is when it is logged: later its ids are gone."""
    found: list[str] = []
    # The handler serves all tests of this process: what is changed in it must be put back.
    monkeypatch.setattr(
        caplog.handler, "emit", lambda record: found.append(JsonLines().format(record))
    )
    return found


def test_each_request_has_a_line_with_its_id_and_without_its_query(
    caplog: pytest.LogCaptureFixture, lines: list[str]
):
    caplog.set_level(logging.INFO, logger=REQUESTS)

    answer = Client().get("/healthz?q=secret", headers={"X-Request-ID": "request-0001"})

    assert answer["X-Request-ID"] == "request-0001"
    [line] = [line for line in lines if "/healthz" in line]
    assert '"request_id": "request-0001"' in line
    assert '"status": 200' in line
    assert "secret" not in line


def test_lines_of_single_requests_and_sessions_are_off_unless_asked_for():
    assert not logging.getLogger(REQUESTS).isEnabledFor(logging.INFO)
    assert not logging.getLogger(SESSIONS).isEnabledFor(logging.INFO)


def test_a_session_that_places_something_says_so_under_its_number(
    caplog: pytest.LogCaptureFixture, lines: list[str]
):
    caplog.set_level(logging.INFO, logger=SESSIONS)
    node("n1", cpu="4")
    job("train")

    with known_as(request_id="request-0001"):
        run_session()
        run_session()

    [line] = lines
    assert '"session": 1' in line
    assert '"request_id": "request-0001"' in line
    assert '"bound": 1' in line
