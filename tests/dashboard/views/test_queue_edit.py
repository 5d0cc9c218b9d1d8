"""The queue editor: one form as a page and in a drawer; what it does not show it leaves alone."""

from __future__ import annotations

from html import unescape

import pytest
from django.test import Client

from dashboard.present.amounts import as_typed, shown
from scheduler.models import ClusterState, Node, PolicyVersion, Queue
from scheduler.services.queues.create_update import update_queue
from tests.dashboard.sample import GPU, add_user, amounts
from tests.dashboard.views.editing import EDIT, stored, typed
from tests.dashboard.work import text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("tree")]


DRAWER = {"X-Part": "true"}


class TestTheMinimumRunningTime:
    def test_it_is_typed_shown_and_inherited(self, admin: Client):
        research = typed(admin, "research", min_run_seconds="120")

        assert admin.post("/queues/research/edit/", research).status_code == 302

        assert stored("research").min_run_seconds == 120
        assert "minimum running time 120 s" in text(admin.get("/queues/research/"))
        assert "minimum running time 120 s, inherited from research" in text(
            admin.get("/queues/vision/")
        )
        assert 'id="min_run_seconds"' in text(admin.get("/queues/research/edit/"))

    def test_an_empty_input_takes_it_away_and_0_stays_0(self, admin: Client):
        Queue.objects.filter(name="vision").update(min_run_seconds=60)
        admin.post(EDIT, typed(admin, min_run_seconds="0"))
        assert stored().min_run_seconds == 0

        admin.post(EDIT, {**typed(admin, min_run_seconds=""), "version": "2"})

        assert stored().min_run_seconds is None
        page = text(admin.get("/queues/vision/"))
        assert "minimum running time 300 s, as the policy says" in page

    def test_what_is_no_number_is_refused_by_its_label(self, admin: Client):
        page = text(admin.post(EDIT, typed(admin, min_run_seconds="5 min")))

        assert "Minimum running time must be a whole number from 0 to 31536000" in page
        assert stored().min_run_seconds is None

    def test_the_policy_decides_where_no_queue_does(self, admin: Client):
        ClusterState.objects.update(policy=PolicyVersion.objects.create(text=LEFT_IN_PEACE))

        page = text(admin.get("/queues/vision/"))

        assert "minimum running time 90 s, as the policy says" in page


LEFT_IN_PEACE = """
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins:
  - name: gang
  - name: capacity
configurations:
- name: reclaim
  arguments:
    wholeGangs: true
    minRunSeconds: 90
"""


class TestTheDrawer:
    def test_it_gets_the_form_and_nothing_around_it(self, admin: Client):
        page = text(admin.get(EDIT))
        part = text(admin.get(EDIT, headers=DRAWER))

        assert "<html" not in part
        assert 'id="drawer-title">Edit vision<' in part
        assert (
            part[part.index("<form") : part.index("</form>")].count("<input")
            == page[page.index('id="queue-form"') :].count("<input") - 1
        )
        assert 'id="palette-field"' not in part  # the one input more of the page

    def test_what_is_saved_is_told_to_the_page_below(self, admin: Client):
        answer = admin.post(EDIT, typed(admin, weight="5"), headers=DRAWER)

        assert (answer.status_code, answer["X-Outcome"]) == (200, "saved")
        assert "Saved vision. Changed weight from 1 to 5." in text(answer)
        assert "banner-success" in text(answer)
        assert stored().weight == 5
        assert "banner-success" not in text(admin.get("/queues/"))  # told once

    def test_a_page_still_leads_to_the_queue(self, admin: Client):
        assert admin.post(EDIT, typed(admin, weight="5")).headers["Location"] == "/queues/vision/"

    @pytest.mark.parametrize(
        ("changes", "status", "words"),
        [
            ({"weight": "0"}, 400, "Not saved."),
            ({"as": "yaml", "yaml": "a: [1"}, 400, "This is not YAML"),
            ({"version": "77"}, 412, "Not saved yet: somebody changed the same fields"),
        ],
        ids=["refused", "unreadable", "conflict"],
    )
    def test_what_is_not_saved_comes_back_as_typed(
        self,
        admin: Client,
        changes: dict[str, str],
        status: int,
        words: str,
    ):
        answer = admin.post(EDIT, typed(admin, priority="7", **changes), headers=DRAWER)

        assert answer.status_code == status
        assert words in text(answer)
        assert "data-unsaved" in text(answer)
        assert "X-Outcome" not in answer
        assert stored().resource_version == 1

    def test_who_may_not_is_told_so_and_so_is_who_comes_too_late(self, admin: Client):
        viewer = Client()
        viewer.force_login(add_user("viewer"))

        assert viewer.get(EDIT, headers=DRAWER).status_code == 403
        assert admin.post("/queues/gone/edit/", {}, headers=DRAWER).status_code == 404


