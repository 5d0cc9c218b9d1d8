"""The pages of change sets: collected from the form of a queue, looked at, applied, reverted."""

from __future__ import annotations

import re
from typing import Any

import pytest

from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import AuditEntry, ChangeSet, Preview, Queue
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.change_sets.preview_runs import work_out_previews
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import update_queue
from tests.dashboard.work import person, signed_in, small_cluster, text
from tests.services.change_sets.builders import edit

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def form_of(page: str) -> dict[str, Any]:
    """What the form of a queue would send, read from its YAML form."""
    fields = dict(re.findall(r'name="(version|opened|editing)" value="([^"]*)"', page))
    return {name: value.replace("&quot;", '"') for name, value in fields.items()}


def collected(who: str, name: str, manifest: str, change_set: str = "") -> ChangeSet:
    client = signed_in(who)
    given = form_of(text(client.get(f"/queues/{name}/edit/?as=yaml")))
    more = {"as": "yaml", "yaml": manifest, "collect": "yes", "change_set": change_set}
    answer = client.post(f"/queues/{name}/edit/", {**given, **more})
    assert answer.status_code == 302, text(answer)
    return ChangeSet.objects.get(pk=int(answer.url.rstrip("/").rpartition("/")[2]))


def manifest(name: str, **spec: Any) -> str:
    stored = Queue.objects.get(name=name)
    lines = {"weight": stored.weight, "parent": stored.parent.name, **spec}
    body = "".join(f"  {key}: {value}\n" for key, value in lines.items())
    return f"kind: Queue\nmetadata:\n  name: {name}\nspec:\n{body}"


def test_queues_are_collected_from_their_forms_and_applied_together():
    first = collected("admin", "vision", manifest("vision", weight=4))
    second = collected("admin", "batch", manifest("batch", weight=5), str(first.pk))
    admin = signed_in("admin")

    assert second.pk == first.pk
    assert Queue.objects.get(name="vision").weight == 1
    page = admin.get(f"/changes/{first.pk}/")
    assert "Taken together, these changes break no rule." in text(page)
    answer = admin.post(f"/changes/{first.pk}/apply/", {"version": 3, "reason": "agreed"})

    assert answer.status_code == 302
    assert Queue.objects.get(name="vision").weight == 4
    assert Queue.objects.get(name="batch").weight == 5
    reasons = set(AuditEntry.objects.filter(action="UpdateQueue").values_list("reason", flat=True))
    assert reasons == {f"agreed (change set {first.pk}: {first.name})"}


def test_an_applied_set_is_reverted_from_its_page_and_from_the_audit_log():
    made = create_change_set("Friday", [edit("batch", weight=5)], by=person("admin"))
    admin = signed_in("admin")
    admin.post(f"/changes/{made.pk}/apply/")
    entry = AuditEntry.objects.get(action="UpdateQueue", name="batch")

    page = text(admin.get(f"/audit/{entry.pk}/"))
    assert f'action="/changes/{made.pk}/revert/"' in page
    assert "Revert" in text(admin.get(f"/changes/{made.pk}/"))
    back = admin.post(f"/changes/{made.pk}/revert/").url
    admin.post(f"{back}apply/")

    assert Queue.objects.get(name="batch").weight == 1
    assert "Reverted by" in text(admin.get(f"/changes/{made.pk}/"))


def test_a_conflict_is_shown_with_what_changed_and_a_way_out():
    made = create_change_set("mine", [edit("batch", weight=5)], by=person("admin"))
    update_queue("batch", {"spec": {"weight": 7}}, merge=True)
    admin = signed_in("admin")

    refused = admin.post(f"/changes/{made.pk}/apply/")

    assert refused.status_code == 409
    assert "spec.weight from 1 to 7" in text(refused)
    assert "Nothing was applied: others have changed batch since you added it." in text(refused)
    looked_at = text(admin.get(f"/changes/{made.pk}/"))
    assert "Others have changed batch since you added it." in looked_at
    admin.post(f"/changes/{made.pk}/refresh/")
    admin.post(f"/changes/{made.pk}/apply/")
    assert Queue.objects.get(name="batch").weight == 5


