"""Submitting a job by form or YAML, and the check before."""

from __future__ import annotations

import pytest
import yaml

from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import Job, Queue
from scheduler.services.queues.commands import command_queue
from tests.dashboard.work import person, signed_in, small_cluster, text
from tests.worlds import manifest

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


FORM = {
    "name": "fresh",
    "namespace": "default",
    "queue": "vision",
    "task": "worker",
    "replicas": "2",
    "image": "busybox",
    "cpu": "1",
    "memory": "1Gi",
}


def test_only_queues_that_take_jobs_from_one_are_offered():
    assert [choice.name for choice in signed_in("sam").get("/jobs/-/new/").context["choices"]] == [
        "vision"
    ]
    assert signed_in("vera").get("/jobs/-/new/").context["choices"] == []


def test_the_picker_says_what_is_free():
    choice = signed_in("sam").get("/jobs/-/new/").context["choices"][0]

    assert (
        choice.words == "free: 8 CPU · 64 Gi"
    )  # the cluster has 16 CPU of which 8 are in use; the limit of 12 leaves 8


def test_a_check_submits_nothing():
    answer = signed_in("sam").post("/jobs/-/new/", {**FORM, "do": "check"})

    assert "Starts now" in text(answer)
    assert not Job.objects.filter(name="fresh").exists()


def test_the_form_submits():
    answer = signed_in("sam").post("/jobs/-/new/", {**FORM, "do": "submit"})

    assert answer["Location"] == "/jobs/default/fresh/"
    assert Job.objects.get(name="fresh").owner == "sam"


def test_what_breaks_a_rule_is_told_where():
    answer = signed_in("sam").post(
        "/jobs/-/new/", {**FORM, "cpu": "lots", "needed": "9", "do": "submit"}
    )

    assert "Cannot be submitted" in text(answer)
    assert not Job.objects.filter(name="fresh").exists()


@pytest.mark.parametrize(
    "text_given", ["", "- a", "{", "kind: Job\nkind: Job", "!!python/object:os.system {}"]
)
def test_yaml_that_can_not_be_read_is_told(text_given: str):
    answer = signed_in("sam").post(
        "/jobs/-/new/", {"as": "yaml", "yaml": text_given, "do": "submit"}
    )

    assert answer.status_code == 400 or "Cannot be submitted" in text(answer)
    assert text_given.partition("\n")[0] in answer.context["yaml"]


def test_a_clone_has_the_next_free_name_and_the_same_shape():
    form = signed_in("sam").get("/jobs/-/new/", {"clone": "default/train-1"}).context

    manifest = form["yaml"]
    assert "name: train-3" in manifest
    assert "replicas: 4" in manifest


def test_a_closed_queue_is_refused_with_others_that_would_take_the_job():
    command_queue("batch", QueueCommand.CLOSE, by=person("admin"))
    text_given = yaml.safe_dump(manifest("fresh", "batch"))

    page = signed_in("admin").post(
        "/jobs/-/new/", {"as": "yaml", "yaml": text_given, "do": "check"}
    )

    assert page.context["verdict"].prospect == "refused"
    assert [choice.name for choice in page.context["alternatives"]] == [
        "default",
        "language",
        "vision",
    ]
    assert "These queues would take it" in text(page)


def test_an_unclosed_bracket_is_told_with_its_line():
    page = signed_in("sam").post(
        "/jobs/-/new/",
        {"as": "yaml", "yaml": "kind: Job\nmetadata: {name: x\nspec: 1", "do": "check"},
    )

    assert "line 3" in text(page)
    assert page.status_code == 400


@pytest.mark.parametrize("wanted", ["check", "submit"])
@pytest.mark.parametrize("queue", ["production", "nowhere"])
def test_yaml_whose_queue_is_out_of_sight_is_told_like_one_that_is_not_there(
    wanted: str, queue: str
):
    Queue.objects.get_or_create(
        name="production", defaults={"parent": Queue.objects.get(name="root")}
    )
    typed = yaml.safe_dump(manifest("mine", queue))

    answer = signed_in("sam").post("/jobs/-/new/", {"as": "yaml", "yaml": typed, "do": wanted})

    assert answer.status_code == 200
    assert f"There is no queue {queue}." in text(answer)
    assert answer.context["yaml"] == typed


@pytest.mark.parametrize("wanted", ["check", "submit"])
def test_who_may_only_look_at_the_queue_is_told_so_and_keeps_what_was_typed(wanted: str):
    typed = yaml.safe_dump(manifest("mine", "vision"))

    answer = signed_in("vera").post("/jobs/-/new/", {"as": "yaml", "yaml": typed, "do": wanted})

    assert answer.status_code == 200
    assert "You need the permission “submit” on the queue vision" in text(answer)
    assert answer.context["yaml"] == typed


def test_turning_to_yaml_asks_for_no_name():
    page = text(signed_in("sam").get("/jobs/-/new/"))

    assert 'value="turn" formnovalidate>YAML' in page
    assert (
        signed_in("sam").post("/jobs/-/new/", {**FORM, "name": "", "do": "turn"}).status_code == 200
    )
