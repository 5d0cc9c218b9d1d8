"""Deleting a queue, at once or when it is drained."""

from __future__ import annotations

import re

from django.test import Client

from scheduler.models import Queue
from tests.dashboard.clients import signed_in
from tests.dashboard.sample import add_queue, add_user
from tests.dashboard.work import text


class TestCloseFirst:
    def test_opening_a_queue_that_is_to_be_deleted_says_what_it_takes_back(self, admin: Client):
        admin.post("/queues/vision/farewell/", {"queue": ["vision"]})

        page = text(admin.get("/queues/vision/open/"))

        assert 'data-code="deletion_dropped"' in page
        assert "admin asked to delete vision when drained" in page

    def test_an_order_for_other_queues_than_are_there_is_refused(self, admin: Client):
        answer = admin.post("/queues/research/farewell/", {"queue": ["research"]})

        assert answer.status_code == 409
        assert "has changed since it was shown" in text(answer)
        assert Queue.objects.get(name="research").state == "Open"

    def test_nor_is_anything_deleted_at_once_that_was_not_shown(self, admin: Client):
        add_queue("old")
        add_queue("older", "old")
        Queue.objects.filter(name__startswith="old").update(wish="Closed", state="Closed")
        page = text(admin.get("/queues/old/delete/?cascade=on"))
        assert re.findall(r'name="queue" value="([^"]+)"', page) == ["older", "old"]

        answer = admin.post("/queues/old/delete/", {"cascade": "on", "queue": ["old"]})

        assert (
            answer.status_code,
            "has changed since it was shown" in text(answer),
        ) == (409, True)
        assert (
            admin.post(
                "/queues/old/delete/", {"cascade": "on", "queue": ["older", "old"]}
            ).status_code
            == 302
        )
        assert not Queue.objects.filter(name="old").exists()

    def test_who_may_not_delete_it_is_told_so(self, admin: Client):
        reader = signed_in(add_user("reader"))

        assert reader.post("/queues/vision/farewell/", {"queue": ["vision"]}).status_code == 403
        assert reader.post("/queues/vision/keep/").status_code == 403
