"""The pages of a Kubernetes cluster that is watched: what they show, and that they change nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from scheduler.models import Node, Queue
from scheduler.services.sessions.runner import SessionRunner
from tests.dashboard.work import text
from tests.mirrored import MadeUpCluster, kubernetes_mode, node, pod, podgroup, queue

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def _watched_cluster() -> Iterator[None]:
    with kubernetes_mode():
        MadeUpCluster().lists(
            node("n1", cpu="8", labels={"zone": "a"}),
            queue("research", "gone", deserved={"cpu": "4"}),
            podgroup("gang", queue="research", least=2),
            pod("gang-0", group="gang", node="n1", cpu="2"),
            pod("gang-1", group="gang", cpu="64"),
            pod("web", node="n1", cpu="1500m", scheduler="default-scheduler"),
        )
        SessionRunner("test").run()
        yield


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root-admin", password="x" * 12))
    return client


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/queues/",
        "/queues/research/",
        "/jobs/",
        "/jobs/default/gang/",
        "/nodes/",
        "/sessions/",
    ],
)
def test_every_page_wears_the_name_and_the_mode_of_the_cluster(admin, address):
    page = admin.get(address)

    assert page.status_code == 200
    assert "Kubernetes · watching" in text(page)


def test_a_node_says_what_pods_of_other_schedulers_hold(admin):
    page = text(admin.get("/nodes/n1/"))

    assert "1.5 CPU by pods of other schedulers" in page
    assert "3.5 of 8 CPU" in page
    assert "1 of 110 pods, and 1 of other schedulers" in page


def test_a_queue_says_what_could_not_be_taken_over(admin):
    page = text(admin.get("/queues/research/"))

    assert "Its parent gone does not exist or is below it; it is shown below root." in page


def test_a_command_on_a_page_is_refused_with_the_way_to_give_it(admin):
    page = text(admin.post("/nodes/n1/cordon/", {"reason": "test"}, follow=True))

    assert "kubectl cordon" in page
    assert not Node.objects.filter(unschedulable=True).exists()


def test_a_form_is_refused_with_the_way_to_make_the_change(admin):
    page = text(admin.post("/queues/-/new/", {"name": "new", "parent": "root", "weight": "1"}))

    assert "kubectl edit queues.scheduling.volcano.sh" in page
    assert not Queue.objects.filter(name="new").exists()


def test_the_api_refuses_a_change(admin):
    answer = admin.post(
        "/api/v1/queues/", {"metadata": {"name": "new"}, "spec": {}}, "application/json"
    )

    assert answer.status_code == 409
    assert "kubectl" in answer.content.decode()
