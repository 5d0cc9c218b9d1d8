"""What the queue pages show to whom, and what their forms mean.

The clicking is in tests/browser.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.http import QueryDict
from django.test import Client
from django.utils import timezone

from dashboard.forms.queue import QueueForm, differences
from dashboard.forms.queue_family import family
from dashboard.forms.queue_input import form_from_manifest, form_from_post, manifest_from_yaml
from dashboard.live.notices import site_notices
from dashboard.present.share_map import WIDTH, place
from dashboard.present.starvation import starved
from scheduler.admission.reading.queue import queue_manifest
from scheduler.models import ClusterState, Command, Queue
from scheduler.selectors.cluster.summary import ClusterFacts
from scheduler.selectors.queues.facts import queue_tree
from scheduler.selectors.queues.listing import queue_rows
from tests.dashboard.sample import GPU, add_user, load_tree
from tests.dashboard.work import text


@pytest.fixture
def tree(db: None) -> None:
    load_tree()


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def admin(tree: None) -> Client:
    return signed_in(get_user_model().objects.create(username="admin", is_superuser=True))


@pytest.fixture
def narrow(tree: None) -> Client:
    """Somebody who may see research and what is below it, and nothing else."""
    return signed_in(add_user("narrow", queue="research"))


class TestWhoSeesWhat:
    @pytest.mark.parametrize(
        "path",
        [
            "/",
            "/queues/",
            "/queues/?view=table",
            "/queues/?view=map",
            "/queues/-/names.json",
            "/queues/-/rows.json",
            "/queues/vision/",
        ],
    )
    def test_queues_out_of_sight_are_named_nowhere(self, narrow: Client, path: str):
        page = narrow.get(path)

        assert page.status_code == 200
        assert "research" in text(page) or "language" in text(page)
        assert "serving" not in text(page)

    @pytest.mark.parametrize(
        "path",
        [
            "",
            "jobs/",
            "history/",
            "yaml/",
            "edit/",
            "delete/",
            "actions/",
            "suspend/",
            "history.json",
        ],
    )
    def test_a_queue_out_of_sight_is_answered_as_one_that_is_not_there(
        self,
        narrow: Client,
        path: str,
    ):
        hidden = narrow.get(f"/queues/serving/{path}")
        missing = narrow.get(f"/queues/nothing/{path}")

        assert hidden.status_code == missing.status_code == 404
        assert (
            text(hidden).replace("serving", "nothing").split("Request")[0]
            == text(missing).split("Request")[0]
        )

    @pytest.mark.parametrize("path", ["edit/", "delete/", "close/"])
    def test_what_one_may_see_but_not_do_names_the_permission(self, narrow: Client, path: str):
        answer = narrow.get(f"/queues/vision/{path}")

        assert answer.status_code == 403
        assert "You need the permission" in text(answer)

    def test_a_bulk_order_with_one_forbidden_queue_changes_none(self, tree: None):
        lead = signed_in(add_user("lead", role="admin", queue="research"))

        answer = lead.post(
            "/queues/-/commands/", {"command": "suspend", "queue": ["vision", "serving"]}
        )

        assert answer.status_code == 404
        assert not Command.objects.exists()


class TestCommands:
    def test_a_get_changes_nothing(self, admin: Client):
        page = text(admin.get("/queues/vision/close/"))

        assert "Close vision?" in page
        assert Queue.objects.get(name="vision").wish == "Open"
        assert not Command.objects.exists()

    def test_a_refused_order_is_409_and_stays_on_record(self, admin: Client):
        admin.post("/queues/research/suspend/")

        answer = admin.post("/queues/vision/resume/")

        assert answer.status_code == 409
        assert "resume research first" in text(answer)
        assert Command.objects.filter(result="Refused", actor="admin", door="UI").exists()

    @pytest.mark.parametrize(
        ("wanted", "goes_to"),
        [("/queues/?q=x", "/queues/?q=x"), ("https://elsewhere.example/", "/queues/vision/")],
    )
    def test_afterwards_one_is_led_back_but_never_off_the_site(
        self,
        admin: Client,
        wanted: str,
        goes_to: str,
    ):
        answer = admin.post("/queues/vision/suspend/", {"next": wanted})

        assert answer["Location"] == goes_to

    def test_posting_needs_the_form_s_token(self, tree: None):
        client = Client(enforce_csrf_checks=True)
        client.force_login(get_user_model().objects.create(username="admin", is_superuser=True))

        answer = client.post("/queues/vision/suspend/")

        assert answer.status_code == 403
        assert "This form has expired" in text(answer)


class TestForm:
    def test_empty_is_unset_and_zero_is_zero(self):
        data = QueryDict(
            "name=a&deserved:cpu=0&deserved:memory=&capability:cpu="
            "&new-resource=example.com/fpga&guarantee:%2B=2"
        )

        spec = form_from_post(data, QueueForm()).manifest()["spec"]

        assert spec["deserved"] == {"cpu": "0"}
        assert spec["capability"] == {}
        assert spec["guarantee"] == {"resource": {"example.com/fpga": "2"}}

    @pytest.mark.usefixtures("tree")
    def test_a_form_that_is_sent_back_unchanged_is_the_same_queue(self):
        stored = queue_manifest(queue_tree()["vision"])

        again = form_from_manifest(stored).manifest(stored)

        assert (
            differences({**again["spec"], "guarantee": None}, {**stored["spec"], "guarantee": None})
            == []
        )  # type: ignore[dict-item]

    @pytest.mark.usefixtures("tree")
    def test_the_family_says_who_has_what_and_how_much_is_too_much(self):
        form = QueueForm(name="vision", parent="research", amounts={GPU: {"deserved": "26"}})

        (line,) = family(form, queue_tree())

        assert (line["together"], line["has"], line["over"], line["others"]) == (
            "46",
            "40",
            "6",
            "language 20",
        )

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("a: [1", "This is not YAML in line"),
            ("a: &x [1]\nb: *x", "anchors and aliases"),
            ("a: " + "[" * 1000, "nested more than 40 deep"),
            ("a: 1\n---\nb: 2", "There are 2 documents"),
            ("", "There are 0 documents"),
            ("x" * 200_001, "too long"),
        ],
        ids=["broken", "bomb", "deep", "two", "none", "long"],
    )
    def test_yaml_that_is_not_one_queue_is_refused_in_words(self, text: str, words: str):
        _, problem = manifest_from_yaml(text)

        assert words in problem

    def test_what_can_not_be_read_while_typing_is_an_answer_not_an_error(self, admin: Client):
        answer = admin.post(
            "/queues/-/check/",
            {"name": "a", "weight": "heavy", "deserved:cpu": "2c", "parent": "nowhere"},
        )

        assert answer.status_code == 200
        for words in ("write 2 or 2000m", "nowhere"):
            assert words in text(answer)


@pytest.mark.usefixtures("tree")
class TestPictures:
    def test_the_map_divides_each_width_among_the_children(self):
        cells = {cell.row.name: cell for cell in place(queue_rows(), GPU)}

        assert cells["root"].width == WIDTH
        assert cells["research"].width == pytest.approx(WIDTH * 40 / 64)
        assert cells["vision"].width == pytest.approx(cells["research"].width / 2)
        assert cells["vision"].x == pytest.approx(cells["language"].x + cells["language"].width)

    def test_the_map_of_one_branch_begins_with_that_branch(self):
        cells = {
            cell.row.name: cell
            for cell in place(queue_rows().visible_to({"research", "vision", "language"}), GPU)
        }

        assert (cells["research"].width, cells["research"].level, cells["vision"].level) == (
            WIDTH,
            0,
            1,
        )

    def test_starved_is_who_asks_deserves_and_has_not(self):
        lines = {line["name"]: line for line in starved(queue_rows())}

        assert lines["batch"]["gap"] == "3 GPU"
        assert "vision" not in lines  # has less than it deserves, and asks for no more
        assert "serving" not in lines


class TestNotices:
    def test_nothing_to_say_about_a_cluster_that_runs(self):
        assert site_notices(ClusterFacts(last_session_at=timezone.now())) == []

    def test_a_scheduler_that_is_silent_is_told(self):
        last = timezone.now() - timedelta(seconds=30)

        (notice,) = site_notices(ClusterFacts(last_session_at=last))

        assert (notice["text"], notice["at"]) == ("No scheduling for", last.isoformat())
        assert notice["after"] == "(normally every 1 s). Is the scheduler worker running?"

    def test_a_session_of_the_future_is_told(self):
        (notice,) = site_notices(ClusterFacts(last_session_at=timezone.now() + timedelta(hours=5)))

        assert "s in the future, and none has run since. Was the clock put back" in notice["text"]

    def test_how_long_it_is_silent_counts_on_with_the_exact_moment_on_hover(self, admin: Client):
        last = timezone.now() - timedelta(hours=1)
        ClusterState.objects.update(last_session_at=last)

        page = text(admin.get("/queues/"))

        exact = last.strftime("%Y-%m-%d %H:%M:%S UTC")
        time = (
            f'<time datetime="{re.escape(last.isoformat())}" title="since {exact}" '
            "data-since>60 min</time>"
        )
        assert re.search(rf"No scheduling for {time} \(normally every 1 s\)", page)

    def test_paused_is_told_with_who_and_why_instead(self):
        facts = ClusterFacts(
            last_session_at=timezone.now() - timedelta(hours=1),
            paused=True,
            paused_by="admin",
            pause_reason="upgrade",
        )

        assert [notice["text"] for notice in site_notices(facts)] == [
            "Scheduling is paused by admin: “upgrade”. Nothing new starts until it is resumed."
        ]

    def test_an_invalid_tree_leads_to_the_first_queue_that_is_wrong(self):
        facts = ClusterFacts(
            last_session_at=timezone.now(), invalid=(("vision", "too much"), ("zebra", "too"))
        )

        (notice,) = site_notices(facts)

        assert notice["url"] == "/queues/vision/"
        assert "(2 queues): too much" in notice["text"]
