"""Limits that queues name: on what waits, on one job's pods, and on how long it runs.

Each counts for everything below, and through every door.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from django.test import Client

from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.grants import grant_role
from tests.dashboard.api.conftest import Caller
from tests.dashboard.reviews import answer, causes, review
from tests.worlds import manifest, node, pass_time, queue, run_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def submitter(db: None) -> Caller:
    caller = Caller("jane", ("submit",))
    grant_role(user="jane", role="submitter", queue="root", by=SYSTEM)
    return caller


def rules(answer: Any) -> list[tuple[str, str]]:
    return [(violation["ruleId"], violation["queue"]) for violation in answer["violations"]]


def test_what_waits_anywhere_below_a_queue_counts(submitter: Caller, admin: Caller):
    queue("team", max_waiting_jobs=2)
    queue("train", "team")
    queue("serve", "team")
    admin.post("jobs/", manifest("one", "train"), expect=201)
    submitter.post("jobs/", manifest("two", "serve"), expect=201)

    refused = submitter.post("jobs/", manifest("three", "train"), expect=409)

    assert rules(refused) == [("too_many_waiting_jobs_in_queue", "team")]
    (violation,) = refused["violations"]
    assert violation["message"] == (
        "With 1 more, there would be more than the 2 jobs that may wait in team."
    ), "how many wait above one's own queue is nobody's business"
    assert violation["fix"].endswith("or ask an admin to raise maxWaitingJobs of team")
    submitter.post("jobs/", manifest("three"), expect=201)


def test_each_user_has_a_limit_below_a_queue(submitter: Caller, admin: Caller):
    queue("team", max_waiting_jobs_per_user=1, max_waiting_pods_per_user=5)
    queue("train", "team")
    queue("serve", "team")
    submitter.post("jobs/", manifest("one", "train", replicas=4), expect=201)

    refused = submitter.post("jobs/", manifest("two", "serve", replicas=2), expect=409)

    assert rules(refused) == [
        ("too_many_waiting_jobs_of_user", "team"),
        ("too_many_waiting_pods_of_user", "team"),
    ]
    assert refused["violations"][0]["message"] == (
        "1 job of jane already waits in team; with 1 more there would be more than the limit of 1."
    )
    admin.post("jobs/", manifest("two", "serve", replicas=5), expect=201)


def test_every_limit_on_the_way_up_counts(submitter: Caller):
    queue("team", max_waiting_pods=4)
    queue("train", "team", max_waiting_pods=9)
    submitter.post("jobs/", manifest("one", "train", replicas=3), expect=201)

    refused = submitter.post("jobs/", manifest("two", "train", replicas=2), expect=409)

    assert rules(refused) == [("too_many_waiting_pods_in_queue", "team")]


def test_pods_that_run_do_not_wait(submitter: Caller):
    queue("team", max_waiting_pods=3, max_waiting_jobs=1)
    node("n1", cpu="3")
    submitter.post("jobs/", manifest("one", "team", replicas=3), expect=201)
    run_session()
    pass_time(1)
    run_session()

    submitter.post("jobs/", manifest("two", "team", replicas=3), expect=201)


def test_the_strictest_limit_on_the_pods_of_one_job_counts(submitter: Caller):
    queue("team", max_pods_per_job=2)
    queue("train", "team", max_pods_per_job=9)

    refused = submitter.post("jobs/", manifest("large", "train", replicas=3), expect=400)

    assert rules(refused) == [("too_many_pods_in_job", "team")]
    assert refused["violations"][0]["message"] == (
        "large has 3 pods in all its tasks together; a job may have at most 2 in team."
    )
    assert refused["violations"][0]["field"] == "spec.tasks"


def test_a_job_that_says_it_runs_too_long_is_not_begun(submitter: Caller):
    queue("team", max_run_seconds=3600)

    refused = submitter.post("jobs/", manifest("long", "team", seconds=7200), expect=400)

    assert rules(refused) == [("run_time_too_long", "team")]
    assert refused["violations"][0]["message"] == (
        "long says that it runs for 7,200 s; team ends jobs after 3,600 s."
    )
    submitter.post("jobs/", manifest("short", "team", seconds=3600), expect=201)


def test_every_door_says_it(submitter: Caller, client: Client):
    queue("team", max_waiting_jobs=1)
    submitter.post("jobs/", manifest("one", "team"), expect=201)
    words = "1 job already waits in team; with 1 more there would be more than the limit of 1."
    asked = manifest("two", "team")

    assert submitter.post("jobs/?dry_run=true", asked, expect=409)["detail"] == words
    applied = submitter.apply(yaml.safe_dump(asked), expect=409)
    assert [violation["message"] for violation in applied["violations"]] == [words]
    several = submitter.post("jobs/", [asked, manifest("three", "team")])["results"]
    assert [result["status"] for result in several] == [409, 409]
    reviewed = answer(client, "jobs", review("jobs", "CREATE", asked))
    assert causes(reviewed) == ["too_many_waiting_jobs_in_queue"]
    gang = {"metadata": {"name": "g"}, "spec": {"queue": "team", "minMember": 1}}
    assert submitter.post("podgroups/", gang, expect=409)["detail"] == words
    client.force_login(submitter.user)
    page = client.post(
        "/jobs/-/new/", {"as": "yaml", "yaml": yaml.safe_dump(asked), "do": "submit"}
    )
    assert words in page.content.decode()


def test_the_limits_that_apply_are_shown_with_their_queue(admin: Caller):
    queue("team", max_waiting_jobs=50, max_run_seconds=3600)
    queue("train", "team", max_waiting_jobs=60)

    found = admin.get("queues/train/")

    assert found["spec"]["maxWaitingJobs"] == 60
    assert found["spec"]["maxRunSeconds"] is None
    assert found["status"]["limits"] == [
        {"field": "maxWaitingJobs", "limit": 50, "queue": "team"},
        {"field": "maxRunSeconds", "limit": 3600, "queue": "team"},
    ]
    assert admin.get("queues/?search=train")["results"][0]["status"] == found["status"]


def test_the_admin_of_a_queue_cannot_raise_its_limit(admin: Caller):
    queue("team", max_waiting_jobs=5)
    queue("train", "team")
    owner = Caller("owner", ("admin",))
    grant_role(user="owner", role="admin", queue="team", by=SYSTEM)

    owner.patch("queues/team/", {"spec": {"maxWaitingJobs": 500}}, expect=403)
    owner.patch("queues/train/", {"spec": {"maxWaitingJobs": 3}})
    assert admin.get("queues/team/")["spec"]["maxWaitingJobs"] == 5