def test_a_broken_rule_is_shown_and_the_button_is_off():
    made = create_change_set("wrong", [edit("vision", deserved={"cpu": "9"})], by=person("admin"))

    page = text(signed_in("admin").get(f"/changes/{made.pk}/"))

    assert "It cannot be applied: it breaks 1 rule." in page
    assert re.search(r'type="submit" disabled> Apply the change set', page)
    refused = signed_in("admin").post(f"/changes/{made.pk}/apply/")
    assert refused.status_code == 400


def test_a_set_is_made_from_yaml_and_what_is_wrong_is_told():
    admin = signed_in("admin")
    wrong = admin.post("/changes/-/new/", {"name": "x", "yaml": "kind: Queue\nmetadata: ["})
    refused = admin.post("/changes/-/new/", {"name": "x", "yaml": "kind: Job\n"})
    made = admin.post("/changes/-/new/", {"name": "x", "yaml": manifest("batch", weight=3)})

    assert (wrong.status_code, refused.status_code, made.status_code) == (400, 400, 302)
    assert "x" in text(admin.get("/changes/"))
    assert text(admin.get(made.url)).count("spec.weight") == 1


def test_a_draft_is_added_to_taken_from_renamed_and_discarded():
    made = create_change_set("a", [edit("batch", weight=5)], by=person("admin"))
    admin = signed_in("admin")
    admin.post(f"/changes/{made.pk}/add/", {"yaml": manifest("vision", weight=3)})
    admin.post(f"/changes/{made.pk}/remove/", {"kind": "Queue", "name": "batch"})
    admin.post(f"/changes/{made.pk}/rename/", {"name": "b", "description": "why"})
    made.refresh_from_db()

    assert (made.name, [item.name for item in made.changes]) == ("b", ["vision"])
    admin.post(f"/changes/{made.pk}/discard/")
    assert admin.post(f"/changes/{made.pk}/apply/").status_code == 409


def test_the_form_of_a_queue_begins_with_what_the_set_wants():
    made = create_change_set("a", [edit("vision", weight=77)], by=person("admin"))

    page = signed_in("admin").get(f"/queues/vision/edit/?change_set={made.pk}")

    assert 'value="77"' in text(page)


def test_a_set_is_there_only_for_who_sees_its_queues():
    made = create_change_set("batch", [edit("batch", weight=5)], by=person("admin"))

    assert signed_in("ruth").get(f"/changes/{made.pk}/").status_code == 404
    assert signed_in("ruth").post(f"/changes/{made.pk}/apply/").status_code == 404
    assert "batch" not in text(signed_in("ruth").get("/changes/"))


def test_a_viewer_looks_at_a_set_and_can_do_nothing_with_it():
    made = create_change_set("look", [edit("vision", weight=5)], by=person("admin"))
    vera = signed_in("vera")

    page = text(vera.get(f"/changes/{made.pk}/"))

    assert "You cannot apply it" in page
    assert "only those who may operate a queue can" in page
    assert "only those who may" not in text(signed_in("admin").get(f"/changes/{made.pk}/"))
    assert "Discard" not in page
    assert vera.post(f"/changes/{made.pk}/apply/").status_code == 403
    assert vera.post(f"/changes/{made.pk}/discard/").status_code == 403


def test_the_page_shows_what_the_set_would_do():
    documents = [edit("vision", deserved={"cpu": "2"}, capability={"cpu": "8"})]
    made = create_change_set("less", documents, by=person("admin"))
    admin = signed_in("admin")

    admin.post(f"/changes/{made.pk}/preview/", {"minutes": "10"})
    waiting = text(admin.get(f"/changes/{made.pk}/"))
    work_out_previews()
    shown = text(admin.get(f"/changes/{made.pk}/"))

    assert "<progress" in waiting
    assert "Cancel the preview" in waiting
    assert "Pods placed in the first session" in shown
    assert "before 8" in shown
    assert "after 2" in shown
    assert Queue.objects.get(name="vision").deserved.to_quantities() == {"cpu": "8"}


