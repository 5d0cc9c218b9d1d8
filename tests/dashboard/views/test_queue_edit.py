"""The queue editor: one form as a page and as what goes into a drawer; as inputs and as YAML; what it does not show it leaves alone."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest
import yaml
from django.contrib.auth import get_user_model
from django.test import Client

from dashboard.forms.queue_input import form_of_reading
from dashboard.present.amounts import as_typed, shown
from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import ClusterState, Node, PolicyVersion, Queue
from scheduler.selectors.queues.facts import queue_tree
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import update_queue
from tests.dashboard.sample import GPU, add_user, amounts, load_tree
from tests.dashboard.work import text

pytestmark = [pytest.mark.django_db]

DRAWER = {"X-Part": "true"}
EDIT = "/queues/vision/edit/"


@pytest.fixture(autouse=True)
def tree() -> None:
    load_tree()


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username="admin", is_superuser=True))
    return client


def typed(client: Client, name: str = "vision", **changes: str) -> dict[str, Any]:
    """What the form sends when nothing is typed but the changes."""
    form = client.get(f"/queues/{name}/edit/").context["form"]
    amounts = {
        f"{quota}:{resource}": amount
        for resource, given in form.amounts.items()
        for quota, amount in given.items()
    }
    fields = {
        "weight": form.weight,
        "priority": form.priority,
        "dequeue_strategy": form.dequeue_strategy,
        "reclaimable": "on",
    }
    parent = {"parent": form.parent} if form.parent else {}
    return {"version": "1", **fields, **parent, **amounts, **changes}


def stored(name: str = "vision") -> Queue:
    return Queue.objects.get(name=name)


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
        page, part = text(admin.get(EDIT)), text(admin.get(EDIT, headers=DRAWER))

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
        self, admin: Client, changes: dict[str, str], status: int, words: str
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


class TestFormAndYaml:
    def test_what_is_typed_goes_along_to_yaml_and_back(self, admin: Client):
        there = admin.post(EDIT, typed(admin, weight="9", show="yaml"))
        manifest = yaml.safe_load(there.context["yaml"])
        back = admin.post(EDIT, {"as": "yaml", "yaml": there.context["yaml"], "show": "form"})

        assert there.context["as_yaml"] is True
        assert manifest["spec"]["weight"] == 9
        assert back.context["as_yaml"] is False
        assert (back.context["form"].weight, back.context["form"].amounts[GPU]["deserved"]) == (
            "9",
            "20",
        )
        assert stored().resource_version == 1

    def test_a_look_at_the_yaml_is_nothing_to_save(self, admin: Client):
        assert "data-unsaved" not in text(admin.post(EDIT, typed(admin, show="yaml")))
        assert "data-unsaved" in text(admin.post(EDIT, typed(admin, weight="9", show="yaml")))

    def test_text_that_can_not_be_read_stays_text(self, admin: Client):
        answer = admin.post(EDIT, {"as": "yaml", "yaml": "a: [1", "show": "form"})

        assert answer.context["as_yaml"] is True
        assert answer.context["yaml"] == "a: [1"
        assert "This is not YAML" in text(answer)

    @pytest.mark.parametrize(
        ("where", "given"),
        [
            (
                "metadata.labels.team",
                {"metadata": {"name": "vision", "labels": {"team": "eyes"}}, "spec": {"weight": 2}},
            ),
            (
                "spec.state",
                {"metadata": {"name": "vision"}, "spec": {"weight": 2, "state": "Suspended"}},
            ),
        ],
    )
    def test_what_the_form_has_no_place_for_keeps_it_yaml(self, where: str, given: dict[str, Any]):
        form, obstacles = form_of_reading(given, queue_tree()["vision"])

        assert form is None
        assert [obstacle.field for obstacle in obstacles] == [where]

    def test_a_new_queue_turns_too(self, admin: Client):
        there = admin.post(
            "/queues/-/new/?parent=research",
            {"name": "fresh", "parent": "research", "weight": "4", "show": "yaml"},
        )
        back = admin.post(
            "/queues/-/new/", {"as": "yaml", "yaml": there.context["yaml"], "show": "form"}
        )

        assert (
            back.context["form"].name,
            back.context["form"].parent,
            back.context["form"].weight,
        ) == ("fresh", "research", "4")
        assert not Queue.objects.filter(name="fresh").exists()

    @pytest.mark.parametrize(
        "text_",
        ["", "5", "[]", "spec: 4", "metadata: 3\nspec: {weight: x}", "spec: {parent: {a: b}}"],
    )
    def test_odd_text_is_answered(self, admin: Client, text_: str):
        for show in ("form", "yaml"):
            assert admin.post(EDIT, {"as": "yaml", "yaml": text_, "show": show}).status_code == 200


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
            "Can be saved, 1 warning:</strong> Weight is 0, which counts as not set: the weight will be 1."
            in check(admin, weight="0")
        )

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


class TestTwoEditors:
    """Both opened the form; ruth saved first."""

    def opened(self, client: Client, **changes: str) -> dict[str, Any]:
        context = client.get(EDIT).context
        return {
            **typed(client, **changes),
            "version": str(context["version"]),
            "opened": context["opened"],
        }

    def theirs(self, **spec: Any) -> None:
        update_queue("vision", {"spec": spec}, merge=True, by=Actor("ruth", Door.UI))

    def test_only_what_i_changed_is_written_and_what_they_changed_is_kept_and_told(
        self, admin: Client
    ):
        mine = self.opened(admin, weight="5")
        self.theirs(priority=3, deserved={"cpu": "280"})

        answer = admin.post(EDIT, mine, follow=True)

        assert (stored().weight, stored().priority, stored().deserved["cpu"]) == (5, 3, 280_000)
        assert "Saved vision. Changed weight from 1 to 5." in text(answer)
        assert (
            "Changed by others meanwhile, and kept: Priority from 0 to 3, Deserved CPU from 300 to 280."
            in text(answer)
        )

    def test_a_command_meanwhile_is_no_conflict_and_is_not_undone(self, admin: Client):
        mine = self.opened(admin, weight="5")
        command_queue("vision", QueueCommand.SUSPEND)

        admin.post(EDIT, mine)

        assert (stored().weight, stored().state) == (5, "Suspended")

    def test_a_field_that_both_changed_is_asked_about_with_all_three_values(self, admin: Client):
        mine = self.opened(admin, weight="5")
        self.theirs(weight=7, priority=3)

        asked = admin.post(EDIT, mine)

        assert asked.status_code == 412
        (line,) = asked.context["both"]
        assert line == {"field": "Weight", "base": "1", "mine": "5", "theirs": "7"}
        assert "They also changed this, and it is kept: Priority from 0 to 3." in text(asked)
        assert (asked.context["form"].weight, asked.context["form"].priority) == ("5", "3")
        assert "No rule is broken." in text(asked)
        assert (stored().weight, stored().priority) == (7, 3)

        again = {
            **mine,
            "priority": "3",
            "version": str(asked.context["version"]),
            "opened": asked.context["opened"],
        }
        admin.post(EDIT, again)
        assert (stored().weight, stored().priority) == (5, 3)

    def test_as_yaml_it_is_the_same(self, admin: Client):
        mine = self.opened(admin)
        manifest = yaml.safe_load(admin.get(f"{EDIT}?as=yaml").context["yaml"])
        manifest["spec"]["weight"] = 5
        self.theirs(priority=3)

        admin.post(
            EDIT,
            {
                "as": "yaml",
                "yaml": yaml.safe_dump(manifest),
                "version": mine["version"],
                "opened": mine["opened"],
            },
        )

        assert (stored().weight, stored().priority) == (5, 3)

    def test_turning_to_yaml_does_not_forget_what_i_began_with(self, admin: Client):
        mine = self.opened(admin, weight="5")
        self.theirs(priority=3)

        turned = admin.post(EDIT, {**mine, "show": "yaml"}).context
        admin.post(
            EDIT,
            {
                "as": "yaml",
                "yaml": turned["yaml"],
                "version": str(turned["version"]),
                "opened": turned["opened"],
            },
        )

        assert (stored().weight, stored().priority) == (5, 3)

    def test_the_check_speaks_of_what_would_be_written(self, admin: Client):
        mine = self.opened(admin, **{f"deserved:{GPU}": "18"})
        self.theirs(capability={GPU: "17"}, deserved={GPU: "10"})

        said = unescape(text(admin.post("/queues/-/check/", {**mine, "editing": "vision"})))

        assert "is more than its capability 17" in said

    def test_what_they_and_i_changed_must_be_allowed_together(self, admin: Client):
        mine = self.opened(admin, **{f"guarantee:{GPU}": "16"})
        self.theirs(deserved={GPU: "10"})

        answer = admin.post(EDIT, mine)

        assert answer.status_code == 400
        assert stored().guarantee.amount(GPU) == 0

    @pytest.mark.parametrize(
        "opened",
        [
            "",
            "{",
            "[]",
            '{"spec": 5}',
            "[" * 5000,
            '{"metadata": {"name": "vision"}, "spec": {"weight": "x"}}',
        ],
    )
    def test_without_what_i_began_with_nothing_of_theirs_is_overwritten(
        self, admin: Client, opened: str
    ):
        mine = self.opened(admin, weight="5") | {"opened": opened}
        self.theirs(priority=3)

        answer = admin.post(EDIT, mine)

        assert answer.status_code == 412
        assert (stored().weight, stored().priority) == (1, 3)
