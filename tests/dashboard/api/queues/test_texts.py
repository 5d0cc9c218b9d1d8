"""What people write about a queue, its owner and a description, through every layer: API, files,
pages, the tree, the audit log.
"""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.test import Client

from scheduler.models import AuditEntry, Queue
from scheduler.selectors.accounts.access import owner_of, whom_to_ask
from tests.dashboard.api.conftest import Caller, queue
from tests.dashboard.reviews import answer, causes, review
from tests.dashboard.work import small_cluster, text

pytestmark = pytest.mark.django_db

ROW = '<tr role="row" data-key="%s"'
OWNER = "ML platform & friends"


def signed_in(caller: Caller) -> Client:
    client = Client()
    client.force_login(caller.user)
    return client


class TestApi:
    def test_it_is_stored_shown_and_exported(self, admin: Caller):
        made = admin.post("queues/", queue("ml", owner=OWNER), expect=201)

        assert made["spec"]["owner"] == OWNER
        assert admin.get("queues/ml/")["spec"]["owner"] == OWNER
        assert admin.get("queues/ml/export/")["items"][0]["spec"]["owner"] == OWNER
        assert admin.get("queues/root/tree/")["spec"]["owner"] == ""

    def test_a_patch_changes_it_and_the_audit_log_tells_how(self, admin: Caller):
        admin.post("queues/", queue("ml", owner="ann"), expect=201)

        answered = admin.patch("queues/ml/", {"spec": {"owner": "bob"}})

        assert answered["spec"]["owner"] == "bob"
        entry = AuditEntry.objects.get(action="UpdateQueue")
        assert entry.message == "Changed owner from ann to bob."
        assert (entry.before["spec"]["owner"], entry.after["spec"]["owner"]) == ("ann", "bob")

    def test_a_field_of_several_words_is_written_as_words(self, admin: Caller):
        admin.post("queues/", queue("ml"), expect=201)

        admin.patch("queues/ml/", {"spec": {"minRunSeconds": 30}})

        entry = AuditEntry.objects.get(action="UpdateQueue")
        assert entry.message == "Changed min run seconds from nothing to 30."

    def test_an_export_applied_again_changes_nothing(self, admin: Caller):
        admin.post("queues/", queue("ml", owner=OWNER), expect=201)
        admin.get("queues/ml/export/", Accept="application/yaml")
        exported = admin.last.content.decode()

        assert [one["operation"] for one in admin.apply(exported)["results"]] == ["unchanged"]
        changed = exported.replace(OWNER, "others")
        (result,) = admin.apply(changed, "?dry_run=true")["results"]
        assert result["operation"] == "updated"
        assert "spec.owner" in str(result)
        assert Queue.objects.get(name="ml").owner == OWNER

    def test_a_file_that_does_not_name_it_leaves_it(self, admin: Caller):
        admin.post("queues/", queue("ml", owner=OWNER), expect=201)

        admin.apply("kind: Queue\nmetadata: {name: ml}\nspec: {weight: 3}")

        assert Queue.objects.get(name="ml").owner == OWNER

    @pytest.mark.parametrize(
        ("owner", "rule"),
        [("x" * 254, "too_long"), ("a\x07b", "invalid_value"), (["a"], "invalid_value")],
    )
    def test_what_is_no_plain_text_is_refused_by_its_name(
        self,
        admin: Caller,
        owner: Any,
        rule: str,
    ):
        refused = admin.post("queues/", queue("ml", owner=owner), expect=400)

        (violation,) = refused["violations"]
        assert (violation["ruleId"], violation["field"]) == (rule, "spec.owner")

    def test_an_admin_of_the_queue_may_change_it_and_a_submitter_may_not(
        self,
        admin: Caller,
        caller: Callable[..., Caller],
    ):
        admin.post("queues/", queue("ml", owner="ann"), expect=201)

        caller("lead", admin="ml").patch("queues/ml/", {"spec": {"owner": "bob"}})
        caller("sub", submitter="ml").patch("queues/ml/", {"spec": {"owner": "me"}}, expect=403)

        assert Queue.objects.get(name="ml").owner == "bob"

    def test_who_is_refused_is_told_whom_to_ask(self, admin: Caller, caller: Callable[..., Caller]):
        admin.post("queues/", queue("ml", owner="ann"), expect=201)
        admin.post("queues/", queue("train", "ml"), expect=201)
        admin.post("queues/", queue("own"), expect=201)

        refused = caller("sub", submitter="train", admin="own").post(
            "queues/train/close/", expect=403
        )

        assert refused["violations"][0]["fix"].endswith(": train is owned by ann")


def test_the_webhook_reads_it_too(client: Client):
    good = {"metadata": {"name": "ml"}, "spec": {"owner": OWNER}}
    bad = {"metadata": {"name": "ml"}, "spec": {"owner": "a\nb"}}

    assert answer(client, "queues", review("queues", "CREATE", good))["allowed"]
    assert causes(answer(client, "queues", review("queues", "CREATE", bad))) == ["invalid_value"]


