"""What the queue pages offer beside looking: one-click remedies, copies for a terminal, CSV, the sample tree, folding, resources."""

from __future__ import annotations

import csv
import io
import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from dashboard.forms.queue import QueueForm, judge
from dashboard.forms.queue_input import form_from_manifest
from dashboard.forms.queue_words import quota_words
from dashboard.present.queue_page import columns, division, resource_lines
from dashboard.present.queues import present_queues
from scheduler.admission.reading.queue import queue_manifest
from scheduler.admission.rules.quotas import hierarchy_problems
from scheduler.domain.resources import Resources
from scheduler.models import ClusterState, Command, Queue, QueueFigures, QueueSample
from scheduler.selectors.accounts.preferences import preference_of
from scheduler.selectors.queues.facts import admission_scene, queue_tree
from scheduler.selectors.queues.listing import queue_rows
from scheduler.services.demo.sample import QUEUES
from scheduler.services.demo.setup import ensure_builtin_objects
from tests.dashboard import work
from tests.dashboard.sample import GPU, add_queue, add_user, amounts, load_tree, set_figures
from tests.dashboard.work import small_cluster, text


@pytest.fixture
def tree(db: None) -> None:
    load_tree()


@pytest.fixture
def admin(tree: None) -> Client:
    return signed_in(get_user_model().objects.create(username="admin", is_superuser=True))


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.usefixtures("tree")
class TestRemedies:
    @pytest.mark.parametrize(
        ("name", "changes"),
        [
            ("vision", {"deserved": "26"}),
            ("vision", {"capability": "4"}),
            ("vision", {"capability": "-1"}),
            ("research", {"deserved": "12"}),
            ("language", {"guarantee": "30"}),
            ("batch", {"capability": "99"}),
        ],
        ids=[
            "too much for the parent",
            "deserved above the capability",
            "negative",
            "less than its children",
            "guarantee",
            "above the ancestor",
        ],
    )
    def test_taking_the_advice_until_there_is_none_makes_it_valid(
        self, name: str, changes: dict[str, str]
    ):
        scene, facts = admission_scene()
        form = form_from_manifest(queue_manifest(scene[name]))
        form.amounts[GPU] = {**form.amounts.get(GPU, {}), **changes}
        verdict = judge(form.manifest(), scene, facts, name)
        assert verdict.violations

        for _ in range(4):
            remedies = [remedy for violation in verdict.violations for remedy in violation.remedies]
            if remedies:
                form = form.mended(f"{remedies[0].field}={remedies[0].value}")
                verdict = judge(form.manifest(), scene, facts, name)

        assert verdict.violations == ()

    def test_the_button_works_without_a_script_and_saves_nothing(self, admin: Client):
        data = {
            "parent": "research",
            "weight": "1",
            "deserved:nvidia.com/gpu": "26",
            "mend": "spec.deserved.nvidia.com/gpu=20",
        }

        answer = admin.post("/queues/vision/edit/", data)

        page = text(answer)
        assert 'name="deserved:nvidia.com/gpu" value="20"' in page
        assert Queue.objects.get(name="vision").resource_version == 1

    def test_a_remedy_for_another_form_changes_nothing(self):
        form = QueueForm(name="vision", amounts={GPU: {"deserved": "26"}})

        assert form.mended("spec.deserved.cpu=1") == form.mended("nonsense") == form

    def test_fields_are_named_as_the_form_names_them(self):
        assert quota_words("spec.guarantee.resource.nvidia.com/gpu") == "guarantee GPU"
        assert quota_words("spec.capability.cpu") == "capability CPU"

    @pytest.mark.parametrize(
        ("typed", "words"),
        [
            ({"weight": ""}, "Weight is empty. Enter 1 to 65535."),
            ({"weight": "many"}, "Weight must be a whole number from 1 to 65535, not text (many)."),
            ({"priority": ""}, "Priority is empty. Enter 0 to 2147483647."),
            ({"deserved:cpu": "2c"}, "Deserved CPU: 2c is not a quantity; write 2 or 2000m."),
        ],
    )
    def test_what_is_wrong_is_said_in_the_words_of_the_form(
        self, admin: Client, typed: dict[str, str], words: str
    ):
        data = {"name": "new", "parent": "research", "weight": "1", "priority": "0", **typed}

        assert words in unescape(text(admin.post("/queues/-/check/", data)))
        assert words in unescape(text(admin.post("/queues/-/new/", data)))


