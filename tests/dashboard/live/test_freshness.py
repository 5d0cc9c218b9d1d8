"""A page that is asked for again is made again only if something was written since."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from django.http import HttpResponse
from django.test import Client

from dashboard.live.freshness import is_as_new_as, page_mark
from scheduler.models import ClusterState, Queue
from scheduler.services.records.change_log import ensure_own_change_log
from tests.dashboard.sample import load_tree

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _sample() -> None:
    load_tree()
    ensure_own_change_log()


def _admin() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username="admin", is_superuser=True))
    return client


def _opened(client: Client, path: str) -> str:
    """The mark of a page as a browser opens it."""
    answer = client.get(path, headers={"Accept": "text/html"})
    (mark,) = re.findall(r'data-as-of="([^"]*)"', answer.content.decode())
    return str(mark)


def _again(client: Client, path: str, mark: str) -> HttpResponse:
    return client.get(path, headers={"X-As-Of": mark})


@pytest.mark.parametrize("path", ["/", "/queues/vision/", "/nodes/", "/jobs/", "/sessions/"])
def test_a_page_is_not_made_twice_when_nothing_was_written(path: str):
    client = _admin()
    mark = _opened(client, path)

    answer = _again(client, path, mark)

    assert (answer.status_code, answer.content) == (204, b"")


def test_a_written_row_makes_the_page_anew():
    client = _admin()
    mark = _opened(client, "/queues/vision/")

    Queue.objects.filter(name="research").update(weight=7)

    assert _again(client, "/queues/vision/", mark).status_code == 200


@pytest.mark.parametrize("change", [{"last_session": 812}, {"paused": True}], ids=str)
def test_sessions_and_the_pause_make_the_page_anew(change: dict[str, int]):
    client = _admin()
    mark = _opened(client, "/sessions/")

    ClusterState.objects.update(**change)

    assert _again(client, "/sessions/", mark).status_code == 200


@pytest.mark.parametrize(
    "mark", ["", "x", "1 2", "1 two sqlite", "1 2 elsewhere", "1 99999999 sqlite"]
)
def test_a_mark_that_means_nothing_makes_the_page_anew(mark: str):
    assert not is_as_new_as(mark)
    assert _again(_admin(), "/nodes/", mark).status_code == 200


def test_who_signed_out_is_not_told_that_all_is_well():
    answer = _again(Client(), "/nodes/", page_mark())

    assert answer.status_code == 302
