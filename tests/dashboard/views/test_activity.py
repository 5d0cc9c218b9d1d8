"""Activity and audit: what is seen by whom, and how it is exported."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from scheduler.models import (
    AuditEntry,
)
from tests.dashboard.work import signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def test_a_queue_admin_reads_the_record_of_his_queues_only():
    signed_in("admin").post("/jobs/default/nightly/suspend/", {"reason": "far away"})
    signed_in("sam").post("/jobs/default/train-1/suspend/", {"reason": "close by"})

    everything, limited = (
        text(signed_in(who).get("/audit/?deeds=all")) for who in ("admin", "ruth")
    )

    assert "far away" in everything
    assert "close by" in everything
    assert "close by" in limited
    assert "far away" not in limited


def test_the_record_is_exported_as_it_is_filtered():
    signed_in("sam").post("/jobs/default/train-1/suspend/", {"reason": "=1+1"})

    as_json = signed_in("admin").get("/audit/", {"actor": "sam", "deeds": "work", "format": "json"})
    as_csv = signed_in("admin").get("/audit/", {"actor": "sam", "deeds": "work", "format": "csv"})

    entries = [entry for entry in json.loads(text(as_json)) if entry["reason"]]
    assert [entry["reason"] for entry in entries] == ["=1+1"]
    assert "'=1+1" in text(as_csv)  # no spreadsheet takes it for a formula


def test_an_entry_shows_before_and_after():
    signed_in("admin").post("/nodes/n1/cordon/", {"reason": "dust"})
    entry = AuditEntry.objects.get(action="CordonNode")

    page = text(signed_in("admin").get(reverse("audit-entry", args=[entry.pk])))

    assert "<del>no</del>" in page
    assert "<ins>yes</ins>" in page


def test_events_are_filtered_and_those_out_of_sight_left_out():
    admin = signed_in("admin").get("/activity/", {"kind": "Job"})
    vera = signed_in("vera").get("/activity/")

    assert {event["row"].kind for event in admin.context["events"]} == {"Job"}
    assert all(event["row"].queue_name in ("vision", "") for event in vera.context["events"])


def test_pods_have_their_own_place_in_the_feed():
    admin = signed_in("admin")

    without, everything, only = (
        admin.get("/activity/", {"kind": kind}).context["events"] for kind in ("", "all", "Pod")
    )

    assert "Pod" not in {event["row"].kind for event in without}
    assert "Pod" in {event["row"].kind for event in everything}
    assert {event["row"].kind for event in only} == {"Pod"}


def test_why_jobs_wait_is_no_news_unless_asked_for():
    admin = signed_in("admin")

    changes, everything, asked = (
        admin.get("/activity/", given).context["events"]
        for given in ({}, {"kind": "all"}, {"reason": "Unschedulable"})
    )
    of_queue = admin.get("/queues/vision/activity/").context["entries"]

    assert "Unschedulable" not in {event["row"].reason for event in changes}
    assert "Unschedulable" in {event["row"].reason for event in everything}
    assert {event["row"].reason for event in asked} == {"Unschedulable"}
    assert of_queue
    assert "Unschedulable" not in {entry["what"] for entry in of_queue}


def test_what_a_record_is_about_is_a_link():
    signed_in("sam").post("/jobs/default/train-1/suspend/", {"reason": "a test"})
    signed_in("admin").post("/nodes/n1/cordon/", {"reason": "dust"})

    record = text(signed_in("admin").get("/audit/?deeds=all"))
    feed = text(signed_in("admin").get("/queues/vision/activity/"))

    assert 'href="/jobs/default/train-1/"' in record
    assert 'href="/nodes/n1/"' in record
    assert 'href="/jobs/default/train-1/"' in feed