class TestWhatTheFormDoesNotShow:
    def test_the_type_of_a_queue_outlives_the_form(self, admin: Client):
        Queue.objects.filter(name="vision").update(type="training", labels={"team": "eyes"})

        admin.post(EDIT, typed(admin, weight="5"))

        assert (stored().type, stored().labels, stored().weight) == (
            "training",
            {"team": "eyes"},
            5,
        )

    def test_the_type_is_changed_by_the_form(self, admin: Client):
        admin.post(EDIT, typed(admin, type="training"))

        assert stored().type == "training"

    def test_root_which_has_no_parent_can_be_changed(self, admin: Client):
        answer = admin.post("/queues/root/edit/", typed(admin, "root", priority="3"))

        assert answer.status_code == 302
        assert (stored("root").priority, stored("root").parent) == (3, None)


def check(client: Client, **fields: str) -> str:
    """What the check of a new queue says, as a reader reads it."""
    data = {"name": "new", "parent": "root", "weight": "1", "priority": "0", **fields}
    return " ".join(unescape(text(client.post("/queues/-/check/", data))).split())


class TestTheVerdict:
    @pytest.fixture(autouse=True)
    def cluster(self) -> None:
        Node.objects.create(name="n1", allocatable=amounts(64, 1024, "4Ti"))

    def test_what_the_cluster_cannot_give_is_told_in_the_same_line_as_the_verdict(
        self, admin: Client
    ):
        said = check(admin, **{f"deserved:{GPU}": "64"})

        assert "Can be saved, 1 warning:</strong> The children's deserved nvidia.com/gpu is" in said
        assert "No rule is broken" not in said

    def test_the_children_of_root_are_shown_against_the_cluster(self, admin: Client):
        answer = admin.post(
            "/queues/-/check/", {"name": "new", "parent": "root", f"deserved:{GPU}": "64"}
        )

        (line,) = answer.context["family"]
        assert (line["parent"], line["has"]) == ("the cluster", "64")
        assert line["over"]

    def test_nothing_to_say_is_said(self, admin: Client):
        assert "No rule is broken." in check(admin)

    def test_a_weight_of_0_is_told_to_count_as_1(self, admin: Client):
        assert (
            "Can be saved, 1 warning:</strong> Weight is 0, which counts as not set: the "
            "weight will be 1."
        ) in check(admin, weight="0")

    def test_a_page_that_is_not_saved_says_it_beside_its_button(self, admin: Client):
        foot = text(admin.post(EDIT, typed(admin, weight=""))).partition("form-foot")[2]

        assert "Cannot be saved, 1 rule broken:" in foot
        assert "Weight is empty. Enter 1 to 65535." in foot


class TestTheLastLine:
    def test_an_amount_without_a_resource_is_refused_and_kept(self, admin: Client):
        answer = admin.post(EDIT, typed(admin, **{"deserved:+": "4", "weight": "9"}))

        assert answer.status_code == 400
        assert "Deserved 4 has no resource: the name beside it is empty." in text(answer)
        assert 'name="deserved:+" value="4"' in text(answer)
        assert stored().weight == 1

    def test_it_does_not_vanish_on_the_way_to_yaml(self, admin: Client):
        page = text(admin.post(EDIT, typed(admin, **{"deserved:+": "4", "show": "yaml"})))

        assert "Deserved 4 has no resource" in page
        assert 'name="deserved:+" value="4"' in page

    def test_it_does_not_empty_the_line_of_a_resource_that_has_one(self, admin: Client):
        before = stored().deserved["cpu"]

        answer = admin.post(
            EDIT, typed(admin, **{"new-resource": "cpu", "guarantee:+": "1", "deserved:+": ""})
        )

        assert answer.status_code == 302
        assert (stored().deserved["cpu"], stored().guarantee["cpu"]) == (before, 1000)

    def test_nor_says_it_something_else_than_that_line(self, admin: Client):
        answer = admin.post(EDIT, typed(admin, **{"new-resource": "cpu", "deserved:+": "7"}))

        assert "cpu is typed twice, with different amounts." in text(answer)

    def test_a_quota_of_pods_stays(self, admin: Client):
        update_queue("vision", {"spec": {"capability": {"pods": "100"}}}, merge=True)

        admin.post(EDIT, typed(admin, version="2", weight="3"))

        assert (stored().weight, stored().capability["pods"]) == (3, 100)


@pytest.mark.parametrize(
    ("pasted", "read"),
    [
        ("1 600", "1600"),
        ("1\u202f600", "1600"),
        ("1\u00a0600\u00a0000", "1600000"),
        ("12.5 Gi", "12.5Gi"),
        (" 4 ", "4"),
        ("1 60", "1 60"),
        ("1 6000", "1 6000"),
        ("2 of 4", "2 of 4"),
    ],
)
def test_a_figure_is_read_as_the_page_shows_it(pasted: str, read: str):
    assert as_typed(pasted) == read


def test_what_a_page_shows_can_be_pasted_into_the_form(admin: Client):
    amount = 1_600_000

    answer = admin.post(
        "/queues/-/new/",
        {
            "name": "new",
            "parent": "root",
            "weight": "1 600",
            "priority": "0",
            "capability:cpu": shown("cpu", amount),
        },
    )

    assert answer.status_code == 302
    assert (stored("new").weight, stored("new").capability["cpu"]) == (1600, amount)
