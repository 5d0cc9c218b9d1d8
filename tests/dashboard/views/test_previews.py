"""The pages of previews."""

from __future__ import annotations

import pytest
import yaml

from scheduler.models import Job, PodGroup, Preview
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.change_sets.preview_runs import work_out_previews
from tests.dashboard.work import person, signed_in, small_cluster, text
from tests.services.change_sets.builders import edit
from tests.worlds import manifest

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def test_a_job_is_previewed_from_the_page_that_submits_it():
    sam = signed_in("sam")
    job = yaml.safe_dump(manifest("tried", "vision"))

    answer = sam.post("/jobs/-/new/", {"as": "yaml", "yaml": job, "do": "preview"})
    waiting = text(sam.get(answer.url))
    work_out_previews()
    shown = text(sam.get(answer.url))

    assert "Cancel the preview" in waiting
    assert "default/tried" in shown
    assert 'in <a href="/queues/vision/">vision</a>' in shown
    assert "as such jobs ran before" in shown
    assert not Job.objects.filter(name="tried").exists()
    assert signed_in("vera").get(answer.url).status_code == 404


def test_a_job_that_breaks_a_rule_is_told_on_the_same_page():
    job = yaml.safe_dump(manifest("tried", "nowhere"))
    for_sam = {"as": "yaml", "yaml": job, "do": "preview"}

    page = text(signed_in("sam").post("/jobs/-/new/", for_sam))

    assert "Cannot be submitted" in page
    assert not Preview.objects.exists()


def test_jobs_and_lost_nodes_are_tried_out_together():
    admin = signed_in("admin")
    assert "n1" in text(admin.get("/previews/?lose=n1"))
    typed = {"yaml": yaml.safe_dump(manifest("tried", "batch")), "lost": "n1", "minutes": "10"}

    answer = admin.post("/previews/", typed)
    work_out_previews()
    page = text(admin.get(answer.url))

    assert "job tried, without n1" in page
    assert "Pods placed in the first session" in page
    assert "job tried, without n1" in text(admin.get("/previews/"))


@pytest.mark.parametrize("typed", [{}, {"lost": "n9"}, {"yaml": "kind: ["}, {"yaml": "- 7"}])
def test_nonsense_is_told_beside_the_form(typed: dict[str, str]):
    answer = signed_in("admin").post("/previews/", typed)

    assert answer.status_code == 400
    assert not Preview.objects.exists()


def test_one_is_cancelled_by_its_owner():
    sam = signed_in("sam")
    sam.post("/previews/", {"yaml": yaml.safe_dump(manifest("tried", "vision"))})
    number = Preview.objects.get().pk

    assert signed_in("admin").post(f"/previews/{number}/cancel/").status_code == 404
    sam.post(f"/previews/{number}/cancel/")

    assert Preview.objects.get().state == "Cancelled"


def test_a_change_set_is_tried_out_together_with_jobs():
    made = create_change_set("more", [edit("batch", weight=5)], by=person("admin"))
    admin = signed_in("admin")
    job = yaml.safe_dump(manifest("tried", "batch"))

    admin.post(f"/changes/{made.pk}/preview/", {"yaml": job})
    work_out_previews()

    assert "default/tried" in text(admin.get(f"/changes/{made.pk}/"))
    refused = admin.post(
        f"/changes/{made.pk}/preview/", {"yaml": yaml.safe_dump(edit("vision", weight=2))}
    )
    assert refused.status_code == 400


def test_a_preview_leads_to_the_queues_and_gangs_that_there_are():
    documents = [
        edit("batch", deserved={"cpu": "2"}, weight=1),
        edit("fresh", parent="root", deserved={"cpu": "2"}),
    ]
    admin = signed_in("admin")
    answer = admin.post("/previews/", {"yaml": yaml.safe_dump_all(documents)})
    work_out_previews()
    row = Preview.objects.get()
    gang = PodGroup.objects.earliest("pk")
    there = f"{gang.namespace}/{gang.name}"
    moves = [{"podgroup": key, "before": None, "after": 5.0} for key in (there, "default/gone")]
    row.result = {**row.result, "moves": moves}
    row.save()

    page = text(admin.get(answer.url))

    assert 'href="/queues/batch/"' in page
    assert "fresh" in {queue["queue"] for queue in row.result["queues"]}
    assert "/queues/fresh/" not in page
    assert f'href="/jobs/{there}/"' in page
    assert "default/gone" in page
    assert "/jobs/default/gone/" not in page
