"""YAML of objects as the API server holds them, and lines for kubectl."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth import get_user_model
from django.test import Client

from scheduler.models import Grant, Mirror, Queue
from tests.control_plane.fake.faults import Answer
from tests.control_plane.fake.resources import resource_of
from tests.dashboard.work import text
from tests.fake_cluster import FakeCluster, fake_cluster
from tests.mirrored import node, pod, podgroup

pytestmark = pytest.mark.django_db

PODS = resource_of("v1", "pods")
NODES = resource_of("v1", "nodes")
SECRET = "hunter2"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FakeCluster]:
    """A gang of one pod with a secret in its environment, on a node."""
    with fake_cluster(tmp_path) as running:
        store = running.server.store
        store.create(NODES, "", {"metadata": {"name": "n1"}, "spec": {"podCIDR": "10.0.0.0/24"}})
        variable = {"name": "PASSWORD", "value": SECRET}
        container = {"name": "c", "image": "busybox", "env": [variable]}
        metadata = {"name": "gang-0", "managedFields": [{"manager": "kubectl"}]}
        store.create(PODS, "default", {"metadata": metadata, "spec": {"containers": [container]}})
        running.mirror.has(
            node("n1"), podgroup("gang", queue="research"), pod("gang-0", group="gang", node="n1")
        )
        yield running


@pytest.fixture
def viewer() -> Client:
    user = get_user_model().objects.create_user("vera", password="x" * 12)
    Grant.objects.create(user=user, queue=Queue.objects.get(name="research"), role="viewer")
    client = Client()
    client.force_login(user)
    return client


def test_a_pod_is_shown_as_the_api_server_holds_it(cluster, root_admin):
    page = text(root_admin.get("/jobs/default/gang/pods/gang-0/"))

    assert SECRET in page
    assert "managedFields:" not in page
    assert "As the API server holds it" in page
    assert "kubectl get pods gang-0 -n default -o yaml" in page


def test_values_of_environment_variables_are_for_operators(cluster, root_admin, viewer):
    page = text(viewer.get("/jobs/default/gang/pods/gang-0/"))

    assert SECRET not in page
    assert "PASSWORD" in page
    assert "Values of environment variables are hidden" in page
    assert "Values of environment variables" not in text(
        root_admin.get("/jobs/default/gang/pods/gang-0/")
    )


def test_a_pod_in_a_queue_that_may_not_be_seen_is_not_found(cluster):
    nobody = Client()
    nobody.force_login(get_user_model().objects.create_user("nemo", password="x" * 12))

    assert nobody.get("/jobs/default/gang/pods/gang-0/").status_code == 404


def test_queues_and_nodes_are_read_live(cluster, root_admin):
    cluster.changes("research", lambda queue: {**queue, "spec": {**queue["spec"], "weight": 77}})

    assert "weight: 77" in text(root_admin.get("/queues/research/yaml/"))
    assert "podCIDR: 10.0.0.0/24" in text(root_admin.get("/nodes/n1/yaml/"))


def test_a_page_says_why_an_object_cannot_be_read_and_shows_what_is_mirrored(cluster, root_admin):
    page = text(root_admin.get("/jobs/default/gang/yaml/"))

    assert "The cluster has no PodGroup gang any more." in page
    assert "minMember: 1" in page


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(403, "Forbidden", "nodes is forbidden"), "may not read nodes: nodes is forbidden"),
        (Answer(503, "ServiceUnavailable", "away"), "The API server cannot be asked"),
    ],
)
def test_a_node_that_cannot_be_read_is_shown_as_it_is_mirrored(cluster, root_admin, answer, words):
    cluster.server.plan("GET", "/api/v1/nodes/n1", answer)

    page = text(root_admin.get("/nodes/n1/yaml/"))

    assert words in page
    assert "kind: Node" in page


# Copy as kubectl


def kubectl_line(answer: Any) -> str:
    page = text(answer)
    assert "Copy as kubectl" in page
    return page


def test_commands_to_queues_have_a_kubectl_form(cluster, root_admin):
    page = kubectl_line(root_admin.get("/queues/research/close/"))

    assert "kubectl patch queues.scheduling.volcano.sh research --type merge" in page
    assert "{&quot;spec&quot;: {&quot;state&quot;: &quot;Closed&quot;}}" in page


def test_a_definition_without_states_gets_an_annotation(cluster, root_admin):
    cluster.defines()

    page = kubectl_line(root_admin.get("/queues/research/suspend/"))

    assert "kubectl annotate --overwrite queues.scheduling.volcano.sh research" in page
    assert "fumarole.io/state=Suspended" in page


def test_volcano_is_asked_by_a_command_to_close_a_queue(cluster, root_admin):
    cluster.defines("state", by=Mirror.VOLCANO)
    cluster.tells()

    page = kubectl_line(root_admin.get("/queues/research/close/"))

    assert "kubectl create -n default -f -" in page
    assert "action: CloseQueue" in page
    assert str(Queue.objects.get(name="research").uid) in page


def test_the_form_of_a_queue_has_one_that_can_be_applied(cluster, root_admin):
    source = root_admin.get("/queues/research/edit/").content.decode()

    document = source.split("kubectl apply -f - &lt;&lt;&#x27;END&#x27;\n")[1].split("\nEND")[0]
    manifest = yaml.safe_load(document.replace("&#x27;", "'").replace("&quot;", '"'))
    assert manifest["kind"] == "Queue"
    assert manifest["spec"]["weight"] == 3
    assert "parent" not in manifest["spec"]


def test_a_form_for_what_is_only_watched_says_so_at_once(cluster, root_admin):
    node_page = root_admin.get("/nodes/n1/cordon/")
    new_job = root_admin.get("/jobs/-/new/")

    assert node_page.status_code == 409
    assert "kubectl cordon n1" in text(node_page)
    assert "Watched only" in text(new_job)
    assert "<textarea" not in new_job.content.decode()


def test_the_page_of_a_node_has_lines_for_a_terminal(cluster, root_admin):
    page = text(root_admin.get("/nodes/n1/"))

    assert "kubectl drain n1 --ignore-daemonsets --delete-emptydir-data" in page
