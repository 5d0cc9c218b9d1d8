"""The pages of a Kubernetes cluster that is watched.

What they show, and that they change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler.models import Node
from scheduler.services.sessions.runner import SessionRunner
from tests.dashboard.work import text
from tests.mirrored import (
    MadeUpCluster,
    budget,
    job,
    kubernetes_mode,
    node,
    pod,
    podgroup,
    podgroup_of,
    queue,
)

pytestmark = [pytest.mark.django_db]

TRAIN = job("train")


@pytest.fixture(autouse=True)
def _watched_cluster() -> Iterator[None]:
    with kubernetes_mode():
        MadeUpCluster().lists(
            node("n1", cpu="8", labels={"zone": "a"}),
            queue("research", "gone", deserved={"cpu": "4"}),
            podgroup("gang", queue="research", least=2),
            pod("gang-0", group="gang", node="n1", cpu="2", about={"labels": {"app": "web"}}),
            budget("keep-web", {"matchLabels": {"app": "web"}}, allowed=0),
            pod("gang-1", group="gang", cpu="64"),
            pod("web", node="n1", cpu="1500m", scheduler="default-scheduler"),
            TRAIN,
            podgroup_of(TRAIN, phase="Inqueue"),
            pod("train-0", group=TRAIN.group_name),
            job("done", phase="Completed"),
        )
        SessionRunner("test").run()
        yield


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/queues/",
        "/queues/research/",
        "/jobs/",
        "/jobs/default/gang/",
        "/jobs/default/train/",
        "/jobs/default/train/yaml/",
        "/jobs/default/done/",
        "/nodes/",
        "/sessions/",
    ],
)
def test_every_page_wears_the_name_and_the_mode_of_the_cluster(root_admin, address):
    page = root_admin.get(address)

    assert page.status_code == 200
    assert "Kubernetes · watching" in text(page)


def test_a_node_says_what_pods_of_other_schedulers_hold(root_admin):
    page = text(root_admin.get("/nodes/n1/"))

    assert "1.5 CPU by pods of other schedulers" in page
    assert "3.5 of 8 CPU" in page
    assert "1 of 110 pods, and 1 of other schedulers" in page


def test_a_gang_says_which_budget_protects_its_pods(root_admin):
    page = text(root_admin.get("/jobs/default/gang/"))

    assert "Protected by budget keep-web: 0 disruptions allowed" in page
    assert ">budget keep-web</small>" in page
    assert "budget" not in text(root_admin.get("/jobs/default/train/"))


def test_the_api_names_the_budgets_of_a_pod(root_admin):
    pods = root_admin.get("/api/v1/pods/").json()["results"]

    found = {each["metadata"]["name"]: each["status"]["disruptionBudgets"] for each in pods}
    assert found["gang-0"] == ["keep-web"]
    assert found["gang-1"] == []


def test_a_queue_says_what_could_not_be_taken_over(root_admin):
    page = text(root_admin.get("/queues/research/"))

    assert "Its parent gone does not exist or is below it; it is shown below root." in page


def test_a_command_on_a_page_is_refused_with_the_way_to_give_it(root_admin):
    page = text(root_admin.post("/nodes/n1/cordon/", {"reason": "test"}, follow=True))

    assert "kubectl cordon" in page
    assert not Node.objects.filter(unschedulable=True).exists()


def test_the_api_refuses_a_change(root_admin):
    answer = root_admin.post(
        "/api/v1/nodes/", {"metadata": {"name": "new"}, "spec": {}}, "application/json"
    )

    assert answer.status_code == 409
    assert "kubectl" in answer.content.decode()


# Jobs of Volcano


def test_a_job_is_listed_under_its_own_name_also_when_it_has_ended(root_admin):
    page = text(root_admin.get("/jobs/"))

    assert "train" in page
    assert "done" in page
    assert TRAIN.group_name not in page


def test_the_page_of_a_job_names_its_podgroup(root_admin):
    assert f"podgroup {TRAIN.group_name}" in text(root_admin.get("/jobs/default/train/"))
    assert "podgroup" not in text(root_admin.get("/jobs/default/done/"))


def test_the_name_of_its_podgroup_leads_to_the_job_too(root_admin):
    page = root_admin.get(f"/jobs/default/{TRAIN.group_name}/")

    assert page.status_code == 200
    assert "<h1>train</h1>" in page.content.decode()


def test_the_api_has_jobs_by_their_names_and_podgroups_by_those_of_the_cluster(root_admin):
    shown = root_admin.get("/api/v1/jobs/default/train/").json()
    assert shown["metadata"]["uid"] == TRAIN.meta.uid
    assert shown["status"]["podgroup"]["name"] == TRAIN.group_name
    assert (
        root_admin.get("/api/v1/jobs/default/done/").json()["status"]["state"]["phase"]
        == "Completed"
    )

    for name in ("train", TRAIN.group_name):
        group = root_admin.get(f"/api/v1/podgroups/default/{name}/").json()
        assert group["metadata"]["name"] == TRAIN.group_name
        assert group["metadata"]["uid"] != TRAIN.meta.uid
        assert group["status"]["job"] == {"namespace": "default", "name": "train"}
        explained = root_admin.get(f"/api/v1/podgroups/default/{name}/explain/").json()
        assert explained["reason"] == "AnotherSchedulerDecides"
        pods = root_admin.get("/api/v1/pods/", {"podgroup": name}).json()["results"]
        assert [each["metadata"]["name"] for each in pods] == ["train-0"]
        assert pods[0]["status"]["podgroup"] == TRAIN.group_name


def test_a_gang_that_would_start_says_that_another_scheduler_decides(root_admin):
    for address in ("/jobs/", "/jobs/default/train/"):
        page = text(root_admin.get(address))
        assert "Fumarole would start it now." in page
        assert "Not evaluated yet" not in page


# What is not offered


@pytest.mark.parametrize(
    ("address", "offered"),
    [
        ("/queues/research/jobs/", "Submit a job"),
        ("/jobs/", "Submit a job"),
        ("/jobs/", "all that match"),
        ("/jobs/default/train/", "Suspend"),
        ("/jobs/default/train/", "Clone"),
        ("/jobs/default/train/", "Ask its owner"),
        ("/nodes/n1/", "Cordon…"),
        ("/nodes/n1/", "Drain…"),
    ],
)
def test_what_would_be_refused_is_not_offered(root_admin, address, offered):
    assert offered not in text(root_admin.get(address))


@pytest.mark.parametrize(
    ("address", "command"),
    [
        ("/jobs/default/train/", "kubectl apply -f job.yaml"),
        ("/jobs/", "kubectl apply -f job.yaml"),
        ("/nodes/n1/", "kubectl edit node n1"),
    ],
)
def test_instead_of_buttons_stands_how_to_change_it(root_admin, address, command):
    assert command in text(root_admin.get(address))


def test_roles_are_granted_here_as_always(root_admin):
    assert "Grant a role" in text(root_admin.get("/queues/research/access/"))


@pytest.mark.parametrize(
    ("address", "offered"),
    [
        ("/queues/", "New queue"),
        ("/queues/research/", "Close…"),
        ("/queues/research/", "Edit"),
        ("/queues/root/children/", "New queue below"),
    ],
)
def test_what_is_written_to_the_cluster_is_offered(root_admin, address, offered):
    assert offered in text(root_admin.get(address))


def test_the_palette_offers_a_new_queue(root_admin):
    assert root_admin.get("/queues/-/names.json").json()["mayCreate"] is True