def test_a_preview_is_cancelled_and_an_old_one_is_not_shown_for_a_changed_set():
    made = create_change_set("less", [edit("vision", weight=3)], by=person("admin"))
    admin = signed_in("admin")
    admin.post(f"/changes/{made.pk}/preview/")
    admin.post(f"/changes/{made.pk}/cancel/")
    assert Preview.objects.get().state == "Cancelled"

    admin.post(f"/changes/{made.pk}/preview/")
    work_out_previews()
    assert "no promise" in text(admin.get(f"/changes/{made.pk}/"))
    admin.post(f"/changes/{made.pk}/add/", {"yaml": manifest("batch", weight=3)})
    assert "no promise" not in text(admin.get(f"/changes/{made.pk}/"))


def test_a_single_entry_of_the_audit_log_is_reverted_from_its_page():
    command_queue("research", QueueCommand.SUSPEND, by=person("admin"))
    admin = signed_in("admin")
    deed = AuditEntry.objects.get(action="SuspendQueue", name="research")
    followed = AuditEntry.objects.get(action="SuspendQueue", name="vision")
    assert "Revert this change" in text(admin.get(f"/audit/{deed.pk}/"))
    assert "SuspendQueue of research: revert that" in text(admin.get(f"/audit/{followed.pk}/"))

    answer = admin.post(f"/audit/{deed.pk}/revert/")

    made = ChangeSet.objects.get()
    assert answer.url == f"/changes/{made.pk}/"
    assert made.is_draft
    assert admin.post(f"/audit/{followed.pk}/revert/").status_code == 409
    assert signed_in("sam").post(f"/audit/{deed.pk}/revert/").status_code == 403
    assert admin.post("/audit/999999/revert/").status_code == 404


def test_a_text_that_is_too_long_is_refused_and_not_read_in_part():
    made = create_change_set("a", [edit("batch", weight=5)], by=person("admin"))
    admin = signed_in("admin")
    long = manifest("vision", weight=3) + "#" * 200_000

    for page in (f"/changes/{made.pk}/add/", "/changes/-/new/"):
        answer = admin.post(page, {"name": "b", "yaml": f"{long}\n---\n{manifest('research')}"})

        assert answer.status_code == 400
        assert "more than the 200000 that are read" in text(answer)
    made.refresh_from_db()
    assert [item.name for item in made.changes] == ["batch"]
    assert ChangeSet.objects.count() == 1


@pytest.mark.parametrize("typed", ["spec: [", "spec: {weight: much}"])
def test_what_was_typed_stays_when_it_is_refused(typed: str):
    made = create_change_set("a", [edit("batch", weight=5)], by=person("admin"))
    admin = signed_in("admin")
    document = f"kind: Queue\nmetadata: {{name: vision}}\n{typed}"

    added = admin.post(f"/changes/{made.pk}/add/", {"yaml": document})
    tried = admin.post(f"/changes/{made.pk}/preview/", {"yaml": document})

    for answer in (added, tried):
        assert answer.status_code == 400
        assert text(answer).count("metadata: {name: vision}") == 1


def test_minutes_that_are_no_number_are_refused_by_name():
    made = create_change_set("a", [edit("batch", weight=5)], by=person("admin"))
    admin = signed_in("admin")

    for page in (f"/changes/{made.pk}/preview/", "/previews/"):
        for minutes in ("soon", "0", "1441"):
            answer = admin.post(page, {"minutes": minutes, "lost": "n1"})
            assert (answer.status_code, "<code>minutes</code>" in text(answer)) == (400, True)
    assert not Preview.objects.exists()


def test_a_deed_that_fails_is_not_told_as_done():
    made = create_change_set("a", [edit("batch", weight=5)], by=person("admin"))
    admin = signed_in("admin")
    admin.post(f"/changes/{made.pk}/apply/")
    admin.get("/changes/")

    for verb in ("discard", "refresh"):
        page = text(admin.post(f"/changes/{made.pk}/{verb}/"))

        assert "“a” has already been applied and cannot be" in page
        assert "Discarded “a”" not in page
        assert "is up to date" not in page


