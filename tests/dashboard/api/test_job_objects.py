"""Jobs and podgroups over HTTP."""

from __future__ import annotations

import pytest

from tests.dashboard.api.conftest import Caller, job, node, queue
from tests.worlds import pass_time, run_session

pytestmark = pytest.mark.django_db


def test_a_job_is_submitted_commanded_scaled_and_deleted(admin: Caller):
    admin.post("nodes/", node("n1", cpu="8", memory="32Gi"), expect=201)
    made = admin.post("jobs/", {**job("train", replicas=2), "extra": 1}, expect=201)
    assert made["warnings"][0]["code"] == "unknown_field"
    assert (
        admin.post("jobs/", job("train"), expect=409)["violations"][0]["ruleId"] == "already_exists"
    )
    run_session()

    scaled = admin.patch(
        "jobs/default/train/", {"spec": {"minAvailable": 1, "tasks": _tasks(admin, replicas=3)}}
    )
    assert (scaled["changed"], scaled["spec"]["minAvailable"], scaled["status"]["pending"]) == (
        True,
        1,
        1,
    )
    moved = admin.patch("jobs/default/train/", {"spec": {"queue": "other"}}, expect=400)
    assert moved["violations"][0]["ruleId"] == "immutable_field_changed"
    assert "cancel" in admin.delete("jobs/default/train/", expect=409)["violations"][0]["fix"]
    assert admin.post("jobs/default/train/suspend/?dry_run=true")["changed"] is True
    assert (
        admin.post("jobs/default/train/cancel/", {"reason": "wrong data"})["phase"] == "Terminating"
    )
    assert admin.post("jobs/default/train/cancel/")["changed"] is False
    run_session()  # carries out what was decided
    pass_time(60)
    assert "restart" in admin.post("jobs/default/train/resume/", expect=409)["detail"]
    entry = admin.get("audit/?action=TerminateJob")["results"][0]["spec"]
    assert (entry["reason"], entry["actor"], entry["door"]) == ("wrong data", "boss", "API")
    admin.delete("jobs/default/train/")
    admin.get("jobs/default/train/", expect=404)


def _tasks(admin: Caller, replicas: int) -> list[dict[str, object]]:
    tasks = admin.get("jobs/default/train/")["spec"]["tasks"]
    return [{**tasks[0], "replicas": replicas, "minAvailable": 1}]


def test_a_job_that_shrinks_loses_its_last_pods_for_good(admin: Caller):
    admin.post("jobs/", job("train", replicas=3), expect=201)

    admin.patch(
        "jobs/default/train/", {"spec": {"minAvailable": 1, "tasks": _tasks(admin, replicas=1)}}
    )

    assert [pod["metadata"]["name"] for pod in admin.get("pods/")["results"]] == ["train-worker-0"]


@pytest.mark.both_databases
def test_jobs_are_found_by_what_they_are(admin: Caller):
    admin.post("queues/", [queue("a"), queue("b", "a"), queue("c")])
    admin.post("jobs/", [job("one", "b"), job("two", "c", cpu="64")])

    def names(query: str) -> list[str]:
        return [
            row["metadata"]["name"] for row in admin.get(f"jobs/?ordering=name&{query}")["results"]
        ]

    assert names("queue=a") == ["one"]
    assert names("user=boss") == ["one", "two"]
    assert names("user=nobody") == []
    assert names("min_request=cpu:8") == ["two"]
    assert names("max_request=cpu:8") == ["one"]
    assert names("phase=Pending&search=tw") == ["two"]
    assert names("namespace=elsewhere") == []
    admin.post("nodes/", node("n1", cpu="4", memory="8Gi"), expect=201)
    run_session()
    reason = admin.get("jobs/default/two/")["status"]["podgroup"]["reason"]["code"]
    assert names(f"reason={reason}") == ["two"]


def test_why_a_gang_waits_with_its_place_in_the_line(admin: Caller):
    admin.post("jobs/", [job("one"), job("two")])

    assert admin.get("podgroups/default/one/explain/")["position"] == 1
    second = admin.get("podgroups/default/two/explain/")
    assert (second["position"], second["reason"]) == (2, "AwaitingEvaluation")


def test_a_podgroup_of_a_job_is_changed_with_the_job(admin: Caller):
    admin.post("jobs/", job("train"), expect=201)

    assert (
        admin.patch("podgroups/default/train/", {"spec": {"minMember": 2}}, expect=409)[
            "violations"
        ][0]["ruleId"]
        == "owned_by_job"
    )
    admin.delete("podgroups/default/train/", expect=409)


def test_a_podgroup_from_outside_is_changed_and_deleted_with_its_pods(admin: Caller):
    admin.post(
        "podgroups/",
        {"metadata": {"name": "own"}, "spec": {"minMember": 1, "minResources": {"cpu": "1"}}},
        expect=201,
    )
    pod = {
        "metadata": {"name": "p", "annotations": {"scheduling.k8s.io/group-name": "own"}},
        "spec": {"containers": []},
    }
    admin.post("pods/", pod, expect=201)

    assert (
        admin.patch("podgroups/default/own/", {"spec": {"minMember": 2}})["spec"]["minMember"] == 2
    )
    assert (
        admin.patch("podgroups/default/own/", {"spec": {"queue": "x"}}, expect=400)["violations"][
            0
        ]["ruleId"]
        == "immutable_field_changed"
    )
    admin.delete("podgroups/default/own/")
    admin.get("pods/default/p/", expect=404)
