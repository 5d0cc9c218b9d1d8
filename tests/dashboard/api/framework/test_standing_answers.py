"""Lists that are answered again while nothing was written.

Whoever writes, from whatever process, is seen by the very next request, and so is a right that was
taken away.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.api.framework.standing_answers import StandingAnswer, StandingAnswers
from scheduler.models import ApiToken, Grant, Queue
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.grants import grant_role
from tests.dashboard.api.conftest import Caller, queue

pytestmark = [pytest.mark.django_db(transaction=True)]


def _elsewhere(write: Callable[[], Any]) -> None:
    """Over a connection of its own, as another process would."""

    def work() -> None:
        write()
        connection.close()

    thread = Thread(target=work)
    thread.start()
    thread.join()


def _names(caller: Caller) -> list[str]:
    return [item["metadata"]["name"] for item in caller.get("queues/")["results"]]


@pytest.fixture
def viewer(admin: Caller) -> Caller:
    """Has asked twice already, so that the second answer may have been the first again."""
    admin.post("queues/", [queue("a"), queue("b")])
    caller = Caller("viewer")
    grant_role(user="viewer", role="viewer", queue="a", by=SYSTEM)
    assert _names(caller) == _names(caller) == ["a"]
    return caller


@pytest.mark.both_databases
def test_a_revoked_token_fails_at_the_next_request(viewer: Caller):
    _elsewhere(lambda: ApiToken.objects.filter(user=viewer.user).update(revoked_at=timezone.now()))

    viewer.get("queues/", expect=401)


@pytest.mark.both_databases
def test_an_account_that_is_switched_off_fails_at_the_next_request(viewer: Caller):
    _elsewhere(lambda: type(viewer.user).objects.filter(pk=viewer.user.pk).update(is_active=False))

    viewer.get("queues/", expect=401)


@pytest.mark.both_databases
def test_a_role_that_is_given_or_taken_counts_at_the_next_request(viewer: Caller):
    _elsewhere(lambda: grant_role(user="viewer", role="viewer", queue="b", by=SYSTEM))
    assert _names(viewer) == ["a", "b"]

    _elsewhere(lambda: Grant.objects.filter(user=viewer.user, queue__name="a").delete())
    assert _names(viewer) == ["b"]


@pytest.mark.both_databases
def test_a_changed_row_is_in_the_next_answer(viewer: Caller):
    _elsewhere(lambda: Queue.objects.filter(name="a").update(weight=9))

    assert viewer.get("queues/")["results"][0]["spec"]["weight"] == 9


@pytest.mark.both_databases
def test_a_token_whose_time_is_over_fails_though_nothing_was_written(
    viewer: Caller, monkeypatch: pytest.MonkeyPatch
):
    later = timezone.now() + timedelta(days=1)
    ApiToken.objects.filter(user=viewer.user).update(expires_at=later)
    viewer.get("queues/")
    monkeypatch.setattr(timezone, "now", lambda: later)

    viewer.get("queues/", expect=401)


@pytest.mark.postgres
def test_the_same_list_again_takes_one_statement_and_two_for_the_roles(
    admin: Caller, viewer: Caller
):
    for caller, statements in ((admin, 1), (viewer, 3)):
        first = caller.get("queues/")

        with CaptureQueriesContext(connection) as asked:
            assert caller.get("queues/") == first

        assert len(asked) == statements


@pytest.mark.postgres
def test_another_caller_never_gets_it(admin: Caller, viewer: Caller):
    other = Caller("other")

    assert _names(viewer) == ["a"]
    assert _names(other) == []
    assert set(_names(admin)) >= {"a", "b"}


def test_its_compressed_form_is_the_same_text():
    answer = StandingAnswer("state", b'{"results":[]}' * 5000)

    assert gzip.decompress(answer.compressed()) == answer.content


def test_the_answer_that_was_asked_for_longest_ago_goes_first():
    answers = StandingAnswers(most_bytes=20)
    for key in ("old", "new"):
        answers.keep(key, StandingAnswer("s", b"0123456789"))
    answers.find("old", "s")

    answers.keep("newest", StandingAnswer("s", b"0123456789"))

    assert answers.find("new", "s") is None
    assert answers.find("old", "s") is not None
    assert answers.find("newest", "another state") is None
