"""How much may wait in one queue and of one person, and how many pods a job may have.

Told alike through every door.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml
from django.test import Client

from scheduler.conf import conf
from scheduler.models import Job, Pod, PodGroup
from scheduler.selectors.queues import submission
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.grants import grant_role
from scheduler.services.jobs.pod_steps import create_next_pods
from tests.dashboard.api.conftest import Caller
from tests.dashboard.reviews import answer, causes, review
from tests.worlds import manifest, node, pass_time, queue, run_session

pytestmark = pytest.mark.django_db

Limit = Callable[..., None]


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Limit:
    def _limit(**limits: int) -> None:
        monkeypatch.setattr(submission, "conf", lambda: replace(conf(), limits=limits))

    return _limit


@pytest.fixture
def submitter(db: None) -> Caller:
    caller = Caller("jane", ("submit",))
    grant_role(user="jane", role="submitter", queue="root", by=SYSTEM)
    return caller


def rules(answer: Any) -> list[str]:
    return [violation["ruleId"] for violation in answer["violations"]]


def test_one_job_has_no_more_pods_than_allowed(submitter: Caller, limit: Limit):
    limit(pods_per_job=10)

    refused = submitter.post("jobs/", manifest("large", replicas=11), expect=400)

    assert rules(refused) == ["too_many_pods_in_job"]
    assert (
        refused["violations"][0]["message"]
        == "large has 11 pods in all its tasks together; a job may have at most 10."
    )
    submitter.post("jobs/", manifest("just-right", replicas=10), expect=201)
    refused = submitter.patch(
        "jobs/default/just-right/",
        {"spec": {"tasks": [_task(11)]}},
        expect=400,
    )
    assert rules(refused) == ["too_many_pods_in_job"]


def _task(replicas: int) -> dict[str, Any]:
    task: dict[str, Any] = Job.objects.latest("pk").tasks[0]
    return {**task, "replicas": replicas}


def test_jobs_that_wait_in_a_queue_are_counted(submitter: Caller, admin: Caller, limit: Limit):
    limit(jobs_per_queue=2)
    queue("other")
    submitter.post("jobs/", manifest("one"), expect=201)
    admin.post("jobs/", manifest("two"), expect=201)

    refused = submitter.post("jobs/", manifest("three"), expect=409)

    assert rules(refused) == ["too_many_waiting_jobs_in_queue"]
    assert (
        refused["detail"]
        == "2 jobs already wait in default; with 1 more there would be more than the limit of 2."
    )
    assert "MAX_WAITING_JOBS_PER_QUEUE" in refused["violations"][0]["fix"]
    submitter.post("jobs/", manifest("three", "other"), expect=201)


def test_what_has_started_or_was_cancelled_waits_no_more(submitter: Caller, limit: Limit):
    limit(jobs_per_queue=1, pods_per_queue=3)
    node("n1", cpu="2")
    submitter.post("jobs/", manifest("one", replicas=3, least=2), expect=201)
    run_session()
    pass_time(1)
    run_session()

    assert rules(submitter.post("jobs/", manifest("two", replicas=3), expect=409)) == [
        "too_many_waiting_pods_in_queue"
    ]
    submitter.post("jobs/", manifest("two", replicas=2), expect=201)
    submitter.post("jobs/default/two/cancel/")
    submitter.post("jobs/", manifest("three", replicas=2), expect=201)


def test_what_waits_of_one_person_is_counted_over_all_queues(
    submitter: Caller,
    admin: Caller,
    limit: Limit,
):
    limit(jobs_per_user=2, pods_per_user=9)
    queue("other")
    submitter.post("jobs/", manifest("one", replicas=5), expect=201)

    refused = submitter.post("jobs/", manifest("two", "other", replicas=5), expect=409)
    assert rules(refused) == ["too_many_waiting_pods_of_user"]
    assert (
        refused["detail"]
        == "5 pods of jane already wait; with 5 more there would be more than the limit of 9."
    )
    submitter.post("jobs/", manifest("two", "other", replicas=4), expect=201)
    both = rules(submitter.post("jobs/", manifest("three"), expect=409))
    assert both == ["too_many_waiting_jobs_of_user", "too_many_waiting_pods_of_user"]
    admin.post("jobs/", manifest("three", replicas=9), expect=201)


def test_pods_that_are_still_to_be_made_wait_too(
    submitter: Caller,
    limit: Limit,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("scheduler.services.jobs.pod_creation.AT_ONCE", 4)
    limit(pods_per_queue=12)
    submitter.post("jobs/", manifest("large", replicas=10), expect=201)
    create_next_pods(PodGroup.objects.get().unmade_pods.get().pk)

    assert Pod.objects.count() == 4
    assert rules(submitter.post("jobs/", manifest("more", replicas=3), expect=409)) == [
        "too_many_waiting_pods_in_queue"
    ]


def test_a_job_that_grows_or_comes_back_is_asked_like_a_new_one(submitter: Caller, limit: Limit):
    limit(pods_per_queue=3)
    submitter.post("jobs/", manifest("ended"), expect=201)
    submitter.post("jobs/default/ended/cancel/")
    submitter.post("jobs/", manifest("waits", replicas=3, least=1), expect=201)

    assert rules(
        submitter.patch("jobs/default/waits/", {"spec": {"tasks": [_task(4)]}}, expect=409)
    ) == ["too_many_waiting_pods_in_queue"]
    assert rules(submitter.post("jobs/default/ended/restart/", expect=409)) == [
        "too_many_waiting_pods_in_queue"
    ]
    submitter.patch("jobs/default/waits/", {"spec": {"tasks": [_task(2)]}})
    submitter.post("jobs/default/ended/restart/")


def test_gangs_and_pods_from_outside_are_counted(submitter: Caller, limit: Limit):
    limit(jobs_per_queue=2, pods_per_queue=2)
    gang = {
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"queue": "default", "minMember": 1},
    }
    member = {
        "metadata": {"name": "m", "annotations": {"scheduling.k8s.io/group-name": "gang"}},
        "spec": {"containers": []},
    }
    bare = {"metadata": {"name": "bare"}, "spec": {"containers": []}}

    submitter.post("podgroups/", gang, expect=201)
    submitter.post("pods/", member, expect=201)
    submitter.post("pods/", bare, expect=201)

    assert rules(
        submitter.post("podgroups/", {**gang, "metadata": {"name": "more"}}, expect=409)
    ) == ["too_many_waiting_jobs_in_queue"]
    more = {**member, "metadata": {**member["metadata"], "name": "m2"}}
    assert rules(submitter.post("pods/", more, expect=409)) == ["too_many_waiting_pods_in_queue"]
    submitter.delete("pods/default/m/")
    submitter.post("pods/", more, expect=201)


def test_waiting_is_no_advice_where_it_cannot_help(submitter: Caller, limit: Limit):
    limit(pods_per_user=3)
    asked = manifest("large")
    asked["spec"]["tasks"][0]["replicas"] = 4

    refused = submitter.post("jobs/", asked, expect=409)

    assert refused["violations"][0]["fix"].startswith("submit fewer pods at once, or ask an admin")


def test_every_door_says_it(submitter: Caller, limit: Limit, client: Client):
    limit(jobs_per_queue=1)
    submitter.post("jobs/", manifest("one"), expect=201)
    words = "1 job already waits in default; with 1 more there would be more than the limit of 1."
    asked = manifest("two")

    assert submitter.post("jobs/?dry_run=true", asked, expect=409)["detail"] == words
    applied = submitter.apply(yaml.safe_dump(asked), expect=409)
    assert [violation["message"] for violation in applied["violations"]] == [words]
    reviewed = answer(client, "jobs", review("jobs", "CREATE", asked))
    assert causes(reviewed) == ["too_many_waiting_jobs_in_queue"]
    assert reviewed["status"]["message"].startswith(f"{words} Wait until some have started")
    client.force_login(submitter.user)
    for wanted in ("check", "submit"):
        page = client.post(
            "/jobs/-/new/", {"as": "yaml", "yaml": yaml.safe_dump(asked), "do": wanted}
        )
        assert words in page.content.decode()


def test_0_lifts_a_limit(submitter: Caller, limit: Limit):
    limit(jobs_per_queue=0, pods_per_queue=0, jobs_per_user=0, pods_per_user=0, pods_per_job=0)

    for number in range(3):
        submitter.post("jobs/", manifest(f"job-{number}", replicas=2), expect=201)


def test_a_bulk_of_jobs_stops_at_the_limit(submitter: Caller, limit: Limit):
    limit(jobs_per_user=2)

    results = submitter.post("jobs/", [manifest(f"job-{number}") for number in range(4)])["results"]

    assert [result["status"] for result in results] == [201, 201, 409, 409]
    assert Job.objects.count() == 2