class TestCopies:
    def test_what_is_typed_is_a_file_to_apply_and_a_request(self, admin: Client):
        answer = admin.post(
            "/queues/-/check/",
            {"name": "it's", "parent": "research", "weight": "2", "deserved:cpu": "4"},
        )

        copies = answer.context["copies"]
        for copied in copies.values():
            document = copied.split("<<'END'\n", 1)[1].removesuffix("END")
            assert yaml.safe_load(document)["metadata"]["name"] == "it's"
        assert copies["cli"].startswith("vcctl apply -f - <<'END'")
        assert "curl -X POST" in copies["curl"]

    def test_a_change_is_put_to_the_queue_itself(self, admin: Client):
        answer = admin.get("/queues/vision/edit/")

        assert "curl -X PUT" in answer.context["copies"]["curl"]
        assert "/api/v1/queues/vision/ <<'END'" in answer.context["copies"]["curl"]

    def test_deleting_and_several_at_once_have_theirs(self, admin: Client):
        deleting = admin.get("/queues/vision/delete/?cascade=on").context["copies"]
        closing = admin.get("/queues/vision/farewell/").context["copies"]
        several = admin.get(
            "/queues/-/commands/?command=suspend&queue=vision&queue=language"
        ).context["copies"]

        assert deleting["cli"] == "vcctl queue delete vision --cascade"
        assert shlex.split(deleting["curl"])[:3] == ["curl", "-X", "DELETE"]
        assert closing["cli"] == "vcctl queue delete vision --close-first"
        assert shlex.split(closing["curl"])[-1].endswith("/api/v1/queues/vision/?close_first=true")
        assert several["cli"].splitlines() == [
            "vcctl queue suspend language",
            "vcctl queue suspend vision",
        ]


class TestSeveralAtOnce:
    @pytest.fixture(autouse=True)
    def at_work(self, db: None) -> None:
        small_cluster()

    def test_what_is_in_them_is_told_before_anything_is_done(self):
        """train-1 (4 pods) and label (2) run, train-2 (20) waits; vision is chosen and closes with research too, and counts once."""
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
        """As a browser without JavaScript sends it: every ticked box is a field, and the token is checked."""
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


class TestHistoryOpensOnWhatTheQueueUses:
    @staticmethod
    def drawn(client: Client, query: str = "") -> str:
        return str(client.get(f"/queues/vision/history/{query}").context["chart_resource"])

    def test_something_that_it_has_now(self, admin: Client):
        set_figures("vision", amounts(0, 3), amounts(0, 3), amounts(0, 3))

        assert self.drawn(admin) == "cpu"

    def test_something_that_it_waits_for(self, admin: Client):
        set_figures("vision", amounts(0, 0), amounts(0, 3), amounts(0, 0, "3Gi"))

        assert self.drawn(admin) == "memory"

    def test_something_that_it_had_in_the_period(self, admin: Client):
        set_figures("vision", amounts(0, 0), amounts(0, 0), amounts(0, 0))
        data = {"state": "Open", "allocated": {"memory": 5}}
        QueueSample.objects.create(
            queue_name="vision", at=timezone.now(), seconds=QueueSample.RAW, data=data
        )

        assert self.drawn(admin) == "memory"

    def test_something_that_its_quotas_name(self, admin: Client):
        QueueFigures.objects.all().delete()
        Queue.objects.filter(name="vision").update(
            deserved=amounts(cpu=3), guarantee=amounts(), capability=amounts()
        )

        assert self.drawn(admin) == "cpu"

    def test_or_on_the_one_that_is_asked_for(self, admin: Client):
        assert self.drawn(admin, "?resource=memory") == "memory"
        assert self.drawn(admin, "?resource=gpu") == GPU


