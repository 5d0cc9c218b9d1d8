"""The map of nodes, the largest gang that would start, and which gangs could start on a node."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.models import Node
from tests.dashboard.work import signed_in, small_cluster, text
from tests.worlds import job, node

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()
    for name, rack in (("r1", "a"), ("r2", "b"), ("r3", "b")):
        node(name, cpu="4", memory="8Gi")
        Node.objects.filter(name=name).update(labels={"rack": rack, "zone": "z"})


def test_nodes_are_grouped_by_a_label_with_a_summary_of_each_group():
    Node.objects.filter(name="r3").update(unschedulable=True)

    page = text(signed_in("vera").get("/nodes/?view=map&resource=cpu"))  # by rack, the first

    assert '<h2 class="map-title">b</h2>' in page
    assert "2 nodes, 0 of 8 CPU in use; 4 CPU free, up to 4 on one node; 1 cordoned" in page
    assert '<h2 class="map-title">without this label</h2>' in page
    assert 'title="r3: 0 of 4 CPU in use, 4 CPU free once it is uncordoned, cordoned"' in page
    ungrouped = text(signed_in("vera").get("/nodes/?view=map&group="))
    assert "map-title" not in ungrouped


def test_a_label_that_no_node_has_is_refused():
    answer = signed_in("vera").get("/nodes/?view=map&group=colour")

    assert answer.status_code == 400
    assert "There is no label “colour”." in text(answer)


def test_thousands_of_nodes_take_no_more_queries_and_little_html():
    client = signed_in("vera")
    client.get("/nodes/?view=map")
    with CaptureQueriesContext(connection) as few:
        client.get("/nodes/?view=map")
    many = [
        Node(name=f"m{number:04d}", labels={"rack": f"r{number % 40}"}) for number in range(5000)
    ]
    Node.objects.bulk_create(many)

    with CaptureQueriesContext(connection) as all_of_them:
        answer = client.get("/nodes/?view=map&resource=cpu")

    assert len(all_of_them) == len(few)
    assert len(answer.content) < 140 * 5000
    page = text(answer)
    assert page.count('class="heat heat-none"') == 5000
    assert 'href="/nodes/m0042/" aria-label="m0042: has no CPU"' in page


def test_the_page_of_the_largest_gang_says_how_large_and_why_not_larger():
    page = text(signed_in("vera").get("/nodes/-/room/?queue=vision&shape=cpu=2"))

    assert 'in <a href="/queues/vision/">vision</a>, within its limits' in page
    assert "<strong>2 CPU</strong>" in page
    assert "8 CPU</td>" in page  # 12 less the 4 that train-1 has
    assert "vision has 8 free under its capability of 12" in page


@pytest.mark.parametrize("shape", ["cpu", "cpu=x", "cpu=0", "gold=1", "cpu=1,cpu=2", "=1"])
def test_a_shape_that_cannot_be_read_is_refused_on_every_door(shape: str):
    client = signed_in("vera")

    assert client.get("/nodes/-/room/", {"shape": shape}).status_code == 400
    answer = client.get("/api/v1/cluster/largest-gangs/", {"shape": shape})
    assert answer.status_code == 400
    assert answer.json()["violations"][0]["field"] == "shape"


def test_a_queue_out_of_sight_has_no_largest_gang():
    client = signed_in("vera")

    assert client.get("/nodes/-/room/?queue=batch").status_code == 404
    answer = client.get("/api/v1/cluster/largest-gangs/?queue=batch")
    assert answer.status_code == 400
    assert answer.json()["violations"][0]["field"] == "queue"


def test_a_node_says_to_each_waiting_gang_what_keeps_it():
    page = text(signed_in("vera").get("/nodes/r1/waiting/"))

    assert "1 of 1 gang that waits fits here now" in page
    assert "Room here now for 2 of its 20 pods that wait." in page
    waiting = signed_in("vera").get("/api/v1/nodes/n1/waiting/").json()["status"]
    (gang,) = waiting["gangs"]
    assert (gang["name"], gang["fit"]) == ("train-2", "full")
    assert gang["short"][0]["resource"] == "cpu"
    explained = signed_in("vera").get("/api/v1/podgroups/default/train-2/explain/").json()
    assert gang["reasonMessage"] == explained["message"]


def test_the_gangs_of_others_are_counted_and_not_named():
    job("secret-plan", "batch", replicas=99)

    page = text(signed_in("vera").get("/nodes/r1/waiting/"))
    status = signed_in("vera").get("/api/v1/nodes/r1/waiting/").json()["status"]

    assert "secret-plan" not in page
    assert "1 more waits in queues that you may not see" in page
    assert (status["hidden"], len(status["gangs"])) == (1, 1)


@pytest.mark.parametrize("query", ["fit=lovely", "start=-1", "start=x", "start=99999999999"])
def test_a_page_that_cannot_be_is_refused(query: str):
    client = signed_in("vera")

    assert client.get(f"/nodes/r1/waiting/?{query}").status_code == 400
    assert client.get(f"/api/v1/nodes/r1/waiting/?{query}").status_code == 400
