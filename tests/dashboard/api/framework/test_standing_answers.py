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
from scheduler.models import ApiToken, Grant, PodGroup, Queue
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
def test_what_others_wrote_is_in_the_next_whole_list(admin: Caller):
    """Whoever sees everything is answered by a statement that was written for an earlier list."""
    admin.post("queues/", [queue("a"), queue("b")])
    root = Queue.objects.get(name="root")
    first = _names(admin)
    assert _names(admin) == first

    _elsewhere(lambda: Queue.objects.create(name="c", parent=root))
    assert _names(admin) == sorted([*first, "c"])

    _elsewhere(lambda: Queue.objects.filter(name="c").update(deleted_at=timezone.now()))
    assert _names(admin) == first

    _elsewhere(lambda: PodGroup.objects.create(name="g", queue=Queue.objects.get(name="b")))
    by_name = {item["metadata"]["name"]: item for item in admin.get("queues/")["results"]}
    assert [by_name[name]["status"]["pending"] for name in ("a", "b")] == [0, 1]


@pytest.mark.both_databases
def test_first_pages_of_each_order_and_size_are_their_own(admin: Caller):
    admin.post("queues/", [queue("a"), queue("b"), queue("c")])
    names = _names(admin)

    for _ in range(2):
        backwards = admin.get("queues/?ordering=-name")
        assert [item["metadata"]["name"] for item in backwards["results"]] == names[::-1]
        assert backwards["next"] is None
        small = admin.get("queues/?page_size=2")
        assert [item["metadata"]["name"] for item in small["results"]] == names[:2]
        assert "cursor=" in small["next"]
        assert _names(admin) == names


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


def test_an_answer_with_a_changed_piece_is_compressed_to_its_own_text():
    pieces = [f'{{"name":"team-{number}"}}'.encode() * 300 for number in range(8)]
    before = StandingAnswer("1", b"[", *pieces, b"]")
    after = StandingAnswer("2", b"[", *pieces[:3], b"other" * 2000, *pieces[4:], b"]")

    for answer in (before, after, StandingAnswer("3", b""), StandingAnswer("4", b"short")):
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
