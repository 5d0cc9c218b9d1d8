"""One command for several queues at once."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from scheduler.models import Command, Queue
from tests.dashboard import work
from tests.dashboard.work import small_cluster, text


class TestSeveralAtOnce:
    @pytest.fixture(autouse=True)
    def at_work(self, db: None) -> None:
        small_cluster()

    def test_what_is_in_them_is_told_before_anything_is_done(self):
        """train-1 (4 pods) and label (2) run, train-2 (20) waits.

        Vision is chosen and closes with research too, and counts once.
        """
        page = work.signed_in("admin").get(
            "/queues/-/commands/?command=close&queue=research&queue=vision"
        )

        load = page.context["load"]
        assert (load.running, load.waiting, load.pods_running, load.pods_waiting) == (2, 1, 6, 20)
        assert load.users == {"sam", "lena"}
        said = re.sub(r"<[^>]+>|\s+", " ", text(page))
        assert re.search(
            r"gangs running +2 +gangs waiting +1 +pods running +6 +pods waiting +20 ", said
        )
        assert "1 gang running, 1 waiting; 4 pods running, 20 waiting" in said
        assert set(Queue.objects.values_list("state", flat=True)) == {"Open"}

    def test_a_queue_that_does_not_change_counts_for_nothing(self):
        client = work.signed_in("admin")
        client.post("/queues/batch/close/")

        load = client.get("/queues/-/commands/?command=close&queue=batch&queue=language").context[
            "load"
        ]

        assert (load.running, load.pods_running) == (1, 2)

    def test_more_than_a_thousand_are_asked_about_and_commanded(self):
        """As a browser without JavaScript sends it: every ticked box is a field, and the token is
        checked.
        """
        root = Queue.objects.get(name="root")
        names = [f"many-{number}" for number in range(1200)]
        Queue.objects.bulk_create(Queue(name=name, parent=root) for name in names)
        client = Client(enforce_csrf_checks=True)
        client.force_login(get_user_model().objects.get(username="admin"))
        bar = re.search(
            r'<form id="bulk".*?</form>',
            text(client.get("/queues/?view=table")),
            re.DOTALL,
        )
        assert bar
        assert 'method="post"' in bar[0]

        asked = client.post(
            "/queues/-/commands/", {**hidden_fields(bar[0]), "command": "suspend", "queue": names}
        )
        assert asked.status_code == 200
        assert "Suspend 1200 queues?" in text(asked)
        assert not Queue.objects.exclude(wish="Open").exists()
        assert not Command.objects.exists()

        confirming = hidden_fields(text(asked).partition("data-dialog-form")[2])
        assert sorted(confirming["queue"]) == sorted(names)
        done = client.post("/queues/-/commands/", confirming)
        assert "1200 of 1200 changed" in text(done)
        assert Queue.objects.filter(name__in=names, wish="Suspended").count() == 1200

        back = client.post(
            "/queues/-/commands/",
            hidden_fields(text(done).partition('<form id="undo"')[2]),
        )
        assert "Resume 1200 queues?" in text(back)
        assert Queue.objects.filter(name__in=names, wish="Suspended").count() == 1200

    def test_a_question_without_a_token_is_refused(self):
        client = Client(enforce_csrf_checks=True)
        client.force_login(get_user_model().objects.get(username="admin"))

        asked = client.post(
            "/queues/-/commands/", {"command": "suspend", "queue": ["vision"], "confirmed": "1"}
        )

        assert asked.status_code == 403
        assert Queue.objects.get(name="vision").wish == "Open"


def hidden_fields(form: str) -> dict[str, list[str]]:
    """Those of the first form in the text."""
    fields: dict[str, list[str]] = {}
    inputs = re.findall(
        r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form.partition("</form>")[0]
    )
    for name, value in inputs:
        fields.setdefault(name, []).append(unescape(value))
    return fields