class TestHistoryAsTable:
    @pytest.fixture(autouse=True)
    def sampled(self, tree: None) -> None:
        data = {"state": "Open", "allocated": {GPU: 3000, "cpu": 1500}, "deserved": {GPU: 8000}}
        QueueSample.objects.create(
            queue_name="vision", at=timezone.now(), seconds=QueueSample.RAW, data=data
        )

    def test_the_page_s_file_has_one_row_a_moment_and_resource_with_exact_quantities(
        self, admin: Client
    ):
        answer = admin.get("/queues/vision/history.csv?period=1h")

        rows = list(csv.DictReader(io.StringIO(answer.getvalue().decode())))
        last = {row["resource"]: row for row in rows}
        assert answer["Content-Disposition"] == 'attachment; filename="vision-1h.csv"'
        assert (last["cpu"]["allocated"], last[GPU]["allocated"], last[GPU]["deserved"]) == (
            "1500m",
            "3",
            "8",
        )
        assert {
            row["resource"]
            for row in csv.DictReader(
                io.StringIO(
                    admin.get("/queues/vision/history.csv?resource=cpu").getvalue().decode()
                )
            )
        } == {"cpu"}

    @pytest.mark.parametrize(
        ("path", "status"), [("vision/history.csv?period=2y", 400), ("nothing/history.csv", 404)]
    )
    def test_a_wrong_question_is_answered_as_such(self, admin: Client, path: str, status: int):
        assert admin.get(f"/queues/{path}").status_code == status

    def test_the_api_gives_it_too(self, admin: Client):
        answer = admin.get(
            "/api/v1/queues/vision/history/?step=raw", headers={"Accept": "text/csv"}
        )

        (cpu, gpu) = csv.DictReader(io.StringIO(answer.getvalue().decode()))
        assert answer["Content-Type"].startswith("text/csv")
        assert (cpu["resource"], cpu["allocated"], gpu["resource"], gpu["deserved"]) == (
            "cpu",
            "1500m",
            GPU,
            "8",
        )


@pytest.mark.django_db
class TestSampleTree:
    @pytest.fixture
    def client(self) -> Client:
        ensure_builtin_objects()
        return signed_in(get_user_model().objects.create(username="admin", is_superuser=True))

    @pytest.mark.parametrize(
        "total",
        [
            {"cpu": 96, "memory": "384Gi", GPU: 8},
            {"cpu": 7},
            {},
            {"cpu": 100_000, "memory": "1Pi", GPU: 9000},
        ],
    )
    def test_it_fits_the_cluster_that_is_there(self, client: Client, total: dict[str, Any]):
        ClusterState.objects.update(total=Resources.parse(total))
        assert "Load sample tree" in text(client.get("/queues/"))

        client.post("/queues/-/sample/")

        names = set(Queue.objects.values_list("name", flat=True))
        assert names == {"root", "default", *(queue["name"] for queue in QUEUES)}
        assert hierarchy_problems(queue_tree(), 10) == {}
        asked = {
            name
            for queue in Queue.objects.all()
            for name in (*queue.deserved, *queue.guarantee, *queue.capability)
        }
        assert asked <= set(total)
        assert "Load sample tree" not in text(client.get("/queues/"))

    def test_where_there_are_queues_it_is_refused(self, client: Client):
        add_queue("mine")

        answer = client.post("/queues/-/sample/", follow=True)

        assert "There are queues already" in answer.getvalue().decode()
        assert Queue.objects.count() == 3

    def test_who_may_not_create_queues_is_not_offered_it(self, client: Client):
        reader = signed_in(add_user("reader"))

        assert "Load sample tree" not in text(reader.get("/queues/"))
        assert reader.post("/queues/-/sample/").status_code == 403


def visible(answer: Any) -> list[str]:
    return re.findall(r'<tr role="row" data-key="([^"]+)"', text(answer).partition("<template")[0])