def test_a_set_that_was_applied_is_not_applied_again():
    made = create_change_set("w18 api", [edit("batch", weight=5)], by=person("admin"))
    admin = signed_in("admin")
    admin.post(f"/changes/{made.pk}/apply/")

    page = text(admin.post(f"/changes/{made.pk}/apply/"))

    assert "“w18 api” has already been applied" in page
    assert "cannot be applied" not in page


def test_a_form_that_cannot_be_read_begins_no_set():
    admin = signed_in("admin")
    wrong = {"as": "yaml", "yaml": manifest("vision", weight="much"), "collect": "yes"}

    answer = admin.post("/queues/vision/edit/", wrong)

    assert answer.status_code == 400
    assert not ChangeSet.objects.exists()


def test_a_form_whose_set_is_gone_or_over_is_told_so():
    made = create_change_set("a", [edit("batch", weight=5)], by=person("admin"))
    admin = signed_in("admin")
    admin.post(f"/changes/{made.pk}/discard/")
    given = {"as": "yaml", "yaml": manifest("vision", weight=4), "collect": "yes"}

    over = admin.post("/queues/vision/edit/", {**given, "change_set": str(made.pk)})
    gone = admin.post("/queues/vision/edit/", {**given, "change_set": "999"})

    assert (over.status_code, gone.status_code) == (409, 409)
    assert "“a” has already been discarded" in text(over)
    assert "There is no change set 999" in text(gone)
    assert "choose another change set" in text(gone)


def test_a_field_that_nobody_knows_is_told():
    admin = signed_in("admin")
    wrong = manifest("vision", weight=3, capabillity="{cpu: 4}")

    made = admin.post("/changes/-/new/", {"name": "a", "yaml": wrong}, follow=True)
    number = ChangeSet.objects.get().pk
    added = admin.post(
        f"/changes/{number}/add/", {"yaml": manifest("batch", colour="red")}, follow=True
    )

    words = "Queue vision: spec.capabillity is not known and was ignored"
    assert words in text(made)
    assert "did you mean capability?" in text(made)
    assert "Queue batch: spec.colour is not known and was ignored" in text(added)


def test_the_drawer_of_the_tree_adds_to_a_change_set_and_closes():
    admin = signed_in("admin")
    drawer = admin.get("/queues/vision/edit/?as=yaml", HTTP_X_PART="true")
    more = {"as": "yaml", "yaml": manifest("vision", weight=4), "collect": "yes"}

    answer = admin.post(
        "/queues/vision/edit/", {**form_of(text(drawer)), **more}, HTTP_X_PART="true"
    )

    assert "Add to change set" in text(drawer)
    assert answer.headers["X-Outcome"] == "saved"
    made = ChangeSet.objects.get()
    link = f'<a href="/changes/{made.pk}/">{made.name}</a>'
    assert f"Added to “{link}”. Nothing is applied yet." in text(answer)
    assert ChangeSet.objects.get().changes[0].name == "vision"
    assert Queue.objects.get(name="vision").weight == 1


def test_a_refusal_that_is_read_again_leads_to_the_page_of_the_set():
    made = create_change_set("Friday", [edit("batch", weight=5)], by=person("admin"))
    update_queue("batch", {"spec": {"weight": 7}}, merge=True)
    admin = signed_in("admin")
    refused = admin.post(f"/changes/{made.pk}/apply/")

    again = admin.get(f"/changes/{made.pk}/apply/")

    assert refused.status_code == 409
    assert (again.status_code, again.url) == (302, f"/changes/{made.pk}/")
    assert admin.get(f"/changes/{made.pk}/plan/").url == f"/changes/{made.pk}/"
    assert signed_in("sam").get(f"/changes/{made.pk}/discard/").status_code == 404
    assert admin.get("/changes/999/apply/").status_code == 404
    assert ChangeSet.objects.get().state == "Draft"