class TestPages:
    def test_the_form_takes_it_and_shows_it_again(self, admin: Caller):
        admin.post("queues/", queue("ml", owner="ann"), expect=201)
        reader = signed_in(admin)
        page = reader.get("/queues/ml/edit/")
        assert 'name="owner" value="ann"' in text(page)

        form = page.context["form"]
        typed = {
            "name": "ml",
            "parent": "root",
            "weight": form.weight,
            "priority": form.priority,
            "reclaimable": "on",
            "dequeue_strategy": form.dequeue_strategy,
            "owner": OWNER,
            "version": page.context["version"],
            "as": "form",
        }
        assert reader.post("/queues/ml/edit/", typed).status_code == 302

        assert Queue.objects.get(name="ml").owner == OWNER
        assert OWNER in unescape(text(reader.get("/queues/ml/")))

    def test_the_tree_shows_it_and_is_searched_for_it(self, admin: Caller):
        admin.post("queues/", queue("ml", owner=OWNER), expect=201)
        admin.post("queues/", queue("web", owner="shop"), expect=201)
        reader = signed_in(admin)

        page = text(reader.get("/queues/"))
        found = text(reader.get("/queues/", {"q": "owner:platform,none"}))
        others = text(reader.get("/queues/", {"q": "-owner:platform"}))

        assert '<small class="row-text" data-text="owner">ML platform &amp; friends</small>' in page
        assert ROW % "web" not in found
        assert ROW % "ml" in found
        assert ROW % "ml" not in others
        assert ROW % "web" in others

    def test_a_job_that_waits_names_the_owner(self, admin: Caller):
        small_cluster()
        Queue.objects.filter(name="research").update(owner=OWNER)

        page = unescape(text(signed_in(admin).get("/jobs/default/train-2/")))

        assert f"Ask <strong>{OWNER}</strong>, the owner of vision." in page
        assert admin.get("podgroups/default/train-2/explain/")["owner"] == OWNER
        assert admin.get("podgroups/default/train-1/explain/")["owner"] == ""

    def test_a_page_that_is_refused_names_the_owner(
        self,
        admin: Caller,
        caller: Callable[..., Caller],
    ):
        admin.post("queues/", queue("ml", owner="ann"), expect=201)

        page = text(signed_in(caller("sub", submitter="ml")).get("/queues/ml/edit/"))

        assert "You can get it from <strong>ann (owner)," in page


def test_the_owner_is_that_of_the_nearest_queue_above(admin: Caller):
    admin.post("queues/", queue("ml", owner="ann"), expect=201)
    admin.post("queues/", queue("train", "ml"), expect=201)
    admin.post("queues/", queue("eval", "train", owner="bob"), expect=201)

    assert [owner_of(name) for name in ("eval", "train", "ml", "root", "gone")] == [
        "bob",
        "ann",
        "ann",
        "",
        "",
    ]
    assert whom_to_ask("train")[0] == "ann (owner)"


class TestDescription:
    WORDS = "For nightly training.\nAsk before you use <b>it</b>."

    def test_it_goes_through_the_api_and_files(self, admin: Caller):
        made = admin.post("queues/", queue("ml", description=self.WORDS + "\r\n"), expect=201)
        admin.get("queues/ml/export/", Accept="application/yaml")
        exported = admin.last.content.decode()

        assert made["spec"]["description"] == self.WORDS
        assert [one["operation"] for one in admin.apply(exported)["results"]] == ["unchanged"]

    def test_its_page_shows_it_as_plain_text(self, admin: Caller):
        admin.post("queues/", queue("ml", description=self.WORDS), expect=201)

        page = text(signed_in(admin).get("/queues/ml/"))

        assert "For nightly training.<br>Ask before you use &lt;b&gt;it&lt;/b&gt;." in page

    def test_a_long_change_is_told_in_short(self, admin: Caller):
        admin.post("queues/", queue("ml"), expect=201)

        admin.patch("queues/ml/", {"spec": {"description": "long words " * 100}})

        entry = AuditEntry.objects.get(action="UpdateQueue")
        assert entry.message.startswith("Changed description from nothing to long words long")
        assert len(entry.message) < 150
        assert len(entry.after["spec"]["description"]) == 1099

    @pytest.mark.parametrize("words", ["x" * 2001, "a\x00b", "a\x7fb"])
    def test_what_is_no_plain_text_is_refused_by_its_name(self, admin: Caller, words: str):
        refused = admin.post("queues/", queue("ml", description=words), expect=400)

        assert refused["violations"][0]["field"] == "spec.description"

    def test_the_form_has_a_text_area(self, admin: Caller):
        admin.post("queues/", queue("ml", description="words"), expect=201)

        page = text(signed_in(admin).get("/queues/ml/edit/"))

        assert 'data-field="spec.description">words</textarea>' in page