class TestFolding:
    def test_what_is_folded_is_kept_for_the_reader_and_hides_all_below(self, admin: Client):
        assert (
            admin.post("/queues/-/folded/", {"queue": ["root", "research", "gone"]}).status_code
            == 204
        )

        user = get_user_model().objects.get(username="admin")
        assert preference_of(user).folded == ["research", "root"]
        page = text(admin.get("/queues/"))
        assert '<tr hidden role="row" data-key="vision"' in page
        assert '<tr hidden role="row" data-key="production"' in page
        assert '<tr role="row" data-key="root"' in page

    def test_a_search_and_a_flat_table_show_all(self, admin: Client):
        admin.post("/queues/-/folded/", {"queue": ["research"]})

        assert "<tr hidden" not in text(admin.get("/queues/?view=table"))
        assert visible(admin.get("/queues/?q=vision")) == ["root", "research", "vision"]

    def test_a_large_tree_opens_as_far_as_it_fits(self, admin: Client):
        for team in range(30):
            add_queue(f"team-{team:02}")
            add_queue(f"team-{team:02}-a", f"team-{team:02}")
        names = [
            "root",
            "default",
            "production",
            "research",
            *(f"team-{team:02}" for team in range(30)),
        ]

        assert visible(admin.get("/queues/")) == names
        assert len(visible(admin.get("/queues/?levels=0"))) == 68
        assert visible(admin.get("/queues/?levels=1")) == ["root"]

    def test_the_levels_are_kept_for_the_reader_with_what_is_folded_and_unfolded_by_hand(
        self, admin: Client
    ):
        admin.post("/queues/-/folded/", {"levels": "2", "unfolded": ["research"], "queue": []})

        assert visible(admin.get("/queues/")) == [
            "root",
            "default",
            "production",
            "research",
            "language",
            "vision",
        ]
        admin.post("/queues/-/folded/", {"levels": "0", "queue": ["production"]})
        assert visible(admin.get("/queues/")) == [
            "root",
            "default",
            "production",
            "research",
            "language",
            "vision",
        ]

    @pytest.mark.parametrize("levels", ["-1", "x", "9" * 30, "99999999"])
    def test_levels_that_are_none_are_no_error(self, admin: Client, levels: str):
        assert admin.post("/queues/-/folded/", {"levels": levels}).status_code == 204
        assert admin.get(f"/queues/?levels={levels}").status_code == 200

    def test_it_changes_nothing_else_that_was_set(self, admin: Client):
        user = get_user_model().objects.get(username="admin")
        preference_of(user).save()
        type(preference_of(user)).objects.filter(user=user).update(theme="dark")

        admin.post("/queues/-/folded/", {"queue": ["research"]})

        assert preference_of(user).theme == "dark"


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


@pytest.mark.usefixtures("tree")
class TestResources:
    def test_a_queue_s_page_shows_one_resource_or_all(self, admin: Client):
        assert [
            line["name"] for line in admin.get("/queues/vision/?resource=gpu").context["lines"]
        ] == [GPU]
        assert len(admin.get("/queues/vision/").context["lines"]) == 3
        assert "resource=gpu" in admin.get("/queues/vision/?resource=gpu").context["tabs"][1]["url"]

    def test_who_lends_says_to_whom_and_who_borrows_from_whom(self):
        board = queue_rows()
        rows = present_queues(board)

        words = {
            name: resource_lines(board, rows[name], GPU)["lines"][0]["loans"]
            for name in ("vision", "language", "serving")
        }

        assert words == {
            "vision": "lending 10 to language",
            "language": "borrowing 10 from vision",
            "serving": "",
        }

    def test_who_may_not_see_the_other_queue_is_not_told_its_name(self):
        board = queue_rows()

        line = resource_lines(board, present_queues(board)["vision"], GPU, frozenset({"vision"}))[
            "lines"
        ][0]

        assert line["loans"] == "lending 10 to other queues"

    def test_with_many_resources_what_a_queue_has_nothing_of_is_folded_away(self):
        licences = {f"example.com/licence-{number}": 5 for number in range(9)}
        ClusterState.objects.update(total=Resources.parse({"cpu": 1024, **licences}))
        board = queue_rows()

        found = resource_lines(board, present_queues(board)["vision"])

        assert [line["name"] for line in found["lines"]] == [GPU, "cpu", "memory"]
        assert len(found["idle_lines"]) == 9
        resources = [line["name"] for line in found["resources"]]
        assert (
            len(columns("", resources)),
            len(columns("all", resources)),
            columns("cpu", resources),
        ) == (4, 12, ("cpu",))

    def test_every_number_of_columns_is_laid_out(self):
        style = " ".join(Path("static/css/queues.css").read_text().split())
        most = len(columns("all", [f"example.com/licence-{number}" for number in range(100)]))

        assert [
            number
            for number in range(1, most + 1)
            if f".resources-{number} {{ --count: {number}; }}" not in style
        ] == []

    def test_a_parent_s_deserved_is_divided_with_what_nobody_has(self):
        add_queue("archive", "production", deserved=amounts(0))
        set_figures("archive", amounts(0), amounts(0), amounts(0))
        Queue.objects.filter(name="batch").update(deserved=amounts(4))
        set_figures("batch", amounts(3), amounts(4), amounts(6))

        found = division(queue_rows(), "production", GPU)

        assert [(span["name"], span["amount"]) for span in found["spans"]] == [
            ("batch", "4 GPU"),
            ("serving", "16 GPU"),
        ]
        assert (found["whole"], found["rest"], found["over"]) == ("24 GPU", "4 GPU", "")
