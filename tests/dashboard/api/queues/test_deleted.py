"""A queue that was deleted: the records of its work stay, under its name, for whoever might read
them before.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from scheduler.models import Grant, Job, Pod, PodGroup, Queue
from scheduler.selectors.sessions.snapshots import ResidentSnapshot
from scheduler.services.records.retention import tidy_up
from tests.dashboard.api.conftest import Caller, job, queue

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture(autouse=True)
def drained(admin: Caller) -> None:
    """team, and below it ml with a finished job and a suspended one, closed."""
    admin.post("queues/", queue("team"), expect=201)
    admin.post("queues/", queue("ml", "team"), expect=201)
    for name, command, phase in (("done", "cancel", "Terminated"), ("later", "suspend", "Aborted")):
        admin.post("jobs/", job(name, "ml"), expect=201)
        admin.post(f"jobs/default/{name}/{command}/")
        Job.objects.filter(name=name).update(phase=phase, finished_at=timezone.now())
    PodGroup.objects.update(phase="Completed")
    admin.post("queues/team/close/", {"reason": "the team has moved"})


def _names(listed: dict[str, list[dict[str, dict[str, str]]]]) -> set[str]:
    return {row["metadata"]["name"] for row in listed["results"]}


def test_the_records_of_its_jobs_stay_and_are_found_by_its_name(admin: Caller):
    gone = admin.delete("queues/ml/")

    assert (gone["deleted"], gone["jobs"], gone["suspendedJobs"]) == (["ml"], 2, 1)
    assert "2 job records stay" in gone["message"]
    assert _names(admin.get("jobs/?queue=ml")) == {"done", "later"}
    assert admin.get("jobs/default/done/")["spec"]["queue"] == "ml"
    assert _names(admin.get("podgroups/?queue=team")) == {"done", "later"}
    assert admin.get("pods/?queue=ml")["results"] is not None
    assert admin.get("queues/ml/", expect=404)["status"] == 404
    assert "ml" not in _names(admin.get("queues/"))


@pytest.mark.parametrize("asked", ["ml", "team"])
def test_its_events_and_its_audit_log_are_found_by_its_name_and_by_the_queue_above(
    admin: Caller, asked: str
):
    admin.delete("queues/ml/")

    events = {
        row["spec"]["reason"]
        for row in admin.get(f"events/?queue={asked}")["results"]
        if row["spec"]["queue"] == "ml"
    }
    deeds = {
        row["spec"]["action"]
        for row in admin.get(f"audit/?queue={asked}")["results"]
        if row["spec"]["queue"] == "ml"
    }

    assert "DeleteQueue" in events
    assert {"CreateQueue", "DeleteQueue"} <= deeds


def test_records_of_a_queue_deleted_with_the_one_above_it_are_found_by_either_name(admin: Caller):
    admin.delete("queues/team/?cascade=true")

    assert _names(admin.get("jobs/?queue=team")) == {"done", "later"}
    assert any(
        row["spec"]["action"] == "DeleteQueue" for row in admin.get("audit/?queue=ml")["results"]
    )


def test_an_admin_of_the_queue_above_still_reads_them_and_a_stranger_does_not(
    admin: Caller, caller: Callable[..., Caller]
):
    lead = caller("lead", admin="team")
    stranger = caller("eve", viewer="default")
    admin.delete("queues/ml/")

    assert _names(lead.get("jobs/?queue=ml")) == {"done", "later"}
    assert any(
        row["spec"]["action"] == "DeleteQueue" for row in lead.get("audit/?queue=ml")["results"]
    )
    assert _names(stranger.get("jobs/")) == set()
    stranger.get("jobs/default/done/", expect=404)
    assert stranger.get("events/?queue=ml")["results"] == []


def test_its_roles_go_and_do_not_come_back_with_a_queue_of_the_same_name(
    admin: Caller, caller: Callable[..., Caller]
):
    ann = caller("ann", submitter="ml")

    gone = admin.delete("queues/ml/")
    admin.post("queues/team/open/")
    admin.post("queues/", queue("ml", "team"), expect=201)

    assert gone["grants"] == 1
    assert not Grant.objects.filter(queue__name="ml").exists()
    ann.post("jobs/", job("mine", "ml"), expect=403)
    assert _names(admin.get("queues/?queue=team")) == {"team", "ml"}


def test_its_name_is_free_and_the_new_queue_counts_only_its_own_work(admin: Caller):
    admin.delete("queues/ml/")
    admin.post("queues/team/open/")

    admin.post("queues/", queue("ml", "team"), expect=201)
    admin.post("jobs/", job("new", "ml"), expect=201)

    assert admin.get("queues/ml/")["status"]["completed"] == 0
    assert admin.get("queues/ml/")["status"]["pending"] == 1
    assert admin.get("queues/team/")["status"]["subtree"]["completed"] == 0
    admin.post("queues/ml/close/")
    assert admin.delete("queues/ml/", expect=409)["violations"]


@pytest.fixture
def reused(admin: Caller, caller: Callable[..., Caller]) -> tuple[Caller, Caller]:
    """ml is deleted below team, and another team has an ml by now: the admin of the one and of the
    other.
    """
    lead = caller("lead", admin="team")
    other = caller("other", admin="default")
    admin.delete("queues/ml/")
    admin.post("queues/", queue("labs"), expect=201)
    admin.post("queues/", queue("ml", "labs"), expect=201)
    admin.post("grants/", {"user": "other", "role": "admin", "queue": "labs"}, expect=201)
    admin.post("jobs/", job("new", "ml"), expect=201)
    return lead, other


@pytest.mark.parametrize("kind", ["jobs", "podgroups"])
@pytest.mark.parametrize("asked", ["", "?queue=ml", "?search=ml"])
def test_who_reads_a_queue_of_the_same_name_elsewhere_reads_its_work_alone(
    reused: tuple[Caller, Caller],
    kind: str,
    asked: str,
):
    lead, other = reused

    assert _names(lead.get(f"{kind}/{asked}")) == {"done", "later"}
    assert _names(other.get(f"{kind}/{asked}")) == {"new"}
    assert lead.get(f"{kind}/default/done/")["metadata"]["name"] == "done"
    lead.get(f"{kind}/default/new/", expect=404)
    other.get(f"{kind}/default/done/", expect=404)


def test_pods_and_reasons_of_the_earlier_queue_are_not_read_through_the_name(
    reused: tuple[Caller, Caller],
):
    lead, other = reused
    old = Pod.objects.filter(podgroup__name="new").update(
        podgroup=PodGroup.objects.get(name="done")
    )
    pod = Pod.objects.filter(podgroup__name="done").first()

    assert old
    assert pod is not None
    assert _names(lead.get("pods/?queue=ml")) == {pod.name}
    assert _names(other.get("pods/?queue=ml")) == set()
    other.get(f"pods/default/{pod.name}/", expect=404)
    for question in ("explain", "timeline"):
        lead.get(f"podgroups/default/done/{question}/")
        other.get(f"podgroups/default/done/{question}/", expect=404)


def test_nobody_commands_its_jobs_through_the_name(reused: tuple[Caller, Caller]):
    lead, other = reused
    order = {
        "action": "ResumeJob",
        "target": {"kind": "Job", "name": "later", "namespace": "default"},
    }

    other.post("jobs/default/later/resume/", expect=404)
    other.delete("jobs/default/done/", expect=404)
    assert "There is no job default/later" in other.post("commands/", order, expect=400)["detail"]
    assert (
        "ml" in lead.ask("POST", "jobs/default/later/resume/")["detail"]
    )  # the new ml is not where it was
    assert lead.last.status_code in (409, 422)
    assert Job.objects.get(name="later").phase == "Aborted"


def test_pages_show_the_earlier_work_to_those_who_might_read_it_before(
    reused: tuple[Caller, Caller],
):
    lead = Client()
    other = Client()
    lead.force_login(reused[0].user)
    other.force_login(reused[1].user)
    Job.objects.filter(name="done").update(phase="Failed")

    assert "default/done" in lead.get("/jobs/?q=queue:ml").content.decode()
    assert lead.get("/jobs/default/done/").status_code == 200
    assert "default/done" in lead.get("/").content.decode()
    listed = other.get("/jobs/?q=queue:ml").content.decode()
    assert "default/new" in listed
    assert "default/done" not in listed
    assert other.get("/jobs/default/done/").status_code == 404
    assert "default/done" not in other.get("/").content.decode()
    assert (
        "default/done"
        not in other.get(
            "/jobs/-/bulk/?action=cancel&job=default/done", follow=True
        ).content.decode()
    )
    assert 'value="done-' in lead.get("/jobs/-/new/?clone=default/done").content.decode()
    assert 'value="done-' not in other.get("/jobs/-/new/?clone=default/done").content.decode()


@pytest.mark.parametrize("asked", ["", "&queue=ml"])
def test_events_and_the_audit_log_tell_each_of_their_own_queue(
    reused: tuple[Caller, Caller], asked: str
):
    lead, other = reused

    def told(reader: Caller, kind: str) -> set[tuple[str, str]]:
        rows = reader.get(f"{kind}/?page_size=500{asked}")["results"]
        column = "action" if kind == "audit" else "reason"
        return {
            (row["spec"]["name"], row["spec"][column])
            for row in rows
            if row["spec"]["queue"] == "ml"
        }

    assert {("ml", "CreateQueue"), ("ml", "DeleteQueue"), ("done", "SubmitJob")} <= told(
        lead, "audit"
    )
    assert told(other, "audit") == {("ml", "CreateQueue"), ("new", "SubmitJob")}
    assert ("ml", "DeleteQueue") in told(lead, "events")
    assert {name for name, _ in told(other, "events")} <= {"ml", "new"}
    assert ("ml", "DeleteQueue") not in told(other, "events")
    assert "new" not in {name for name, _ in told(lead, "events") | told(lead, "audit")}


def test_pages_of_events_and_of_the_audit_log_do_too(reused: tuple[Caller, Caller]):
    lead = Client()
    other = Client()
    lead.force_login(reused[0].user)
    other.force_login(reused[1].user)

    for address in ("/activity/?queue=ml", "/audit/?queue=ml&deeds=all", "/queues/ml/activity/"):
        assert "boss deleted ml" not in other.get(address).content.decode()
        assert "default/done" not in other.get(address).content.decode()
    assert lead.get("/queues/ml/").status_code == 404


def test_a_new_queue_named_like_the_one_above_leads_nobody_to_its_records(
    admin: Caller, caller: Callable[..., Caller]
):
    admin.delete("queues/team/?cascade=true")
    admin.post("queues/", queue("labs"), expect=201)
    admin.post("queues/", queue("team", "labs"), expect=201)
    other = caller("other", admin="team")
    above = caller("above", viewer="root")

    assert _names(other.get("jobs/")) == set()
    other.get("jobs/default/done/", expect=404)
    assert _names(above.get("jobs/?queue=team")) >= {"done", "later"}


def test_a_suspended_job_of_it_cannot_be_resumed_and_is_told_why(admin: Caller):
    admin.delete("queues/ml/")

    refused = admin.ask("POST", "jobs/default/later/resume/")

    assert admin.last.status_code in (409, 422)
    assert "ml" in refused["detail"]
    assert Job.objects.get(name="later").phase == "Aborted"


def test_sessions_no_longer_know_the_queue(admin: Caller):
    resident = ResidentSnapshot()
    resident.refresh()

    admin.delete("queues/ml/")
    resident.refresh(check_sums=True)

    assert "ml" not in {known.name for known in resident.snapshot.queues}
    fresh = ResidentSnapshot()
    fresh.refresh()
    assert "ml" not in {known.name for known in fresh.snapshot.queues}


def test_a_deleted_queue_is_forgotten_with_its_last_record(admin: Caller):
    admin.delete("queues/ml/")
    tidy_up()
    long_ago = timezone.now() - timedelta(days=400)
    assert Queue.with_deleted.filter(name="ml").exists()

    Queue.with_deleted.filter(name="ml").update(deleted_at=long_ago)
    tidy_up()
    assert Queue.with_deleted.filter(name="ml").exists()  # records refer to it

    Job.objects.update(finished_at=long_ago, phase="Completed")
    tidy_up()
    tidy_up()
    assert not Queue.with_deleted.filter(name="ml").exists()
    assert set(Queue.objects.values_list("name", flat=True)) == {"root", "default", "team"}


def test_the_dialog_says_what_goes_and_what_stays(admin: Caller):
    pages = Client()
    pages.force_login(admin.user)
    Grant.objects.create(user=admin.user, role="viewer", queue=Queue.objects.get(name="ml"))

    asked = " ".join(pages.get("/queues/ml/delete/").content.decode().split())
    closing = " ".join(pages.get("/queues/ml/farewell/").content.decode().split())
    pages.post("/queues/ml/delete/", {"queue": "ml"})
    gone = pages.get("/queues/ml/")

    for page in (asked, closing):
        assert "2 job records" in page
        assert "1 role granted on it" in page
        assert "1 suspended job cannot be resumed" in page
    assert gone.status_code == 404
    assert "was deleted by boss" in gone.content.decode()
    assert "/jobs/?q=queue%3Aml" in gone.content.decode()
    assert "default/done" in pages.get("/jobs/?q=queue:ml").content.decode()
    assert "(deleted)" in pages.get("/jobs/default/done/").content.decode()
