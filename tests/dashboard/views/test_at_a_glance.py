"""Seen at a glance: who has what, who waits.

And for who submits, whether there is a line and how long it usually takes.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard.views.overview import holders
from scheduler.domain.resources import Resources
from scheduler.models import PodGroup, Queue
from scheduler.selectors.queues.listing import queue_rows
from tests.dashboard.sample import GPU, add_gang, load_tree
from tests.dashboard.work import signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]

TOO_MUCH = {
    "name": "big",
    "namespace": "default",
    "queue": "vision",
    "task": "worker",
    "replicas": "1",
    "image": "a",
    "memory": "1Gi",
}


class TestWhoHasIt:
    def test_the_queues_that_hold_a_resource_are_named_with_how_much(self):
        load_tree()

        found = holders(queue_rows(), GPU)

        assert [(entry["name"], entry["amount"]) for entry in found["first"]][:2] == [
            ("language", "30"),
            ("vision", "8"),
        ]
        assert not any(
            entry["name"] in ("root", "research", "production") for entry in found["first"]
        )  # they hold nothing of their own

    def test_beyond_five_the_others_are_summed_up(self, monkeypatch: pytest.MonkeyPatch):
        load_tree()
        monkeypatch.setattr("dashboard.views.overview._HOLDERS_SHOWN", 1)

        found = holders(queue_rows(), GPU)

        assert len(found["first"]) == 1
        assert (found["others"], found["rest"]) == (3, "17")

    def test_nobody_is_named_whom_the_reader_may_not_see(self):
        load_tree()

        found = holders(queue_rows(), GPU, {"vision"})

        assert [entry["name"] for entry in found["first"]] == ["vision"]
        assert found["unseen"] == "39"

    def test_what_nobody_has_is_not_said_to_be_held(self):
        load_tree()

        assert holders(queue_rows(), "example.com/none") == {
            "first": [],
            "others": 0,
            "rest": "0",
            "unseen": "",
        }


class TestFromTheQueueToAJob:
    @pytest.mark.parametrize(
        ("name", "page", "offered"),
        [
            ("sam", "vision/", True),
            ("sam", "vision/actions/", True),
            ("admin", "vision/actions/", True),  # whose page is full of buttons has it in the menu
            ("vera", "vision/", False),  # a viewer
            ("vera", "vision/actions/", False),
            ("admin", "research/actions/", False),  # not a leaf
        ],
    )
    def test_who_may_submit_to_it_is_offered_to(self, name: str, page: str, offered: bool):
        small_cluster()

        answer = text(signed_in(name).get(f"/queues/{page}"))

        assert (f'href="/jobs/-/new/?queue={page.partition("/")[0]}"' in answer) is offered

    def test_a_closed_queue_offers_nothing(self):
        small_cluster()
        Queue.objects.filter(name="vision").update(state="Closed", wish="Closed")

        for page in ("vision/", "vision/actions/"):
            assert 'href="/jobs/-/new/?queue=vision"' not in text(
                signed_in("sam").get(f"/queues/{page}")
            )


LARGE = Resources.parse({"cpu": "100", "memory": "100Gi", "nvidia.com/gpu": "8"})


class TestTheLine:
    def test_the_picker_says_how_many_wait(self):
        small_cluster()
        PodGroup.objects.filter(queue__name="vision").delete()
        assert "nobody waits" in text(signed_in("sam").get("/jobs/-/new/"))
        add_gang("vision", "first", "Pending")
        add_gang("vision", "second", "Inqueue")
        add_gang("vision", "third", "Running")

        assert "2 waiting" in text(signed_in("sam").get("/jobs/-/new/"))

    def test_a_check_that_says_wait_says_how_long_the_others_did(self):
        small_cluster()
        now = timezone.now()
        for number in range(6):
            gang = add_gang(
                "vision", f"old-{number}", "Completed", started_at=now, min_resources=LARGE
            )
            PodGroup.objects.filter(pk=gang.pk).update(created_at=now - timedelta(minutes=10))
        for number in range(3):
            add_gang("vision", f"waiting-{number}", "Pending", min_member=1)
        Queue.objects.filter(name="vision").update(state="Suspended", wish="Suspended")
        waiting = PodGroup.objects.filter(
            queue__name="vision", phase__in=("Pending", "Inqueue")
        ).count()

        page = text(signed_in("sam").post("/jobs/-/new/", {**TOO_MUCH, "cpu": "1", "do": "check"}))

        assert f"{waiting} wait in vision now; usual wait " in page

    def test_a_check_that_says_never_says_nothing_of_it(self):
        small_cluster()

        page = text(
            signed_in("sam").post("/jobs/-/new/", {**TOO_MUCH, "cpu": "100000", "do": "check"})
        )

        assert "usual wait" not in page
        assert "the whole cluster: needs 100 000 CPU" in page
